# SPDX-License-Identifier: BSD-3-Clause
"""The helpers of torchext/derivatives/linalg_lstsq.h against aten's autograd."""

import pytest
import torch
from aten_oracle import sample
from linalg_oracle import (
    assert_backward,
    assert_gradcheck,
    assert_jvp,
    assert_maps,
    only,
    ops,
    over_dtypes,
)

linalg = torch.linalg

over_shapes = pytest.mark.parametrize(
    "shape", [(3, 3), (5, 3), (3, 5), (2, 4, 3), (2, 3, 4), (0, 3), (3, 0), (0, 3, 2)]
)


@over_dtypes
@over_shapes
def test_pinv(shape, dtype):
    A = sample(*shape, dtype=dtype)
    assert_backward(
        linalg.pinv,
        lambda grads, ins, outs: ops.pinv_backward(grads[0], outs[0], ins[0]),
        A,
    )
    assert_jvp(
        linalg.pinv,
        lambda tangents, ins, outs: ops.pinv_jvp(ins[0], outs[0], tangents[0]),
        A,
    )


# the shapes of A and B
PROBLEMS = [
    ((3, 3), (3, 2)),
    ((5, 3), (5, 2)),
    ((3, 5), (3, 2)),
    ((2, 5, 3), (2, 5, 1)),
    ((5, 3), (5,)),
    ((2, 5, 3), (2, 5)),
    ((5, 3), (5, 0)),
    ((0, 5, 3), (0, 5, 2)),
]
over_problems = pytest.mark.parametrize(("A_shape", "B_shape"), PROBLEMS)


def lstsq(A, B):
    # The default driver does not compute residuals.
    return linalg.lstsq(A, B, driver="gels")[:2]


def test_there_are_residuals():
    assert lstsq(sample(2, 5, 3), sample(2, 5, 2))[1].shape == (2, 2)


def backward(grads, ins, outs):
    return ops.linalg_lstsq_backward(*grads, *ins, outs[0], [True, True])


@over_dtypes
@over_problems
def test_lstsq(A_shape, B_shape, dtype):
    A = sample(*A_shape, dtype=dtype)
    B = sample(*B_shape, dtype=dtype, seed=1)
    assert_backward(lstsq, backward, A, B)
    assert_jvp(
        lambda a, b: lstsq(a, b)[0],
        lambda tangents, ins, _: ops.linalg_lstsq_solution_jvp(*ins, *tangents),
        A,
        B,
    )
    assert_jvp(
        lambda a, b: lstsq(a, b)[1],
        lambda tangents, ins, outs: ops.linalg_lstsq_residuals_jvp(
            *ins, *tangents, lstsq(*ins)[0], outs[0]
        ),
        A,
        B,
    )


@over_dtypes
@pytest.mark.parametrize("position", [0, 1])
@pytest.mark.parametrize("B_shape", [(5, 2), (5,)])
def test_lstsq_with_one_gradient_undefined(B_shape, position, dtype):
    A = sample(5, 3, dtype=dtype)
    assert_backward(lstsq, backward, A, sample(*B_shape, dtype=dtype, seed=1), loss=only(position))


@pytest.mark.parametrize("mask", [[True, False], [False, True], [False, False]])
def test_lstsq_computes_what_the_mask_asks_for(mask):
    A, B = sample(5, 3), sample(5, 2, seed=1)
    X, L = lstsq(A, B)
    everything = ops.linalg_lstsq_backward(X, L, A, B, X, [True, True])
    found = ops.linalg_lstsq_backward(X, L, A, B, X, mask)
    expected = [g if wanted else None for g, wanted in zip(everything, mask, strict=True)]
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours is None) == (theirs is None)
        if theirs is not None:
            torch.testing.assert_close(ours, theirs)
    assert ops.linalg_lstsq_backward(None, None, A, B, X, [True, True]) == (None, None)


@over_dtypes
def test_reverse_helpers_differentiate_in_both_modes(dtype):
    A, B = sample(3, 2, dtype=dtype), sample(3, 1, dtype=dtype, seed=1)
    g = sample(2, 3, dtype=dtype, seed=2)
    assert_gradcheck(lambda g, a: ops.pinv_backward(g, linalg.pinv(a), a), g, A)

    def lstsq_grads(g, a, b):
        return ops.linalg_lstsq_backward(g, None, a, b, linalg.pinv(a) @ b, [True, True])

    assert_gradcheck(lstsq_grads, g[:, :1], A, B)


@over_dtypes
def test_under_vmap(dtype):
    A, B = sample(4, 5, 3, dtype=dtype), sample(4, 5, 2, dtype=dtype, seed=1)
    X, L = lstsq(A, B)
    P = linalg.pinv(A)
    dA, dB = sample(4, 5, 3, dtype=dtype, seed=2), sample(4, 5, 2, dtype=dtype, seed=3)
    assert_maps(ops.pinv_jvp, A, P, dA)
    assert_maps(ops.pinv_backward, P, P, A)
    assert_maps(ops.linalg_lstsq_solution_jvp, A, B, dA, dB)
    assert_maps(ops.linalg_lstsq_residuals_jvp, A, B, dA, dB, X, L)
    assert_maps(lambda *x: ops.linalg_lstsq_backward(*x, [True, True]), X, L, A, B, X)
