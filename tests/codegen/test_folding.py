# SPDX-License-Identifier: BSD-3-Clause
"""Long lines of generated C++: what is broken means the same, and every part of a formula stands on
the formula's line of its spec."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codegen.cpp.folding import WIDTH, fold

LINE = '#line 7 "derivatives.yaml"'
_WORDS = st.sampled_from(
    ["a", "+", "grad.sum(0, true)", "*", "::at::where(x > 0, x, y)", "?", ":", "1'000", "'x'"]
    + ["/* it's */", '/* a  " quote */']
)
_TEXTS = st.text("ab '(),:?\\", max_size=30).map(
    lambda text: '"' + text.replace("\\", "\\\\") + '"'
)


def tokens(text: str) -> str:
    """A text without its directives, and without spaces outside of strings."""
    without = re.sub(r"^#line .*\n?", "", text, flags=re.MULTILINE)
    parts = re.split(r'("(?:[^"\\]|\\.)*"|/\*.*?\*/)', without)
    return "".join(p if index % 2 else "".join(p.split()) for index, p in enumerate(parts))


@given(st.lists(_WORDS | _TEXTS, min_size=1, max_size=60))
def test_a_folded_formula_is_the_same_formula(words: list[str]) -> None:
    line = f"    outputs.store(0, {' '.join(words)});"
    folded = fold(f"{LINE}\n{line}\n#line restored")
    assert tokens(folded) == tokens(line)
    *parts, restored = folded.split("\n")
    assert restored == "#line restored"
    assert set(parts[::2]) == {LINE}
    assert all(len(part) <= WIDTH or len(part.split()) < 3 for part in parts[1::2])


def test_a_formula_stands_behind_what_it_is_assigned_to_where_that_is_enough() -> None:
    value = f"{'x' * 45} + {'y' * 40};"
    folded = fold(f"{LINE}\n    result_tangent = {value}")
    assert folded == f"{LINE}\n    result_tangent =\n{LINE}\n        {value}"


@pytest.mark.parametrize(
    "unbroken", [f'f(R"({"a " * 60})")', f"AT_DISPATCH_ALL_TYPES({'a, ' * 40}b)"]
)
def test_no_directive_stands_in_a_raw_string_or_among_the_arguments_of_a_macro(unbroken) -> None:
    assert fold(f"{LINE}\n{unbroken}") == f"{LINE}\n{unbroken}"


def test_a_quote_in_a_number_opens_no_text() -> None:
    text = f'"it\'s {"a text " * 20}"'
    folded = fold(f"{LINE}\n    f(1'000 + {'x + ' * 14}g({text}) + {'y + ' * 12}2'000);")
    assert text in folded and len(folded.split("\n")) > 3


@pytest.mark.parametrize("comment", ["/* it's */", '/* a " */', "/* f(a, b */"])
def test_a_quote_in_a_comment_opens_no_text(comment: str) -> None:
    text = f'"don\'t  {"stop,  " * 12}"'
    formula = f"f({'x + ' * 14}{comment} g({text}) + {'y + ' * 12}2)"
    folded = fold(f"{LINE}\n    {formula};")
    assert text in folded and comment in folded and len(folded.split("\n")) > 3
    assert comment in fold(f"    call({formula});")


def test_an_assignment_among_arguments_is_no_variable() -> None:
    call = f"    f(x = {'y' * 60}, {'z' * 40});"
    assert fold(call) == f"    f(\n        x = {'y' * 60},\n        {'z' * 40});"


def test_an_assignment_among_arguments_that_would_fit_is_no_variable_either() -> None:
    call = f"    {'f' * 30}(x = {'y' * 40}, {'z' * 40});"
    assert fold(call) == f"    {'f' * 30}(\n        x = {'y' * 40}, {'z' * 40});"


def test_a_long_string_is_several_that_are_joined() -> None:
    text = " ".join(f"Tensor a{index}" for index in range(40))
    folded = fold(f'  m.def("{text}", {{at::Tag::core}});')
    assert all(len(line) <= WIDTH for line in folded.split("\n"))
    assert "".join(re.findall(r'"(.*)"', folded)) == text
