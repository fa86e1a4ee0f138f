# SPDX-License-Identifier: BSD-3-Clause
"""Which formulas read as one C++ expression, and how many values they give."""

from __future__ import annotations

import pytest

from codegen.formula.expression import mistake, value_count


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("grad", 1),
        ("grad * other + -1 * !x", 1),
        ("grads[0]", 1),
        ("fs[0]", None),
        ("f(grad)", None),
        ("grad.sum(0).mul(x)", None),
        ("a ? b * c : d ? e + f : g * h", 1),
        ("a ? std::make_tuple(b, c) : f(d)", 2),
        ("std::make_tuple(a, f(b, c), {d, e})", 3),
        ("std::tuple<Tensor, std::vector<Tensor>>(a, b)", 2),
        ("std::tuple<Tensor, Tensor, Tensor>{}", 3),
        ("std::tuple<std::vector<Tensor>, Tensor>(a, b)", 2),
        ("{a, b}", 2),
        ("a < b && c > d", 1),
        ("dim < 0 && p > (0) ? grad : grad * 2", 1),
        ("f(a < b, c > (d))", None),
        ("std::get<0>(result)", None),
        ("helper<2>(grad)", None),
        ("gb<-1>(grad, x)", 1),  # without a namespace it compares
        ("lib::gb<sizeof(int)>(grad, x)", None),
        ("std::is_same_v<int, float> ? a : b", 1),
        ("std::array<int64_t, 1 + 1>{1, 2}", None),
        ("IntArrayRef{1, 2}", None),
        ("std::vector<Tensor>{a, b}", None),
        ("(int64_t)x", None),
        ("(const at::Tensor&)x", None),
        ("(std::tuple<Tensor, Tensor>)f(x)", None),
        ("(bool)!x", None),
        ("*cached(grad)", None),
        ("&x", 1),
        ("(f(x), grad)", None),
        ("(grad) * 2", 1),
        ("x not_eq y ? grad : other", 1),
        ("not x and y", 1),
        ("sizeof(int)", None),
        ("unsigned long(x)", None),
        ('f("a" "b", u8"c", \'d\', 1\'000, 0x1Fu, .5f)', None),
        ("grad /* twice */ * 2", 1),
        ("grad\n  .sum()\n  .mul(x)", None),
        ("[&] { return grad * x; }()", None),
        ("[g = grad](Tensor x) -> std::tuple<Tensor, Tensor> { return {g, x}; }(y)", None),
        (
            "[]<typename T, typename U>(T a, U b) mutable { if (a) { b = 1; } }(x, y)",
            None,
        ),
        ("fmap(xs, [](const Tensor& x) { return x * 2; })", None),
        ("f(std::tuple<Tensor, Tensor>(a, b).first<1>())", None),
        ("std::tuple<Tensor, Tensor>(a, b).swapped<1>(c)", None),
        ("x.make_tuple(a, b)", None),
        ("1e-5 + 1E+5f - 1.5e3L * .5 / 1.", 1),
        ("x-1-2.5e-3-y", 1),
        ("0 + 017 + 0'7 + 0x1Fu + 0XfUL + 0b101 + 0B1ll + 1'000'000z + 1llu + 2LU", 1),
        ("08.5 + 09e1 + 0x1.8p3 + 0x.8p-1f + 0x1P+3L", 1),
        (r"""f('a', '\'', '"', 'ab', L'é', u8'\\', '\0', '\377', '\x7f')""", None),
        (r'f("", "\"\?\a\b\f\n\r\t\v\1\12\123\x00fF\u00e9\U0001F600", L"\x1234", u"é")', None),
    ],
)
def test_expressions_are_read(text: str, count: int | None) -> None:
    assert mistake(text) is None
    assert value_count(text) == count


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "an operand is missing at the end"),
        ("()", "an operand is missing before ')'"),
        ("~", "an operand is missing at the end"),
        ("grad *", "an operand is missing at the end"),
        ("grad other", "an operator is missing before 'other'"),
        ("(grad * x) y", "an operator is missing before 'y'"),
        ("x.dim() 3", "an operator is missing before '3'"),
        ("f(grad x)", "an operator is missing before 'x'"),
        ("f(grad, , x)", "an operand is missing before ','"),
        ("grad ? x", "'?' without ':'"),
        ("grad..sum()", "a name is missing behind '.'"),
        ("std::", "a name is missing behind 'std'"),
        ("grad, x", "',' outside of parentheses"),
        ("grad; x", "';' ends a statement"),
        ("grad = x", "'=' assigns"),
        ("return grad", "'return' begins a statement"),
        ("f(x", "')' is missing"),
        ("x[0", "']' is missing"),
        ("f(x))", "')' closes nothing"),
        ("[&](x) + 1", "'[' begins a lambda that has no body"),
        ("f([x], {y})", "'[' begins a lambda that has no body"),
        ("[&] { return x; ", "'}' is missing"),
        ("[&] { f(x]; }()", "']' closes nothing"),
        ("grad // twice", "'//' begins a comment"),
        ("grad /* twice", "'/*' begins a comment that has no end"),
        ('f("x)', "a text has no end"),
        ("grad * 08", "'08' is no number of C++"),
        ("grad * 0x", "'0x' is no number of C++"),
        ("grad * 0b12", "'0b12' is no number of C++"),
        ("grad * 1e", "'1e' is no number of C++"),
        ("grad * 1e+", "'1e+' is no number of C++"),
        ("grad * 1.2.3", "'1.2.3' is no number of C++"),
        ("grad * 1zzz", "'1zzz' is no number of C++"),
        ("grad * 1_000", "'1_000' is no number of C++"),
        ("grad * 1lL", "'1lL' is no number of C++"),
        ("grad * 1f", "'1f' is no number of C++"),
        ("grad * 0x1.8", "'0x1.8' is no number of C++"),
        ("grad * 0x1e+2", "'0x1e+2' is no number of C++"),
        ("[&] { return 08; }()", "'08' is no number of C++"),
        ("f('')", "'' is not one character"),
        ("f(u'ab')", "u'ab' is not one character"),
        (r'f("\u")', r"'\u' in a text is no escape sequence of C++"),
        (r'f("\x")', r"'\x' in a text is no escape sequence of C++"),
        (r'f("\q")', r"'\q' in a text is no escape sequence of C++"),
        (r'f("\400")', r"'\400' in a text is no escape sequence of C++"),
        (r'f("\x100")', r"'\x100' in a text is no escape sequence of C++"),
        (r'f("\uD800")', r"'\uD800' in a text is no escape sequence of C++"),
        (r'f("\U00110000")', r"'\U00110000' in a text is no escape sequence of C++"),
        ('f("a\nb")', "a text ends where its line does"),
        ('f("a\\\nb")', r"'\\n' in a text is no escape sequence of C++"),
        ("grad @ x", "'@' is no character of C++"),
        ("grad\u00a0* x", r"'\xa0' is no character of C++"),
        ("grad *\u2028x", r"'\u2028' is no character of C++"),
        ("grad * \u0663", "'\u0663' is no character of C++"),
        ("grad * \u00e9t\u00e9", "'\u00e9' is no character of C++"),
        ("(" * 5000, "it is nested too deeply"),
    ],
)
def test_what_is_no_expression_says_why(text: str, why: str) -> None:
    found = mistake(text)
    assert found is not None and found.why == why
    assert value_count(text) is None


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("grad *", 6),
        ("grad  other", 6),
        ("f(a,\n  , b)", 7),
        ("a + (b", 6),
        ("a @ b", 2),
        ("a * 08 + 09", 4),
        (r'f("a", "\u")', 7),
    ],
)
def test_a_mistake_has_its_place(text: str, offset: int) -> None:
    found = mistake(text)
    assert found is not None and found.offset == offset
