# SPDX-License-Identifier: BSD-3-Clause
"""Random expressions: values and first derivatives are autograd's, and no text is too much.

`make fuzz-expressions` does more of them: TORCHEXT_EXPRESSIONS says how many, 2,000 by default.
"""

import os

import pytest
import torch
from expression_strategies import EXPRESSIONS, NAMES, ROWS
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from torch_values import value_of

from codegen.fused.derivatives import Arguments, gradients, tangent
from codegen.fused.extents import Extent, extent
from codegen.fused.functions import pieces
from codegen.fused.reading import Mistake, read
from codegen.fused.rows import of_primitives
from codegen.fused.tree import in_order, names, text

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


def torchs(tree, given):
    """The gradients that autograd finds, zeros where there is none."""
    leaves = {n: v.clone().requires_grad_() for n, v in given.items()}
    result = value_of(tree, leaves)
    found = [None] * len(leaves)
    if result.requires_grad:
        found = torch.autograd.grad(result.sum(), list(leaves.values()), allow_unused=True)
    both = zip(leaves, found, strict=True)
    return {n: torch.zeros_like(ONES) if value is None else value for n, value in both}


def compare(tree, found, given, grad):
    """The gradients of an expression, and those that autograd finds: they differ by no more than
    what the last digits of the arguments decide."""
    expected = torchs(tree, given)
    backwards = torchs(tree, {n: v.flip(0) for n, v in given.items()})
    for name, value in expected.items():
        own = found[name]
        if own is None:
            assert not value.nan_to_num().any()
            continue
        mine = value_of(own, {**given, grad: ONES})
        rounding = (mine - value_of(own, {**moved(given), grad: ONES})).abs()
        is_near = (mine - value).abs() <= 1e-9 * value.abs() + 1e3 * rounding + 1e-12
        # of NaN some of torch's vectors are NaN, where what is left behind them is not
        is_torchs = value.isnan() == backwards[name].flip(0).isnan()
        bad = is_torchs & ~(is_near | ~mine.isfinite() & ~value.isfinite())
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


ROW_KINDS = {**dict.fromkeys("xyzsi", "tensor"), "n": "int"}
OF_ROWS = frozenset({"s", "i"})


def of_rows():
    generator = torch.Generator().manual_seed(11)
    x, y, s = (
        torch.randn(size, generator=generator, dtype=torch.float64) for size in ((3, 5), (3, 5), 3)
    )
    z = torch.randn((3, 10), generator=generator, dtype=torch.float64)
    return {"x": x, "y": y, "z": z, "s": s, "i": torch.tensor([4, 0, 2]), "n": 5}


def is_near(mine, other, rounding):
    close = (mine - other).abs() <= 1e-9 * other.abs() + 1e4 * rounding + 1e-9
    return (close | ~mine.isfinite() | ~other.isfinite()).all()


def compare_rows(tree, rows, given):
    """Values, gradients and the tangent of an expression of rows, and autograd's."""
    wanted = [name for name in names(tree) if name in "xyzs"]
    moves = {n: given[n] * (1 + 4e-16) for n in wanted}
    is_row = extent(tree, ROW_KINDS) is not Extent.ELEMENT
    shape = (3,) if is_row else (3, 5 * len(pieces(tree)))

    def value(part, of):
        found = value_of(part, of)
        return found[..., 0] if is_row else found.expand(shape)

    leaves = {n: given[n].clone().requires_grad_() for n in wanted}
    result = value(tree, {**given, **leaves})
    simple = value(of_primitives(tree, ROW_KINDS), given)
    assert is_near(simple, result.detach(), (value(tree, {**given, **moves}) - result).abs())
    if not result.requires_grad:
        for own in gradients({"grad": tree}, wanted, rows).values():
            assert own is None or not value_of(own, {**given, "grad": torch.ones(shape)}).any()
        return
    grad = torch.linspace(0.5, 1.5, result.numel(), dtype=torch.float64).reshape(shape)
    expected = torch.autograd.grad(result, list(leaves.values()), grad, allow_unused=True)
    found = gradients({"grad": tree}, wanted, rows)
    directions = {f"{n}_t": torch.sin(given[n]) for n in wanted}
    along = 0.0
    for name, torchs in zip(wanted, expected, strict=True):
        own, torchs = found[name], torch.zeros_like(given[name]) if torchs is None else torchs
        along = along + (torchs * directions[f"{name}_t"]).sum()
        if own is None:
            assert not torchs.nan_to_num().any()
            continue
        mine, moved_too = (value_of(own, {**g, "grad": grad}) for g in (given, {**given, **moves}))
        if name == "s":
            mine, moved_too = mine[..., 0], moved_too[..., 0]
        assert is_near(mine, torchs, (mine - moved_too).abs()), (name, text(own), mine, torchs)
    own = tangent(tree, {n: rows.named(f"{n}_t") for n in wanted}, rows)
    if own is not None:
        mine, moved_too = (
            (value(own, {**g, **directions}) * grad).sum() for g in (given, {**given, **moves})
        )
        assert is_near(mine, along, (mine - moved_too).abs() + 1e-9), (text(own), mine, along)


@ANY
@given(ROWS)
def test_values_and_derivatives_of_rows_are_autograds(expression):
    try:
        tree = read(expression, ROW_KINDS, of_rows=OF_ROWS)
    except Mistake as mistake:
        known = ("is one number, and no row", "no number", "joins rows, at least two")
        assert any(words in mistake.message for words in known)
        return
    if extent(tree, ROW_KINDS) is Extent.CALL or not {*"xyz"} & {*names(tree)}:
        return
    assert read(text(tree), ROW_KINDS, of_rows=OF_ROWS) == tree
    more = {f"{n}_t": "tensor" for n in "xyzs"}
    is_row = extent(tree, ROW_KINDS) is Extent.ROW
    rows = Arguments(
        {**ROW_KINDS, **more, "grad": "tensor"}, OF_ROWS | {"s_t"} | ({"grad"} if is_row else set())
    )
    compare_rows(tree, rows, of_rows())


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
    "x * arange(n)": (4, "'arange' is of rows"),
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


def test_what_stands_many_times_takes_no_longer_for_it():
    """Twenty expressions of two of the one before: a million of the first, of which one is read."""
    local = {"a": read("sigmoid(x)", KINDS)}
    for _ in range(20):
        local["a"] = read("a * (1 - a)", KINDS, local)
    tree = local["a"]
    assert tree is read("a", KINDS, local) and len(in_order(tree)) == 43
    (first,) = gradients({"grad": tree}, ["x"]).values()
    (second,) = gradients({"again": first}, ["x"]).values()
    assert len(in_order(second)) < 1000
    assert len(text(second, 500)) <= 503
