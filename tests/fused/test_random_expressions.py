# SPDX-License-Identifier: BSD-3-Clause
"""Random expressions: values and first derivatives are autograd's, and no text is too much.

`make fuzz-expressions` does more of them: TORCHEXT_EXPRESSIONS says how many, 2,000 by default.
"""

import os

import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from strategies import EXPRESSIONS, NAMES
from torch_values import value_of

from codegen.fused.derivatives import gradients
from codegen.fused.reading import Mistake, read
from codegen.fused.tree import text

KINDS = dict.fromkeys(NAMES, "tensor")
ONES = torch.ones(30, dtype=torch.float64)
COUNT = int(os.environ.get("TORCHEXT_EXPRESSIONS", "2000"))
ANY = settings(
    max_examples=COUNT, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


def inputs():
    generator = torch.Generator().manual_seed(5)
    return {n: torch.randn(30, generator=generator, dtype=torch.float64) for n in NAMES}


def is_read_again(tree, known):
    """Whether the text of a derived expression is that expression; a division by a number that is
    zero is nobody's who writes one."""
    try:
        return read(text(tree), known) == tree
    except Mistake as mistake:
        return mistake.message == "a division by zero" or mistake.message.endswith("too large")


def moved(given):
    """The arguments with other last digits."""
    return {n: v * (1 + 4e-16 * (-1) ** i) for i, (n, v) in enumerate(given.items())}


def compare(tree, found, given, grad):
    """The gradients of an expression, and those that autograd finds: they differ by no more than
    what the last digits of the arguments decide."""
    leaves = {n: v.clone().requires_grad_() for n, v in given.items()}
    result = value_of(tree, leaves)
    if not result.requires_grad:
        return
    expected = torch.autograd.grad(result.sum(), list(leaves.values()), allow_unused=True)
    for name, value in zip(leaves, expected, strict=True):
        own = found[name]
        if own is None:
            assert value is None or not value.nan_to_num().any()
            continue
        value = torch.zeros_like(ONES) if value is None else value
        mine = value_of(own, {**given, grad: ONES})
        rounding = (mine - value_of(own, {**moved(given), grad: ONES})).abs()
        is_near = (mine - value).abs() <= 1e-9 * value.abs() + 1e3 * rounding + 1e-12
        bad = ~(is_near | ~mine.isfinite() & ~value.isfinite())
        assert not bad.any(), (name, text(own), mine[bad], value[bad])


@ANY
@given(EXPRESSIONS)
def test_values_and_gradients_are_autograds(expression):
    try:
        tree = read(expression, KINDS)
    except Mistake as mistake:  # two numbers that are written out
        assert "division by zero" in mistake.message or "no number" in mistake.message
        return
    assert read(text(tree), KINDS) == tree
    compare(tree, gradients({"grad": tree}, NAMES), inputs(), "grad")


@ANY
@given(EXPRESSIONS)
def test_gradients_are_expressions_which_have_gradients(expression):
    try:
        tree = read(expression, KINDS)
    except Mistake:
        return
    given = {**inputs(), "grad": ONES}
    known = {**KINDS, "grad": "tensor"}
    for first in gradients({"grad": tree}, NAMES).values():
        if first is not None:
            assert is_read_again(first, known)
            compare(first, gradients({"again": first}, known), given, "again")


@ANY
@given(
    st.text(alphabet=st.sampled_from("xy01.+-*/%()<>=!, ifelsandornt'\"\n\\[]{}:é"), max_size=60)
)
@example("(" * 1000 + "x" + ")" * 1000)
@example("-" * 5000 + "x")
@example("x + " * 30000 + "x")
@example("x if " * 300 + "x")
@example("2 ** 2 ** 2 ** 2 ** 2 ** 2 ** 2")
@example("1e999 * x")
@example("x\x00")
@example("lambda: x")
def test_any_text_is_an_expression_or_a_mistake_with_its_place(words):
    try:
        read(words, KINDS)
    except Mistake as mistake:
        assert 0 <= mistake.offset <= len(words)
        assert mistake.message


MISTAKES = {
    "x + w": (4, "unknown name 'w'"),
    "x + sigmiod(y)": (4, "'sigmiod' is no function of an expression"),
    "x * sum(y)": (4, "'sum' makes one number of many"),
    "x + 1 / 0": (4, "a division by zero"),
    "lerp(x, y)": (0, "'lerp' takes (x, y, weight), got 2 arguments"),
    "lerp(x, y, w=1)": (13, "'lerp' has no other 'w'"),
    "x if y else z": (5, "'y' is a number where a condition is needed"),
    "x < y < z": (0, "one comparison at a time"),
    "x // y": (0, "'x // y' is none of + - * / ** %"),
    "x @ y": (0, "'x @ y' is none of + - * / ** %"),
    "x.exp()": (0, "'x.exp' is no function of an expression"),
    "x is None": (0, "'x' is no argument that may be missing"),
    "'x'": (0, "''x'' is no number"),
    "é + w": (0, "unknown name 'é'"),
    "x + * y": (4, "not an expression"),
    "sizes * x": (0, "an expression cannot use 'sizes', which is a 'int[]'"),
    "10 ** 400 * x": (0, "'10 ** 400' is no number, or is too large"),
    "x[0]": (0, "elements are computed one by one, and have no index"),
    "x * arange(n)": (4, "'arange' makes a row"),
}


@pytest.mark.parametrize("expression", MISTAKES)
def test_a_mistake_says_where_it_is(expression):
    offset, words = MISTAKES[expression]
    with pytest.raises(Mistake) as caught:
        read(expression, {**KINDS, "sizes": "int[]"})
    assert caught.value.message.startswith(words)
    assert caught.value.offset == offset


def test_names_and_functions_that_are_nearly_right_are_shown():
    for expression, hint in (("x * sigmiod(y)", "sigmoid"), ("wieght + 1", "weight")):
        with pytest.raises(Mistake) as caught:
            read(expression, {**KINDS, "weight": "tensor?"})
        assert hint in caught.value.hint
