# SPDX-License-Identifier: BSD-3-Clause
"""What becomes of each form of the expressions of `meta:`, and what batching asks of them.

That the C++ here computes what Python does is for tests/rules to say, which runs it.
"""

from __future__ import annotations

import pytest
from expecttest import TestCase
from spec_runs import plan

from codegen.analysis.batched_shapes import BatchedShapes
from codegen.analysis.folded_shapes import FoldedShapes
from codegen.emit.spelling.expressions import check_lines, required_lines, spelled
from codegen.errors import SpecError
from codegen.plan.kernels import RulePlan
from codegen.spec.model import MetaRule

ARGUMENTS = (
    "Tensor x, Tensor? w, Tensor[] xs, int n, int? m, SymInt s, int[] p, bool b, bool[2] mask, "
    "float e, Scalar c, str t, ScalarType d, ScalarType? q"
)


def rule(*lines: str) -> RulePlan:
    """The rule of an operator with such arguments and one result."""
    text = "".join(f"    {line}\n" for line in lines)
    (op,) = plan(
        f'- func: "f({ARGUMENTS}) -> Tensor"\n  dispatch: {{CPU: k}}\n  meta:\n{text}'
    ).operators
    assert op.rule is not None
    return op.rule


def result(size: str, dtype: str = "x.dtype") -> str:
    """The C++ of a result's sizes and dtype, and before it what is asked of arguments."""
    (found,) = rule(f'size: "{size}"', f'dtype: "{dtype}"').results
    text = spelled(found.sizes).removeprefix('shape::result_sizes(op, "out", ').removesuffix(")")
    asked = [f"    {line}" for line in required_lines(found.needs)]
    if dtype == "x.dtype":
        return "\n".join([f"{size}:", *asked, f"    {text}"])
    return "\n".join([f"{dtype}:", *asked, f"    {spelled(found.dtype)}"])


def check(condition: str) -> str:
    (found,) = rule(f'check: ["{condition}"]', "like: x").checks
    return "\n".join([f"{condition}:", *(f"    {line}" for line in check_lines(found))])


class TestExpressions(TestCase):
    maxDiff = None

    def test_sizes(self) -> None:
        sizes = [
            "x.shape", "[n, 2]", "[-n, -2]", "[n - 1, 3 - n]", "[n + s, 2 * n]",
            "[x.shape[0] // s]", "[x.shape[-1] % n]", "x.shape[1:]", "x.shape[:-1] + [n]",
            "x.shape[:]", "[x.dim, x.numel]", "[m or 7]", "[min(n, 2), max(s, n)]",
            "[len(xs), len(p)]", "xs[0].shape", "xs[n].shape", "p",
        ]  # fmt: skip
        self.assertExpectedInline(
            "\n".join(map(result, sizes)),
            """\
x.shape:
    x.sym_sizes()
[n, 2]:
    c10::SymDimVector{n, 2}
[-n, -2]:
    c10::SymDimVector{(-(n)), -2}
[n - 1, 3 - n]:
    c10::SymDimVector{(n - 1), (c10::SymInt(3) - n)}
[n + s, 2 * n]:
    c10::SymDimVector{(n + s), (c10::SymInt(2) * n)}
[x.shape[0] // s]:
    c10::SymDimVector{shape::floor_divide(shape::size(x.sym_sizes(), 0, op, "x.shape"), s, op, "x.shape[0] // s")}
[x.shape[-1] % n]:
    c10::SymDimVector{shape::modulo(shape::size(x.sym_sizes(), -1, op, "x.shape"), n, op, "x.shape[-1] % n")}
x.shape[1:]:
    shape::slice(x.sym_sizes(), 1, std::nullopt)
x.shape[:-1] + [n]:
    shape::concat(shape::slice(x.sym_sizes(), std::nullopt, -1), c10::SymDimVector{n})
x.shape[:]:
    shape::slice(x.sym_sizes(), std::nullopt, std::nullopt)
[x.dim, x.numel]:
    c10::SymDimVector{x.dim(), x.sym_numel()}
[m or 7]:
    c10::SymDimVector{(shape::is_true(m) ? c10::SymInt(*m) : c10::SymInt(7))}
[min(n, 2), max(s, n)]:
    c10::SymDimVector{shape::smaller(n, 2), shape::larger(s, n)}
[len(xs), len(p)]:
    c10::SymDimVector{shape::length(xs), shape::length(shape::sizes(p))}
xs[0].shape:
    shape::item(xs, 0, op).sym_sizes()
xs[n].shape:
    shape::item(xs, n, op).sym_sizes()
p:
    shape::sizes(p)""",
        )

    def test_functions_of_shapes(self) -> None:
        sizes = [
            "broadcast(x.shape, p)", "replace(x.shape, n, 3)", "reduce(x.shape, n, b)",
            "reduce(x.shape, p, True)", "cat(xs, 0)",
        ]  # fmt: skip
        self.assertExpectedInline(
            "\n".join(map(result, sizes)),
            """\
broadcast(x.shape, p):
    shape::named(op, [&] { return shape::broadcast(shape::sizes(x.sym_sizes()), shape::sizes(shape::sizes(p))); })
replace(x.shape, n, 3):
    shape::named(op, [&] { return shape::replace(x.sym_sizes(), n, 3); })
reduce(x.shape, n, b):
    shape::named(op, [&] { return shape::reduce(x.sym_sizes(), n, b); })
reduce(x.shape, p, True):
    shape::named(op, [&] { return shape::reduce(x.sym_sizes(), shape::sizes(p), true); })
cat(xs, 0):
    shape::named(op, [&] { return shape::cat(xs, 0); })""",
        )

    def test_sizes_by_a_condition(self) -> None:
        sizes = [
            "[2 if b else n]",
            "w.shape if w is not None else x.shape",
            "w.shape if w is None else x.shape",
            "x.shape if w is None else w.shape",
            "[2 if b and w is not None else n]",
            "[w.dim if b and w is not None else n]",
            "[w.shape[0] if b or w is None else n]",
            "[w.shape[0] if mask[1] else w.dim]",
            "w.shape if b and w is not None and w.dim == n else x.shape",
            "[w.dim if b else (w.numel if w.dim == n else 1)]",
        ]
        self.assertExpectedInline(
            "\n".join(map(result, sizes)),
            """\
[2 if b else n]:
    c10::SymDimVector{(shape::decided(b) ? c10::SymInt(2) : c10::SymInt(n))}
w.shape if w is not None else x.shape:
    (shape::decided(shape::is_there(w)) ? shape::sizes(w->sym_sizes()) : shape::sizes(x.sym_sizes()))
w.shape if w is None else x.shape:
    if (shape::decided(!shape::is_there(w))) shape::require(op, "w", w);
    (shape::decided(!shape::is_there(w)) ? shape::sizes(w->sym_sizes()) : shape::sizes(x.sym_sizes()))
x.shape if w is None else w.shape:
    (shape::decided(!shape::is_there(w)) ? shape::sizes(x.sym_sizes()) : shape::sizes(w->sym_sizes()))
[2 if b and w is not None else n]:
    c10::SymDimVector{(shape::decided(shape::both(b, [&] { return c10::SymBool(shape::is_there(w)); })) ? c10::SymInt(2) : c10::SymInt(n))}
[w.dim if b and w is not None else n]:
    c10::SymDimVector{(shape::decided(shape::both(b, [&] { return c10::SymBool(shape::is_there(w)); })) ? c10::SymInt(w->dim()) : c10::SymInt(n))}
[w.shape[0] if b or w is None else n]:
    if (shape::decided(shape::either(b, [&] { return c10::SymBool(!shape::is_there(w)); }))) shape::require(op, "w", w);
    c10::SymDimVector{(shape::decided(shape::either(b, [&] { return c10::SymBool(!shape::is_there(w)); })) ? c10::SymInt(shape::size(w->sym_sizes(), 0, op, "w.shape")) : c10::SymInt(n))}
[w.shape[0] if mask[1] else w.dim]:
    if (shape::decided(mask[1])) shape::require(op, "w", w);
    if (!shape::decided(mask[1])) shape::require(op, "w", w);
    c10::SymDimVector{(shape::decided(mask[1]) ? c10::SymInt(shape::size(w->sym_sizes(), 0, op, "w.shape")) : c10::SymInt(w->dim()))}
w.shape if b and w is not None and w.dim == n else x.shape:
    (shape::decided(shape::both(b, [&] { return c10::SymBool(shape::both(shape::is_there(w), [&] { return c10::SymBool(shape::equal(w->dim(), n)); })); })) ? shape::sizes(w->sym_sizes()) : shape::sizes(x.sym_sizes()))
[w.dim if b else (w.numel if w.dim == n else 1)]:
    if (shape::decided(b)) shape::require(op, "w", w);
    if (!shape::decided(b)) {
      shape::require(op, "w", w);
      if (shape::decided(shape::equal(w->dim(), n))) shape::require(op, "w", w);
    }
    c10::SymDimVector{(shape::decided(b) ? c10::SymInt(w->dim()) : c10::SymInt((shape::decided(shape::equal(w->dim(), n)) ? c10::SymInt(w->sym_numel()) : c10::SymInt(1))))}""",
        )

    def test_sizes_that_values_tell(self) -> None:
        sizes = ["[dynamic]", "[dynamic <= n, 2]", "[dynamic if b else n]"]
        self.assertExpectedInline(
            "\n".join(map(result, sizes)),
            """\
[dynamic]:
    c10::SymDimVector{new_dynamic_size(op, "out", shape::first_tensor(x, w, xs), std::nullopt)}
[dynamic <= n, 2]:
    c10::SymDimVector{new_dynamic_size(op, "out", shape::first_tensor(x, w, xs), c10::SymInt(n)), 2}
[dynamic if b else n]:
    c10::SymDimVector{(shape::decided(b) ? c10::SymInt(new_dynamic_size(op, "out", shape::first_tensor(x, w, xs), std::nullopt)) : c10::SymInt(n))}""",
        )

    def test_dtypes(self) -> None:
        dtypes = [
            "w.dtype", "q or d", "float32", "d", "promote(x, w)", "promote_to_float(xs)",
            "w.dtype if w is not None else q or bool",
            "(w if w is not None else x).dtype", "(x if w is None else w).dtype",
        ]  # fmt: skip
        found = "\n".join(result("x.shape", dtype) for dtype in dtypes)
        self.assertExpectedInline(
            found,
            """\
w.dtype:
    shape::require(op, "w", w);
    w->scalar_type()
q or d:
    (shape::is_true(q) ? at::ScalarType(*q) : at::ScalarType(d))
float32:
    at::ScalarType::Float
d:
    d
promote(x, w):
    shape::promote(x, w)
promote_to_float(xs):
    shape::promote_to_float(xs)
w.dtype if w is not None else q or bool:
    (shape::decided(shape::is_there(w)) ? w->scalar_type() : (shape::is_true(q) ? at::ScalarType(*q) : at::ScalarType(at::ScalarType::Bool)))
(w if w is not None else x).dtype:
    (shape::decided(shape::is_there(w)) ? *w : x).scalar_type()
(x if w is None else w).dtype:
    (shape::decided(!shape::is_there(w)) ? x : *w).scalar_type()""",
        )

    def test_comparisons(self) -> None:
        conditions = [
            "n == 1", "n != s", "n < 1", "n <= 1", "n > 1", "n >= 1", "x.dim == 2", "e < 2",
            "c > 0.5", "e == n", "-e > 1", "t == 'ab'", r"t != 'a\"b'", "d == float32",
            "d != x.dtype", "x.shape == w.shape", "x.shape != [n]", "x.dtype == w.dtype",
        ]  # fmt: skip
        self.assertExpectedInline(
            "\n".join(map(check, conditions)),
            """\
n == 1:
    shape::check_value(op, "n", "1", n, &shape::equal, 1);
n != s:
    shape::check_value(op, "n", "!= s", n, &shape::not_equal, s);
n < 1:
    shape::check_value(op, "n", "< 1", n, &shape::less, 1);
n <= 1:
    shape::check_value(op, "n", "<= 1", n, &shape::at_most, 1);
n > 1:
    shape::check_value(op, "n", "> 1", n, &shape::greater, 1);
n >= 1:
    shape::check_value(op, "n", ">= 1", n, &shape::at_least, 1);
x.dim == 2:
    shape::check_dims(op, "x", x, "", shape::equal(x.dim(), 2), 2);
e < 2:
    shape::check_that(shape::numbers::less(e, 2), [&] { return c10::str(op, ": ", "e < 2", " must hold: ", "e is ", shape::shown(e)); });
c > 0.5:
    shape::check_that(shape::numbers::greater(shape::real(op, "c", c), 0.5), [&] { return c10::str(op, ": ", "c > 0.5", " must hold: ", "c is ", shape::shown(shape::real(op, "c", c))); });
e == n:
    shape::check_that(shape::numbers::equal(e, n), [&] { return c10::str(op, ": ", "e == n", " must hold: ", "e is ", shape::shown(e), ", ", "n is ", n); });
-e > 1:
    shape::check_that(shape::numbers::greater(shape::numbers::negative(e), 1), [&] { return c10::str(op, ": ", "-e > 1", " must hold: ", "e is ", shape::shown(e)); });
t == 'ab':
    shape::check_that((t == c10::string_view("ab", 2)), [&] { return c10::str(op, ": ", "t == 'ab'", " must hold: ", "t is ", t); });
t != 'a\\"b':
    shape::check_that((t != c10::string_view("a\\042b", 3)), [&] { return c10::str(op, ": ", "t != 'a\\"b'", " must hold: ", "t is ", t); });
d == float32:
    shape::check_that((d == at::ScalarType::Float), [&] { return c10::str(op, ": ", "d == float32", " must hold: ", "d is ", d, ", ", "float32 is ", at::ScalarType::Float); });
d != x.dtype:
    shape::check_that((d != x.scalar_type()), [&] { return c10::str(op, ": ", "d != x.dtype", " must hold: ", "d is ", d, ", ", "x.dtype is ", x.scalar_type()); });
x.shape == w.shape:
    if (shape::is_there(w)) {
      shape::check_shape(op, "x", x, w->sym_sizes());
    }
x.shape != [n]:
    shape::check_that(shape::negated(shape::same(x.sym_sizes(), c10::SymDimVector{n})), [&] { return c10::str(op, ": ", "x.shape != [n]", " must hold: ", "x.shape is ", shape::shown(x.sym_sizes()), ", ", "n is ", n); });
x.dtype == w.dtype:
    if (shape::is_there(w)) {
      shape::check_dtype(op, "x", x, "", (x.scalar_type() == w->scalar_type()), w->scalar_type());
    }""",
        )

    def test_conditions(self) -> None:
        conditions = [
            "b", "not b", "not x.shape == p", "n in (1, 2)", "n not in [1, 2]", "b and n == 1",
            "b or n == 1 or mask[0]", "w is None or w.dim == 1", "w is not None and w.dim == 1",
            "w is None", "m is None", "q is not None", "b and (n == 1 or mask[1])",
            "w.dim == 1", "b and w.dim == 1", "w is None and w.dim == 1",
        ]  # fmt: skip
        self.assertExpectedInline(
            "\n".join(map(check, conditions)),
            """\
b:
    shape::check_that(b, [&] { return c10::str(op, ": ", "b", " must hold: ", "b is ", shape::shown(b)); });
not b:
    shape::check_that(shape::negated(b), [&] { return c10::str(op, ": ", "not b", " must hold: ", "b is ", shape::shown(b)); });
not x.shape == p:
    shape::check_that(shape::negated(shape::same(x.sym_sizes(), shape::sizes(p))), [&] { return c10::str(op, ": ", "not x.shape == p", " must hold: ", "x.shape is ", shape::shown(x.sym_sizes()), ", ", "p is ", shape::shown(shape::sizes(p))); });
n in (1, 2):
    shape::check_that(shape::either(shape::equal(n, 1), [&] { return c10::SymBool(shape::equal(n, 2)); }), [&] { return c10::str(op, ": ", "n in (1, 2)", " must hold: ", "n is ", n); });
n not in [1, 2]:
    shape::check_that(shape::negated(shape::either(shape::equal(n, 1), [&] { return c10::SymBool(shape::equal(n, 2)); })), [&] { return c10::str(op, ": ", "n not in [1, 2]", " must hold: ", "n is ", n); });
b and n == 1:
    shape::check_that(shape::both(b, [&] { return c10::SymBool(shape::equal(n, 1)); }), [&] { return c10::str(op, ": ", "b and n == 1", " must hold: ", "b is ", shape::shown(b), ", ", "n is ", n); });
b or n == 1 or mask[0]:
    shape::check_that(shape::either(b, [&] { return c10::SymBool(shape::either(shape::equal(n, 1), [&] { return c10::SymBool(mask[0]); })); }), [&] { return c10::str(op, ": ", "b or n == 1 or mask[0]", " must hold: ", "b is ", shape::shown(b), ", ", "n is ", n); });
w is None or w.dim == 1:
    shape::check(op, "w is None or w.dim == 1", shape::either(!shape::is_there(w), [&] { return c10::SymBool(shape::equal(w->dim(), 1)); }));
w is not None and w.dim == 1:
    shape::check(op, "w is not None and w.dim == 1", shape::both(shape::is_there(w), [&] { return c10::SymBool(shape::equal(w->dim(), 1)); }));
w is None:
    shape::check(op, "w is None", !shape::is_there(w));
m is None:
    shape::check(op, "m is None", !shape::is_there(m));
q is not None:
    shape::check(op, "q is not None", shape::is_there(q));
b and (n == 1 or mask[1]):
    shape::check_that(shape::both(b, [&] { return c10::SymBool(shape::either(shape::equal(n, 1), [&] { return c10::SymBool(mask[1]); })); }), [&] { return c10::str(op, ": ", "b and (n == 1 or mask[1])", " must hold: ", "b is ", shape::shown(b), ", ", "n is ", n); });
w.dim == 1:
    if (shape::is_there(w)) {
      shape::check_dims(op, "w", *w, "", shape::equal(w->dim(), 1), 1);
    }
b and w.dim == 1:
    if ((shape::is_there(w) || !shape::decided(b))) {
      shape::check_that(shape::both(b, [&] { return c10::SymBool(shape::equal(w->dim(), 1)); }), [&] { return c10::str(op, ": ", "b and w.dim == 1", " must hold: ", "b is ", shape::shown(b)); });
    }
w is None and w.dim == 1:
    if ((shape::is_there(w) || !shape::decided(!shape::is_there(w)))) {
      shape::check(op, "w is None and w.dim == 1", shape::both(!shape::is_there(w), [&] { return c10::SymBool(shape::equal(w->dim(), 1)); }));
    }""",
        )

    def test_numbers_of_tensors(self) -> None:
        conditions = ["x.numel == 1", "w.shape[0] >= n", "x.shape[n] // s != 2", "len(xs) == n"]
        self.assertExpectedInline(
            "\n".join(map(check, conditions)),
            """\
x.numel == 1:
    shape::check_value(op, "x.numel", "1", x.sym_numel(), &shape::equal, 1, "x", x);
w.shape[0] >= n:
    if (shape::is_there(w)) {
      shape::check_value(op, "w.shape[0]", ">= n", shape::size(w->sym_sizes(), 0, op, "w.shape"), &shape::at_least, n, "w", *w);
    }
x.shape[n] // s != 2:
    shape::check_value(op, "x.shape[n] // s", "!= 2", shape::floor_divide(shape::size(x.sym_sizes(), n, op, "x.shape"), s, op, "x.shape[n] // s"), &shape::not_equal, 2, "x", x);
len(xs) == n:
    shape::check_value(op, "len(xs)", "n", shape::length(xs), &shape::equal, n);""",
        )


@pytest.mark.parametrize("size", ["[m and 7]", "[m or n or 7]", "[m and n or 7]"])
def test_what_may_be_missing_has_one_value_in_its_place(size: str) -> None:
    with pytest.raises(SpecError, match="a value that may be missing is used as 'm "):
        result(size)


@pytest.mark.parametrize("condition", ["floating()", "floating(x, w)", "has_dim(x)"])
def test_what_a_check_asks_of_a_tensor_takes_no_other_arguments(condition: str) -> None:
    name = condition.partition("(")[0]
    with pytest.raises(SpecError, match=f"'{name}' is no function of a rule"):
        check(condition)


@pytest.mark.parametrize(
    ("when", "asked"),
    [
        ("b", ['shape::require(op, "w", w);']),
        ("w is not None", []),
        ("b and w is not None", []),
        ("w.dim == 1", []),  # which asks for it first
        ("w is None", ['shape::require(op, "w", w);']),
        ("b or w is not None", ['shape::require(op, "w", w);']),
    ],
)
def test_a_result_is_like_what_is_there_when_it_is(when: str, asked: list[str]) -> None:
    (found,) = rule("like: w", f"when: {when}").results
    assert list(required_lines(found.needs)) == asked


# What batching asks of a rule.


def of_tensors(*lines: str) -> MetaRule:
    """The rule of an operator of tensors and a list, with these lines."""
    text = "".join(f"    {line}\n" for line in lines)
    is_list = any(line.startswith("for") for line in lines)
    schema = f"f(Tensor x, Tensor y, Tensor[] xs, int n, bool b) -> Tensor{'[]' * is_list}"
    keys = f"  dispatch: {{CPU: k}}\n  allocates: {is_list}\n  meta:\n{text}"
    (op,) = plan(f'- func: "{schema}"\n{keys}').operators
    assert op.operator.meta is not None
    return op.operator.meta


def folded(*lines: str) -> str:
    """What an example is asked of, and from how many dimensions on the answers are the same."""
    found = FoldedShapes(of_tensors(*lines), ["x", "xs"])
    ranks = (f"{name} from {rank}" for name, rank in sorted(found.least_ranks.items()))
    return ", ".join([*sorted(found.examined), *ranks])


LIKE = "like: x"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        # results that have the rows of a batch, and others
        ([LIKE], ""),
        (["like: xs[0]"], ""),
        (["like: y"], "x, xs"),
        (["like: x if b else xs[0]"], ""),
        (["like: x if b else y"], "x, xs"),
        (["like: x if x.numel > 1 else xs[0]"], "x"),
        (["size: x.shape", "dtype: x.dtype"], ""),
        (["size: y.shape", "dtype: x.dtype"], "x, xs"),
        (["size: x.shape + [n]", "dtype: x.dtype"], ""),
        (["size: y.shape + x.shape", "dtype: x.dtype"], "x, xs"),
        (["size: x.shape + [y.numel, x.numel]", "dtype: x.dtype"], "x"),
        (["size: 'x.shape[:-1] + [n]'", "dtype: x.dtype"], "x from 1"),
        (["size: 'x.shape[:-2] + [n]'", "dtype: x.dtype"], "x, xs"),
        (["size: 'x.shape[1:]'", "dtype: x.dtype"], "x, xs"),
        (["size: 'x.shape[0:-1]'", "dtype: x.dtype"], "x, xs"),
        (["size: 'y.shape[:-1]'", "dtype: x.dtype"], "x, xs"),
        (["size: 'replace(x.shape, -1, n)'", "dtype: x.dtype"], "x from 2"),
        (["size: 'replace(x.shape, -1, x.numel)'", "dtype: x.dtype"], "x, x from 2"),
        (["size: 'replace(x.shape, 0, n)'", "dtype: x.dtype"], "x, xs"),
        (["size: 'replace(x.shape, n, 1)'", "dtype: x.dtype"], "x, xs"),
        (["size: 'replace(y.shape, -1, n)'", "dtype: x.dtype"], "x, xs"),
        (["size: 'replace(y.shape, -1, x.dim)'", "dtype: x.dtype"], "x, xs"),
        (["size: 'reduce(x.shape, -1, b)'", "dtype: x.dtype"], "x from 2"),
        (["size: 'reduce(x.shape, -1, x.numel > 1)'", "dtype: x.dtype"], "x, x from 2"),
        (["size: 'reduce(x.shape, 1, b)'", "dtype: x.dtype"], "x, xs"),
        (["size: 'broadcast(x.shape, y.shape)'", "dtype: x.dtype"], "x, xs"),
        (["size: '[x.shape[0], n]'", "dtype: x.dtype"], "x from 2"),
        (["size: '[n * x.shape[0] * 2, x.shape[-1]]'", "dtype: x.dtype"], "x from 2"),
        (["size: '[x.shape[0] * x.numel, n]'", "dtype: x.dtype"], "x, x from 2"),
        (["size: '[x.shape[0] + 1, n]'", "dtype: x.dtype"], "x, xs"),
        (["size: '[n, x.shape[0]]'", "dtype: x.dtype"], "x, xs"),
        (["size: '[y.shape[0], n]'", "dtype: x.dtype"], "x, xs"),
        (["size: '[]'", "dtype: x.dtype"], "x, xs"),
        # what a check or a dtype asks
        (["check: ['x.dim == 2']", LIKE], "x from 2"),
        (["check: ['x.dim >= 1']", LIKE], ""),
        (["check: ['x.dim > 0']", LIKE], ""),
        (["check: ['x.dim >= 2']", LIKE], "x from 2"),
        (["check: ['x.dim > 1']", LIKE], "x from 2"),
        (["check: ['x.dim <= 1']", LIKE], "x from 2"),
        (["check: ['y.dim >= 1']", LIKE], ""),
        (["check: ['xs[0].dim == 2']", LIKE], "xs from 2"),
        (["check: ['xs[n].dim == 2']", LIKE], "xs"),
        (["check: ['x.numel == 2']", LIKE], "x"),
        (["check: ['x.dtype == y.dtype']", LIKE], ""),
        (["check: ['x.shape == y.shape']", LIKE], "x"),
        (["check: ['x.shape == xs[0].shape']", LIKE], ""),
        (["check: ['x.shape != xs[0].shape']", LIKE], "x, xs"),
        (["check: ['x.shape[:-1] == xs[0].shape[:-1]']", LIKE], "x from 1, xs from 1"),
        (["check: ['x.shape[:-1] == y.shape[:-1]']", LIKE], "x"),
        (["check: ['x.shape[:-1] + [n] == xs[0].shape']", LIKE], "x from 1"),
        (["check: ['x.shape[0] == xs[0].shape[0]']", LIKE], "x from 2, xs from 2"),
        (["check: ['x.shape[0] == n']", LIKE], "x"),
        (["check: ['x.shape[0] == y.shape[0]']", LIKE], "x"),
        (["check: ['x.shape[-1] == n']", LIKE], "x from 1"),
        (["check: ['x.shape[-3] == n']", LIKE], "x from 4"),
        (["check: ['x.shape[1] == n']", LIKE], "x from 2"),
        (["check: ['x.shape[n] == n']", LIKE], "x"),
        (["check: ['x.shape[xs[0].numel] == n']", LIKE], "x, xs"),
        (["check: ['x.shape[1:] == [n]']", LIKE], "x from 2"),
        (["check: ['x.shape[-2:] == [n, n]']", LIKE], "x from 3"),
        (["check: ['x.shape[1:2] == [n]']", LIKE], "x"),
        (["check: ['x.shape[:] == [n]']", LIKE], "x"),
        (["check: ['y.shape[0] == n']", LIKE], ""),
        (["check: ['b and x.shape[-1] == 2 or x.shape[-2] == 3']", LIKE], "x from 3"),
        (["check: ['has_dim(x, n)']", LIKE], "x"),
        (["check: ['len(xs) == 2']", LIKE], ""),
        (["like: x", "dtype: x.dtype if x.dim == 1 else y.dtype"], "x from 2"),
        (["size: x.shape", "dtype: x.dtype", "strides: '[x.shape[0], 1]'"], "x"),
        # lists of results
        (["for v in xs:", "  like: v"], ""),
        (["for v in xs:", "  like: x if v.numel > 1 else v"], "xs"),
        (["for v in xs:", "  like: v if v.dim > 1 else x"], "xs from 2"),
        (["for i in x.shape:", "  like: x"], "x"),
        (["for i in y.shape:", "  like: x"], ""),
    ],
)  # fmt: skip
def test_what_leading_asks_of_a_rule(lines: list[str], expected: str) -> None:
    assert folded(*lines) == expected


def batched(*lines: str) -> str:
    """What has one shape, and what is examined."""
    found = BatchedShapes(of_tensors(*lines), ["x", "y", "xs"])
    return f"{' '.join(found.one_shape)} | {' '.join(found.examined)}".strip()


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        # the sizes of a result
        ([LIKE], "x |"),
        (["like: xs[0]"], "xs |"),
        (["like: 'xs[x.dim]'"], "xs | x"),
        (["like: x if b else y"], "x y |"),
        (["like: x if y.numel > 1 else xs[0]"], "x xs | y"),
        (["size: x.shape", "dtype: x.dtype"], "x |"),
        (["size: 'broadcast(x.shape, y.shape)'", "dtype: x.dtype"], "|"),
        (["size: 'broadcast(x.shape, y.shape[1:])'", "dtype: x.dtype"], "| x y"),
        (["size: 'broadcast(x.shape, [n])'", "dtype: x.dtype"], "| x"),
        (["size: 'reduce(x.shape, 0, b)'", "dtype: x.dtype"], "| x"),
        (["size: '[x.numel, n]'", "dtype: x.dtype"], "| x"),
        (["size: x.shape", "dtype: x.dtype", "strides: '[y.dim]'"], "x | y"),
        # what a check or a dtype asks
        (["check: ['x.shape == y.shape']", LIKE], "x y |"),
        (["check: ['x.dim == xs[n].dim']", LIKE], "x xs |"),
        (["check: ['x.dim == xs[y.dim].dim']", LIKE], "x xs | y"),
        (["check: ['x.dtype == y.dtype']", LIKE], "x |"),
        (["check: ['x.shape != y.shape']", LIKE], "x | x y"),
        (["check: ['x.dim == y.numel']", LIKE], "x | x y"),
        (["check: ['x.dim == 2']", LIKE], "x | x"),
        (["check: ['x.shape == (y if b else xs[0]).shape']", LIKE], "x | xs y"),
        (["check: ['x.shape == (y.shape if b else xs[0].shape)']", LIKE], "x xs y |"),
        (["check: ['x.shape == (y.shape if x.dim > 1 else xs[0].shape)']", LIKE], "x xs y | x"),
        (["check: ['x.shape[0] == y.shape[0]']", LIKE], "x | x y"),
        (["check: ['has_dim(x, n)']", LIKE], "x | x"),
        (["check: ['b and y.numel == 1']", LIKE], "x | y"),
        (["like: x", "dtype: x.dtype if y.dim == 1 else y.dtype"], "x | y"),
        # lists of results
        (["for v in xs:", "  like: v"], "xs |"),
        (["for v in xs:", "  like: x if v.numel > 1 else v"], "x xs | xs"),
        (["for i in y.shape:", "  like: x"], "x | y"),
        (["for i in y.shape:", "  size: '[i]'", "  dtype: x.dtype"], "| y"),
    ],
)
def test_what_pointwise_asks_of_a_rule(lines: list[str], expected: str) -> None:
    assert batched(*lines) == expected
