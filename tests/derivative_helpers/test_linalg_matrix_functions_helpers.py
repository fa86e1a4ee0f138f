# SPDX-License-Identifier: BSD-3-Clause
"""The helpers of torchext/derivatives/linalg_matrix_functions.h against torch's autograd."""

import pytest
import torch
from aten_oracle import sample
from linalg_oracle import (
    assert_backward,
    assert_gradcheck,
    assert_jvp,
    assert_maps,
    hermitian,
    only,
    ops,
    over_dtypes,
)
from torch.testing import assert_close

linalg = torch.linalg

over_squares = pytest.mark.parametrize("shape", [(3, 3), (1, 1), (2, 4, 4), (0, 0), (0, 2, 2)])


@over_dtypes
@over_squares
def test_matrix_exp(shape, dtype):
    A = sample(*shape, dtype=dtype)
    assert_backward(
        torch.matrix_exp,
        lambda grads, ins, _: ops.linalg_matrix_exp_differential(ins[0], grads[0], True),
        A,
    )
    assert_jvp(
        torch.matrix_exp,
        lambda tangents, ins, _: ops.linalg_matrix_exp_differential(ins[0], tangents[0], False),
        A,
    )


# torch 2.13 has neither of the following two operators: write them with those it has.
def square_root(A):
    values, V = linalg.eigh(A)
    return (V * values.sqrt().unsqueeze(-2)) @ V.mH


def polar(A):
    U, S, Vh = linalg.svd(A, full_matrices=False)
    return U @ Vh, (Vh.mH * S.unsqueeze(-2)) @ Vh


@over_dtypes
@over_squares
def test_square_root(shape, dtype):
    A = hermitian(*shape, dtype=dtype)
    assert_backward(
        square_root,
        lambda grads, ins, _: ops.linalg_matrix_sqrth_differential(ins[0], grads[0]),
        A,
    )

    # The tangent of a Hermitian matrix is one.
    tangent = hermitian(*shape, dtype=dtype, seed=1)
    expected = torch.func.jvp(square_root, (A,), (tangent,))[1]
    assert_close(ops.linalg_matrix_sqrth_differential(A, tangent), expected)


def test_square_root_of_a_multiple_of_the_identity():
    G = sample(3, 3)
    actual = ops.linalg_matrix_sqrth_differential(4 * torch.eye(3).double(), G)
    assert_close(actual, (G + G.mH) / 8)


over_tall = pytest.mark.parametrize(
    "shape", [(3, 3), (5, 3), (1, 1), (2, 4, 3), (3, 0), (0, 0), (0, 3, 2)]
)


@over_dtypes
@pytest.mark.parametrize("loss", [only(0), only(1), only(0, 1)], ids=["U", "H", "U, H"])
@over_tall
def test_polar(shape, loss, dtype):
    assert_backward(
        polar,
        lambda grads, ins, outs: ops.linalg_polar_backward(*grads, *ins, *outs),
        sample(*shape, dtype=dtype),
        loss=loss,
    )


@over_dtypes
@over_tall
def test_polar_tangents(shape, dtype):
    assert_jvp(
        polar,
        lambda tangents, ins, outs: ops.linalg_polar_jvp(*tangents, *ins, *outs),
        sample(*shape, dtype=dtype),
    )


def test_polar_with_equal_singular_values():
    A = 2 * torch.eye(3).double()
    dU, dH = ops.linalg_polar_jvp(sample(3, 3), A, A / 2, A)
    assert_close(dU, (sample(3, 3) - sample(3, 3).mT) / 4)
    assert_close(dH, (sample(3, 3) + sample(3, 3).mT) / 2)


def test_gradients_that_are_all_undefined_stay_so():
    A = sample(3, 3)
    assert ops.linalg_polar_backward(None, None, A, A, A) is None


@over_dtypes
def test_reverse_helpers_differentiate_in_both_modes(dtype):
    A, g = sample(2, 2, dtype=dtype), sample(2, 2, dtype=dtype, seed=1)
    assert_gradcheck(lambda g, a: ops.linalg_matrix_exp_differential(a, g, True), g, A)
    assert_gradcheck(
        lambda g, a: ops.linalg_matrix_sqrth_differential(a @ a.mH + a.mH @ a, g), g, A
    )
    tall = sample(3, 2, dtype=dtype)
    assert_gradcheck(
        lambda gU, gH, a: ops.linalg_polar_backward(gU, gH, a, *polar(a)), tall + 1, g, tall
    )


@over_dtypes
def test_under_vmap(dtype):
    A, dA = sample(5, 4, 3, dtype=dtype), sample(5, 4, 3, dtype=dtype, seed=1)
    U, H = polar(A)
    assert_maps(lambda *x: ops.linalg_matrix_exp_differential(*x, True), H, U[:, :3])
    assert_maps(ops.linalg_matrix_sqrth_differential, H, U[:, :3])
    assert_maps(ops.linalg_polar_backward, dA, H, A, U, H)
    assert_maps(ops.linalg_polar_jvp, dA, A, U, H)


@pytest.mark.skipif(not hasattr(linalg, "polar"), reason="torch has no linalg.polar")
@over_dtypes
def test_operators_of_newer_versions(dtype):
    A = sample(4, 3, dtype=dtype)
    assert_backward(
        linalg.polar, lambda grads, ins, outs: ops.linalg_polar_backward(*grads, *ins, *outs), A
    )
    assert_jvp(
        linalg.polar,
        lambda tangents, ins, outs: ops.linalg_polar_jvp(*tangents, *ins, *outs),
        A,
    )
    A = hermitian(3, 3, dtype=dtype)
    assert_backward(
        linalg.matrix_sqrth,
        lambda grads, ins, _: ops.linalg_matrix_sqrth_differential(ins[0], grads[0]),
        A,
    )
    assert_jvp(
        linalg.matrix_sqrth,
        lambda tangents, ins, _: ops.linalg_matrix_sqrth_differential(ins[0], tangents[0]),
        A,
    )
