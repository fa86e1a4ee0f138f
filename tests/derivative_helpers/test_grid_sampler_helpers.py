# SPDX-License-Identifier: BSD-3-Clause
"""Second derivatives of grid sampling, against torch's own operators."""

import pytest
import torch
from aten_oracle import assert_differentiable, assert_same, needs_formula, sample

from torchext.compat import version

OPS, ATEN = torch.ops.derivative_helpers, torch.ops.aten
LINEAR, NEAREST, CUBIC = 0, 1, 2
ZEROS, BORDER, REFLECTION = 0, 1, 2
ALL = [True, True, True]
KINDS = [(2, LINEAR), (2, NEAREST), (2, CUBIC), (3, LINEAR), (3, NEAREST)]

over_kinds = pytest.mark.parametrize("dim, mode", KINDS)
over_paddings = pytest.mark.parametrize("padding", [ZEROS, BORDER, REFLECTION])
over_alignments = pytest.mark.parametrize("align", [False, True])
against_aten = needs_formula("grid_sampler_2d_backward")


def problem(dim, dtype=torch.float64, batch=2, extent=1.7):
    """grad_output, input and a grid that leaves the input, all of different sizes."""
    points, size = (2, 3, 4)[-dim:], (3, 4, 5)[:dim]
    x = sample(batch, 3, *size, dtype=dtype)
    grid = (sample(batch, *points, dim, seed=1).sigmoid() * 2 - 1) * extent
    return sample(batch, 3, *points, dtype=dtype, seed=2), x, grid.to(dtype)


def assert_is_double_backward(dim, options, inputs, use=(True, True)):
    """The helper gives the gradients of the operator's backward, from those of `use`."""
    backward = getattr(ATEN, f"grid_sampler_{dim}d_backward")
    helper = getattr(OPS, f"grid_sampler_{dim}d_double_backward")
    leaves = [t.detach().clone().requires_grad_() for t in inputs]
    results = backward(*leaves, *options, [True, True])
    grads = [sample(*t.shape, dtype=t.dtype, seed=5) for t in results]
    grads = [g if is_used else None for g, is_used in zip(grads, use, strict=True)]
    used = [t for t, g in zip(results, grads, strict=True) if g is not None]
    given = [g for g in grads if g is not None]
    expected = torch.autograd.grad(used, leaves, given, allow_unused=True)
    assert_same(helper(*grads, *inputs, *options, ALL), expected)


@against_aten
@over_kinds
@over_paddings
@over_alignments
def test_gradients(dim, mode, padding, align):
    assert_is_double_backward(dim, (mode, padding, align), problem(dim))


@against_aten
@over_kinds
@over_paddings
@over_alignments
def test_gradients_far_outside(dim, mode, padding, align):
    assert_is_double_backward(dim, (mode, padding, align), problem(dim, extent=9.0))


@against_aten
@over_kinds
@pytest.mark.parametrize("use", [(True, False), (False, True)])
def test_gradients_from_one_gradient(dim, mode, use):
    assert_is_double_backward(dim, (mode, ZEROS, True), problem(dim), use)


@against_aten
@over_kinds
def test_gradients_in_single_precision(dim, mode):
    assert_is_double_backward(dim, (mode, REFLECTION, False), problem(dim, torch.float32))


@against_aten
@over_kinds
def test_gradients_of_no_samples(dim, mode):
    assert_is_double_backward(dim, (mode, BORDER, True), problem(dim, batch=0))


@against_aten
@pytest.mark.parametrize("mode", [LINEAR, CUBIC])
@over_paddings
@over_alignments
def test_gradients_in_an_input_of_one_element(mode, padding, align):
    g, _, grid = problem(2)
    assert_is_double_backward(2, (mode, padding, align), (g, sample(2, 3, 1, 1), grid))


@over_kinds
def test_nothing_comes_of_nothing(dim, mode):
    helper = getattr(OPS, f"grid_sampler_{dim}d_double_backward")
    assert helper(None, None, *problem(dim), mode, ZEROS, True, ALL) == (None, None, None)


@pytest.mark.parametrize("needed", range(3))
def test_only_what_is_needed_is_computed(needed):
    g, x, grid = problem(2)
    arguments = sample(*x.shape), sample(*grid.shape), g, x, grid, LINEAR, ZEROS, True
    mask = [i == needed for i in range(3)]
    everything = OPS.grid_sampler_2d_double_backward(*arguments, ALL)
    expected = [t if m else None for t, m in zip(everything, mask, strict=True)]
    assert_same(OPS.grid_sampler_2d_double_backward(*arguments, mask), expected)


def test_cubic_interpolation_has_two_dimensions():
    g, x, grid = problem(3)
    with pytest.raises(RuntimeError, match="cubic interpolation takes an input of 4 dimensions"):
        OPS.grid_sampler_3d_double_backward(None, grid, g, x, grid, CUBIC, ZEROS, True, ALL)


@against_aten
@pytest.mark.parametrize("dim, mode", [(2, LINEAR), (2, CUBIC), (3, LINEAR)])
@over_paddings
def test_gradients_differentiate_again(dim, mode, padding):
    helper = getattr(OPS, f"grid_sampler_{dim}d_double_backward")
    x = sample(1, 1, *(3, 2, 3)[:dim])
    grid = sample(1, *([1] * (dim - 1)), 2, dim, seed=1)
    g = sample(1, 1, *([1] * (dim - 1)), 2, seed=2)
    grads = sample(*x.shape, seed=3), sample(*grid.shape, seed=4)
    # torch has no tangents of grid sampling.
    assert_differentiable(
        lambda *inputs: helper(*inputs, mode, padding, True, ALL), *grads, g, x, grid, forward=False
    )


@pytest.mark.skipif(
    version() < (2, 13),
    reason="torch 2.11 cannot batch the backward for the grid alone",
)
@pytest.mark.parametrize("dim, mode", [(2, LINEAR), (2, CUBIC), (3, LINEAR)])
@pytest.mark.parametrize("batched", range(5))
def test_gradients_vmap_over_each_argument(dim, mode, batched):
    helper = getattr(OPS, f"grid_sampler_{dim}d_double_backward")
    g, x, grid = problem(dim)
    given = [sample(*x.shape, seed=3), sample(*grid.shape, seed=4), g, x, grid]
    stack = torch.stack([given[batched], 0.5 * given[batched]])

    def function(t):
        arguments = [*given[:batched], t, *given[batched + 1 :]]
        return helper(*arguments, mode, BORDER, False, ALL)

    expected = [torch.stack(t) for t in zip(*map(function, stack), strict=True)]
    assert_same(torch.func.vmap(function)(stack), expected)
