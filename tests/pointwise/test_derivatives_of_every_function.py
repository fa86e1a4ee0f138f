# SPDX-License-Identifier: BSD-3-Clause
"""The derivatives of every function of expressions in C++, one by one, beside torch's own."""

import sys
from pathlib import Path

import pytest
import torch
from every_path import PATHS
from test_every_function import ENTRIES, FLOATS, expressions
from torch.autograd import gradcheck, gradgradcheck
from torch.func import grad, jvp
from torch.testing import assert_close

sys.path.insert(0, str(Path(__file__).parents[1] / "fused"))
from torch_values import value_of

from codegen.fused.tree import text


def has_gradient(name, place):
    """Whether torch has one that is not zero, as a step's is; in forward mode, since a backward
    while tests are collected would be one before the test device is there."""
    arguments, trees = expressions(name)
    given = tuple(torch.rand(20) for _ in arguments)

    def values(*given):
        return value_of(trees[place], dict(zip(arguments, given, strict=True)))

    return jvp(values, given, tuple(map(torch.rand_like, given)))[1].any().item()


# An operator, and the place of the result.
SMOOTH = {
    f"{name}: {text(tree)}": (name, place)
    for name in ENTRIES
    for place, tree in enumerate(expressions(name)[1])
    if has_gradient(name, place)
}
ANY = pytest.mark.parametrize("result", SMOOTH)


def case(library, result):
    """Ours and torch's of one result, of as many tensors."""
    name, place = SMOOTH[result]
    arguments, trees = expressions(name)

    def torchs(*given):
        return value_of(trees[place], dict(zip(arguments, given, strict=True)))

    return (lambda *given: getattr(library, name)(*given)[place]), torchs, len(arguments)


def randoms(count, dtype=torch.float64, size=60):
    generator = torch.Generator().manual_seed(5)
    return [(torch.randn(size, generator=generator) * 2).to(dtype) for _ in range(count)]


def gradients(function, given, outer):
    leaves = [x.detach().requires_grad_() for x in given]
    found = torch.autograd.grad(function(*leaves), leaves, outer, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for x, g in zip(leaves, found)]


def same(own, expected, **tolerances):
    assert_close(own, expected, equal_nan=True, **tolerances)


def test_most_functions_have_a_gradient():
    assert len(SMOOTH) > 55


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@ANY
def test_gradients(pointwisetest, result, dtype):
    ours, torchs, count = case(pointwisetest, result)
    *given, outer = randoms(count + 1, dtype)
    own = gradients(ours, given, outer)
    wide = gradients(torchs, [x.double() for x in given], outer.double())
    computed = torch.finfo(torch.promote_types(dtype, torch.float32)).eps
    bound = {"rtol": 64 * computed + torch.finfo(dtype).eps, "atol": 64 * computed}
    for mine, expected in zip(own, wide, strict=True):
        assert mine.dtype == dtype
        same(mine, expected.to(dtype), **bound)


@ANY
def test_tangents(pointwisetest, result):
    ours, torchs, count = case(pointwisetest, result)
    given, along = randoms(2 * count)[:count], randoms(2 * count)[count:]
    same(*(jvp(f, tuple(given), tuple(along))[1] for f in (ours, torchs)))


@ANY
def test_second_derivatives(pointwisetest, result):
    """Reverse over reverse, and forward over reverse."""
    ours, torchs, count = case(pointwisetest, result)
    given, along = randoms(2 * count)[:count], randoms(2 * count)[count:]

    def gradient(function):
        wanted = tuple(range(count))
        return grad(lambda *x: (function(*x) * x[-1].cos()).sum(), wanted)

    def of_gradient(function):
        first = gradient(function)
        wanted = tuple(range(count))
        return grad(lambda *x: sum((g * a).sum() for g, a in zip(first(*x), along)), wanted)

    same(*(of_gradient(f)(*given) for f in (ours, torchs)))
    same(*(jvp(gradient(f), tuple(given), tuple(along))[1] for f in (ours, torchs)))


@ANY
def test_numerical_derivatives(pointwisetest, result):
    """At points that every function has, but for one that begins at 1."""
    ours, _, count = case(pointwisetest, result)
    given = [
        (torch.rand(4, dtype=torch.float64) * 0.6 + 0.2 + ("acosh" in result)).requires_grad_()
        for _ in range(count)
    ]
    assert gradcheck(ours, given, check_forward_ad=True, check_batched_grad=True, fast_mode=True)
    assert gradgradcheck(ours, given, check_fwd_over_rev=True, fast_mode=True)


@pytest.mark.parametrize("path", [path for path in PATHS if path != "kernel"])
@pytest.mark.parametrize("name", ENTRIES)
def test_gradients_of_batches_and_compiled(pointwisetest, name, path):
    places = [place for one, place in SMOOTH.values() if one == name]
    arguments, trees = expressions(name)
    given = randoms(len(arguments))

    def every(function):
        def of_one(place):
            return grad(lambda *x: function(*x)[place].sum(), tuple(range(len(arguments))))

        return lambda *x: [of_one(place)(*x) for place in places]

    def torchs(*x):
        return [value_of(tree, dict(zip(arguments, x, strict=True))) for tree in trees]

    same(PATHS[path](every(getattr(pointwisetest, name)))(*given), every(torchs)(*given))
