# SPDX-License-Identifier: BSD-3-Clause
"""The helpers of torchext/derivatives/linalg_solve.h against aten's autograd."""

import pytest
import torch
from aten_oracle import sample
from linalg_oracle import (
    assert_backward,
    assert_gradcheck,
    assert_jvp,
    assert_maps,
    assert_same_gradients,
    hermitian,
    ops,
    over_dtypes,
)
from torch.autograd import forward_ad
from torch.testing import assert_close

aten = torch.ops.aten
linalg = torch.linalg

over_uplo = pytest.mark.parametrize("upper", [False, True])
over_sides = pytest.mark.parametrize("left", [True, False])
over_units = pytest.mark.parametrize("unitriangular", [False, True])
# the shapes of the matrix and of the right-hand side in A X = B
SYSTEMS = [
    ((3, 3), (3, 2)),
    ((1, 1), (1, 1)),
    ((2, 3, 3), (2, 3, 3)),
    ((0, 0), (0, 2)),
    ((3, 3), (3, 0)),
    ((0, 2, 2), (0, 2, 1)),
]
BROADCAST = [((2, 3, 3), (3, 2)), ((3, 3), (2, 3, 2)), ((2, 1, 3, 3), (4, 3, 2))]
over_systems = pytest.mark.parametrize(("A_shape", "B_shape"), SYSTEMS)
over_broadcast_systems = pytest.mark.parametrize(("A_shape", "B_shape"), SYSTEMS + BROADCAST)


def summed(helper):
    """What the engine makes of gradients of a broadcast shape."""

    def sum_to_inputs(grads, inputs, outputs):
        found = helper(grads, inputs, outputs)
        return tuple(
            g if g is None else g.sum_to_size(x.shape) for g, x in zip(found, inputs, strict=True)
        )

    return sum_to_inputs


def system(A_shape, B_shape, dtype, left=True):
    A = hermitian(*A_shape, dtype=dtype) + sample(*A_shape, dtype=dtype, seed=1)
    B = sample(*B_shape, dtype=dtype, seed=2)
    return A, B if left else B.mT.contiguous()


def only_one(helper, mask, grads, inputs, outputs):
    """The helper gives under the mask just what it gives without."""
    everything = helper(grads, inputs, outputs, [True, True])
    found = helper(grads, inputs, outputs, mask)
    for wanted, ours, full in zip(mask, found, everything, strict=True):
        assert (ours is not None) == wanted
        if wanted:
            assert_close(ours, full)


over_masks = pytest.mark.parametrize("mask", [[True, False], [False, True], [False, False]])


@over_dtypes
@over_uplo
@over_broadcast_systems
def test_cholesky_solve(A_shape, B_shape, upper, dtype):
    factor = linalg.cholesky(hermitian(*A_shape, dtype=dtype), upper=upper)
    B = sample(*B_shape, dtype=dtype, seed=2)

    def helper(grads, ins, outs):
        return ops.cholesky_solve_backward(grads[0], *ins, outs[0], upper, [True, True])

    assert_backward(lambda b, f: torch.cholesky_solve(b, f, upper), summed(helper), B, factor)
    assert_jvp(
        lambda b, f: torch.cholesky_solve(b, f, upper),
        lambda tangents, ins, outs: ops.cholesky_solve_jvp(outs[0], ins[1], *tangents[::-1], upper),
        B,
        factor,
    )


@over_masks
def test_cholesky_solve_computes_what_the_mask_asks_for(mask):
    A, B = system((3, 3), (3, 2), torch.float64)

    def helper(grads, ins, outs, mask):
        return ops.cholesky_solve_backward(grads, *ins, outs, False, mask)

    only_one(helper, mask, B, (B, A), torch.cholesky_solve(B, A))


@over_dtypes
@over_sides
@pytest.mark.parametrize("adjoint", [False, True])
@over_systems
def test_lu_solve(A_shape, B_shape, adjoint, left, dtype):
    A, B = system(A_shape, B_shape, dtype, left)
    LU, pivots = linalg.lu_factor(A)
    options = {"left": left, "adjoint": adjoint}

    def solve(LU, B):
        return linalg.lu_solve(LU, pivots, B, **options)

    def helper(grads, ins, outs):
        LU_grad = ops.linalg_lu_solve_LU(grads[0], ins[0], pivots, outs[0], left, adjoint)
        return LU_grad, linalg.lu_solve(ins[0], pivots, grads[0], left=left, adjoint=not adjoint)

    assert_backward(solve, helper, LU, B)
    assert_jvp(
        solve,
        lambda tangents, ins, outs: ops.linalg_lu_solve_jvp(
            outs[0], ins[0], pivots, *tangents, left, adjoint
        ),
        LU,
        B,
    )


VECTORS = [((3, 3), (3,)), ((2, 3, 3), (2, 3)), ((2, 3, 3), (3,)), ((3, 3, 3), (3, 3))]


def solve_backward(left):
    def helper(grads, ins, outs):
        X, LU, pivots, _ = outs
        return ops.linalg_solve_backward(grads[0], X, ins[0], LU, pivots, left, True)

    return summed(helper)


@over_dtypes
@over_sides
@over_broadcast_systems
def test_solve(A_shape, B_shape, left, dtype):
    if not left and len(A_shape) == len(B_shape) + 1:
        pytest.skip("aten takes the transposed right-hand side for vectors")
    A, B = system(A_shape, B_shape, dtype, left)
    assert_backward(lambda a, b: aten._linalg_solve_ex(a, b, left=left), solve_backward(left), A, B)

    def helper(tangents, ins, outs):
        _, LU, pivots, _ = aten._linalg_solve_ex(*ins, left=left)
        return ops.linalg_solve_jvp(*tangents, outs[0], LU, pivots, left)

    assert_jvp(lambda a, b: linalg.solve(a, b, left=left), helper, A, B)


@over_dtypes
@pytest.mark.parametrize(("A_shape", "B_shape"), VECTORS)
def test_solve_with_vectors(A_shape, B_shape, dtype):
    A = hermitian(*A_shape, dtype=dtype) + sample(*A_shape, dtype=dtype, seed=1)
    B = sample(*B_shape, dtype=dtype, seed=2)
    assert_backward(aten._linalg_solve_ex, solve_backward(True), A, B)

    def helper(tangents, ins, outs):
        _, LU, pivots, _ = aten._linalg_solve_ex(*ins)
        return ops.linalg_solve_jvp(*tangents, outs[0], LU, pivots, True)

    assert_jvp(linalg.solve, helper, A, B)


@pytest.mark.parametrize("A_requires_grad", [False, True])
@pytest.mark.parametrize("B_requires_grad", [False, True])
def test_solve_computes_the_gradients_that_are_required(A_requires_grad, B_requires_grad):
    A, B = system((3, 3), (3, 2), torch.float64)
    A.requires_grad_(A_requires_grad)
    X, LU, pivots, _ = aten._linalg_solve_ex(A, B)
    found = ops.linalg_solve_backward(B, X, A, LU, pivots, True, B_requires_grad)
    assert [x is not None for x in found] == [A_requires_grad, B_requires_grad]
    nothing = ops.linalg_solve_backward(None, X, A, LU, pivots, True, True)
    assert nothing == (None, None)


@over_dtypes
@over_uplo
@over_units
@pytest.mark.parametrize("transpose", [False, True])
@over_broadcast_systems
@pytest.mark.filterwarnings("ignore:.*triangular_solve is deprecated")
def test_triangular_solve(A_shape, B_shape, transpose, unitriangular, upper, dtype):
    A, B = system(A_shape, B_shape, dtype)
    flags = (upper, transpose, unitriangular)

    def helper(grads, ins, outs):
        return ops.triangular_solve_backward(*grads, *ins, outs[0], *flags, [True, True])

    def solve(b, a):
        return torch.triangular_solve(b, a, *flags)

    assert_backward(solve, summed(helper), B, A)
    assert_backward(solve, summed(helper), B, A, loss=lambda X, _: X.abs().square().sum())

    def tangent(tangents, ins, outs):
        return ops.triangular_solve_jvp(outs[0], ins[1], tangents[1], tangents[0], *flags)

    # The forward formula of aten takes all of the tangent of A, and never transposes it.
    directions = (sample(*B_shape, dtype=dtype, seed=3), sample(*A_shape, dtype=dtype, seed=4))
    X, expected = torch.autograd.functional.jvp(lambda b, a: solve(b, a)[0], (B, A), directions)
    assert_close(tangent(directions, (B, A), (X,)), expected)


@over_masks
def test_triangular_solve_computes_what_the_mask_asks_for(mask):
    A, B = system((3, 3), (3, 2), torch.float64)

    def helper(grads, ins, outs, mask):
        return ops.triangular_solve_backward(*grads, *ins, outs, True, False, False, mask)

    X = linalg.solve_triangular(A, B, upper=True)
    only_one(helper, mask, (B, A), (B, A), X)
    only_one(helper, mask, (B, None), (B, A), X)
    found = helper((None, A), (B, A), X, [True, True])
    assert_same_gradients(found, (None, A))
    assert helper((None, None), (B, A), X, [True, True]) == (None, None)


@over_dtypes
@over_uplo
@over_units
@over_sides
@over_broadcast_systems
def test_solve_triangular(A_shape, B_shape, left, unitriangular, upper, dtype):
    A, B = system(A_shape, B_shape, dtype, left)
    options = {"upper": upper, "left": left, "unitriangular": unitriangular}
    flags = (upper, left, unitriangular)

    def solve(a, b):
        return linalg.solve_triangular(a, b, **options)

    def helper(grads, ins, outs):
        return ops.linalg_solve_triangular_backward(grads[0], ins[0], outs[0], *flags, [True, True])

    assert_backward(solve, summed(helper), A, B)
    assert_jvp(
        solve,
        lambda tangents, ins, outs: ops.linalg_solve_triangular_forward_AD(
            *tangents, ins[0], outs[0], *flags
        ),
        A,
        B,
    )


@over_masks
def test_solve_triangular_computes_what_the_mask_asks_for(mask):
    A, B = system((3, 3), (3, 2), torch.float64)

    def helper(grads, ins, outs, mask):
        return ops.linalg_solve_triangular_backward(grads, ins[0], outs, True, True, False, mask)

    only_one(helper, mask, B, (A, B), linalg.solve_triangular(A, B, upper=True))
    assert helper(None, (A, B), B, [True, True]) == (None, None)


@over_dtypes
def test_reverse_helpers_differentiate_in_both_modes(dtype):
    A, B = system((2, 2), (2, 1), dtype)
    g = sample(2, 1, dtype=dtype, seed=3)

    def solve_grads(g, a, b):
        X, LU, pivots, _ = aten._linalg_solve_ex(a, b)
        return ops.linalg_solve_backward(g, X, a, LU, pivots, True, True)

    # gradcheck's dual numbers do not require the gradients that the helper gives.
    assert_gradcheck(solve_grads, g, A, B, forward=False)
    pivots = linalg.lu_factor(A)[1]
    assert_gradcheck(
        lambda g, LU, X: ops.linalg_lu_solve_LU(g, LU, pivots, X, True, False), g, A, B
    )
    both = [True, True]
    assert_gradcheck(
        lambda g, a, X: ops.cholesky_solve_backward(g, X, a.tril(), X, False, both), g, A, B
    )
    assert_gradcheck(
        lambda g, a, X: ops.linalg_solve_triangular_backward(
            g, a.triu(), X, True, True, False, both
        ),
        g,
        A,
        B,
    )


@over_dtypes
def test_solve_is_differentiated_by_dual_numbers_where_no_graph_is_recorded(dtype):
    A, B = system((3, 3), (3, 2), dtype)
    tangent = sample(3, 3, dtype=dtype, seed=4)

    def gradient(a):
        gB = linalg.solve(a.mH, B)
        return -gB @ linalg.solve(a, B).mH

    expected = torch.func.jvp(gradient, (A,), (tangent,))[1]
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(A.clone().requires_grad_(), tangent)
        X, LU, pivots, _ = aten._linalg_solve_ex(dual, B)
        with torch.no_grad():
            gA, _ = ops.linalg_solve_backward(B, X, dual, LU, pivots, True, True)
        assert_close(forward_ad.unpack_dual(gA).tangent, expected)


@over_dtypes
def test_under_vmap(dtype):
    A, B = system((4, 3, 3), (4, 3, 2), dtype)
    X, LU, pivots, _ = aten._linalg_solve_ex(A, B)
    dA = sample(4, 3, 3, dtype=dtype, seed=4)
    assert_maps(lambda *x: ops.linalg_solve_backward(*x, True, True)[1], B, X, A, LU, pivots)
    assert_maps(lambda *x: ops.linalg_solve_jvp(*x, True), dA, B, X, LU, pivots)
    assert_maps(lambda *x: ops.linalg_lu_solve_LU(*x, True, True), B, LU, pivots, X)
    assert_maps(lambda *x: ops.linalg_lu_solve_jvp(*x, True, True), X, LU, pivots, dA, B)
    both = [True, True]
    assert_maps(lambda *x: ops.cholesky_solve_backward(*x, False, both), B, X, A, X)
    assert_maps(
        lambda *x: ops.linalg_solve_triangular_backward(*x, True, True, False, both), B, A, X
    )
    assert_maps(
        lambda *x: ops.triangular_solve_backward(*x, True, True, False, both), B, A, X, A, X
    )
