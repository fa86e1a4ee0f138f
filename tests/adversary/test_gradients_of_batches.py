# SPDX-License-Identifier: BSD-3-Clause
"""Gradients around torch.vmap of what writes to its arguments, beside the same made of ATen's
operators; and arguments that are written to and share memory, which no formula knows."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from library_build import build_and_load
from torch import vmap
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vjp
from torch.testing import assert_close

pytestmark = pytest.mark.usefixtures("without_vmap_warnings")


@pytest.fixture(scope="session")
def ops():
    """The operators of vmaptest/."""
    return build_and_load(Path(__file__).parent / "vmaptest", "vmaptest_library.so")


def grown(x: torch.Tensor, s: float = 1) -> torch.Tensor:
    return x.mul_(s).exp_()


def lay(a: torch.Tensor, x: torch.Tensor, b: torch.Tensor):
    return b.add_(torch.sin(x)), x * 2, a.mul_(x)


def x_of(*shape: int) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.double, generator=torch.Generator().manual_seed(0)) / 2


# How a function of one example is called on a batch, and differentiated.
AROUND = {
    "grad(vmap)": lambda f, x: grad(lambda x: vmap(f)(x).sum())(x),
    "grad(vmap), last": lambda f, x: grad(lambda x: vmap(f, -1)(x).sum())(x),
    "grad(vmap(vmap))": lambda f, x: grad(lambda x: vmap(vmap(f))(x).sum())(x.expand(2, *x.shape)),
    "grad(grad(vmap))": lambda f, x: grad(lambda x: grad(lambda x: vmap(f)(x).sum())(x).sum())(x),
    "vjp(vmap)": lambda f, x: vjp(vmap(f), x)[1](torch.ones_like(vmap(f)(x)))[0],
    "jacrev(vmap)": lambda f, x: jacrev(vmap(f))(x),
    "jacfwd(vmap)": lambda f, x: jacfwd(vmap(f))(x),
    "hessian(vmap)": lambda f, x: hessian(lambda x: vmap(f)(x).sum())(x),
    "jvp(vmap)": lambda f, x: jvp(vmap(f), (x,), (torch.ones_like(x),)),
    "vmap(grad)": lambda f, x: vmap(grad(lambda x: f(x).sum()))(x),
    "vmap(grad(vmap))": lambda f, x: vmap(grad(lambda x: vmap(f)(x).sum()))(x.expand(2, *x.shape)),
    "backward of vmap": lambda f, x: torch.autograd.grad(vmap(f)(y := leaf(x)).sum(), y)[0],
}
# What of an example is written to.
PLACES = {
    "clone": lambda f, x: f(x.clone()),
    "clone of a transposed one": lambda f, x: f(x.mT.clone()),
    "transposed": lambda f, x: f(x.clone().mT),
    "every second": lambda f, x: f(x.clone()[..., ::2]),
    "its base": lambda f, x: (f((y := x.clone())[0]), y * y)[1],
}


def leaf(x: torch.Tensor) -> torch.Tensor:
    return x.clone().requires_grad_()


@pytest.mark.parametrize("name", ["grown_", "grown_rows_", "grown_each_"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("around", AROUND)
def test_in_place_forms_whose_formula_reads_the_result(around, place, name, ops) -> None:
    op, x = getattr(ops, name), x_of(3, 2, 4)
    actual = AROUND[around](lambda x: PLACES[place](lambda y: op(y, 0.5), x), x)
    expected = AROUND[around](lambda x: PLACES[place](lambda y: grown(y, 0.5), x), x)
    assert_close(actual, expected)


IN_PLACE = {
    "neg_": (), "sin_": (), "cos_": (), "sigmoid_": (), "cumsum_": (1,), "mul_": (2.5,),
    "add_": (0.5,),
}  # fmt: skip


@pytest.mark.parametrize("name", IN_PLACE)
@pytest.mark.parametrize("around", AROUND)
def test_the_in_place_forms_of_myns(around, name) -> None:
    import torchext.ops  # noqa: F401  registers them

    numbers = [torch.tensor(n) if isinstance(n, float) else n for n in IN_PLACE[name]]
    ours, x = getattr(torch.ops.myns, name), x_of(3, 2, 4)
    actual = AROUND[around](lambda x: ours(x.clone(), *numbers), x)
    expected = AROUND[around](lambda x: getattr(x.clone(), name)(*numbers), x)
    assert_close(actual, expected)


@pytest.mark.parametrize("name", ["lay", "lay_each"])
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("around", AROUND)
def test_several_written_arguments(around, rank, name, ops) -> None:
    def call(op, x):
        found = op(x.clone() * 2, x, x.clone() + 1)
        return sum((i + 1) * part for i, part in enumerate(found))

    if rank == 1 and "vmap(vmap)" in around:
        rank = 2
    x = x_of(*(3, 2, 4, 2)[: rank + 1])
    actual = AROUND[around](lambda x: call(getattr(ops, name), x), x)
    assert_close(actual, AROUND[around](lambda x: call(lay, x), x))


@pytest.mark.parametrize("name", ["grown_", "grown_rows_", "grown_each_"])
def test_examples_without_elements_share_no_memory(name, ops) -> None:
    x = torch.empty_strided((2, 0, 3), (0, 3, 1), dtype=torch.double)
    op = getattr(ops, name)
    assert vmap(lambda a: op(a, 2.0).sum())(x).tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="single memory location"):
        vmap(lambda a: op(a, 2.0).sum())(x_of(2, 3).expand(2, 2, 3))


# Two arguments that are written to and share memory, by what each is of the other.
SHARED = {
    "the same": lambda a: (a, a),
    "a view of it": lambda a: (a, a.view(3)),
    "turned round": lambda a: (a, a.as_strided((3,), (1,))),
}


@pytest.mark.parametrize("shared", SHARED)
def test_derivatives_of_what_is_written_twice_are_refused(shared, ops) -> None:
    import torch.autograd.forward_ad as forward_ad

    said = "lay_each: '.*' and '.*' are written to and share memory"
    x = x_of(3)
    with pytest.raises(RuntimeError, match=f"{said}|is a view, and an operator with several"):
        a, b = SHARED[shared](leaf(x).clone())
        ops.lay_each(a, x, b)
    with pytest.raises(RuntimeError, match=said):
        a, b = SHARED[shared](x.clone())
        ops.lay_each(a.detach(), leaf(x), b.detach())
    with forward_ad.dual_level(), pytest.raises(RuntimeError, match=said):
        a, b = SHARED[shared](x.clone())
        ops.lay_each(a, forward_ad.make_dual(x, x), b)
    a, b = SHARED[shared](x.clone())  # nothing is recorded: as the kernel does it
    assert_close(ops.lay_each(a, x, b)[0], x * x + x.sin())
    base = x_of(6)  # whose halves lie apart
    with forward_ad.dual_level():
        results = ops.lay_each(base[:3], forward_ad.make_dual(x, x), base[3:])
        assert_close(forward_ad.unpack_dual(results[0]).tangent, x * x.cos())
