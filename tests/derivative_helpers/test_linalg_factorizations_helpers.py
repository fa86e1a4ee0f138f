# SPDX-License-Identifier: BSD-3-Clause
"""The helpers of torchext/derivatives/linalg_factorizations.h against aten's autograd."""

import pytest
import torch
from aten_oracle import over_modes, sample
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

linalg = torch.linalg

over_uplo = pytest.mark.parametrize("upper", [False, True])
over_squares = pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (1, 1), (0, 0), (0, 2, 2)])
over_shapes = pytest.mark.parametrize(
    "shape", [(3, 3), (5, 3), (3, 5), (2, 4, 3), (2, 3, 4), (0, 3), (3, 0), (0, 2, 2)]
)
over_losses = pytest.mark.parametrize("loss", [only(0), only(1), only(0, 1)])


@over_dtypes
@over_uplo
@over_squares
def test_cholesky(shape, upper, dtype):
    A = hermitian(*shape, dtype=dtype)
    assert_backward(
        lambda a: linalg.cholesky(a, upper=upper),
        lambda grads, _, outs: ops.cholesky_backward(grads[0], upper, outs[0]),
        A,
    )
    assert_jvp(
        lambda a: linalg.cholesky(a, upper=upper),
        lambda tangents, _, outs: ops.cholesky_jvp(tangents[0], outs[0], upper),
        A,
    )


@over_dtypes
@over_uplo
@over_squares
def test_cholesky_inverse(shape, upper, dtype):
    F = linalg.cholesky(hermitian(*shape, dtype=dtype), upper=upper)
    assert_backward(
        lambda f: torch.cholesky_inverse(f, upper),
        lambda grads, ins, outs: ops.cholesky_inverse_backward(grads[0], ins[0], upper, outs[0]),
        F,
    )
    # The forward formula of aten multiplies in a wrong order: take the transposed reverse one.
    tangent = sample(*shape, dtype=dtype, seed=1)
    X, expected = torch.autograd.functional.jvp(
        lambda f: torch.cholesky_inverse(f, upper), F, tangent
    )
    torch.testing.assert_close(ops.cholesky_inverse_jvp(F, tangent, X, upper), expected)


@over_dtypes
@over_losses
@over_shapes
def test_lu_unpack(shape, loss, dtype):
    LU, pivots = linalg.lu_factor(sample(*shape, dtype=dtype))

    def unpack(x):
        return torch.lu_unpack(x, pivots)[1:]

    def helper(grads, _, __):
        return ops.lu_unpack_backward(*grads, *shape[-2:])

    assert_backward(unpack, helper, LU, loss=loss, twice=False)


def test_gradients_that_are_all_undefined_stay_so():
    x = sample(3, 3)
    assert ops.lu_unpack_backward(None, None, 3, 3) is None
    assert ops.linalg_lu_backward(None, None, x, x, x, True) is None
    assert ops.linalg_qr_backward(None, None, x, x, "reduced") is None


@over_dtypes
@over_losses
@over_shapes
def test_lu(shape, loss, dtype):
    assert_backward(
        linalg.lu,
        lambda grads, _, outs: ops.linalg_lu_backward(*grads[1:], *outs, True),
        sample(*shape, dtype=dtype),
        loss=lambda _, L, U: loss(L, U),
    )


@over_dtypes
@over_shapes
def test_lu_without_pivots_is_lu_of_the_permuted_matrix(shape, dtype):
    P, L, U = linalg.lu(sample(*shape, dtype=dtype))
    tangent = sample(*shape, dtype=dtype, seed=1)
    expected = ops.linalg_lu_jvp(P @ tangent, P, L, U, True)
    torch.testing.assert_close(ops.linalg_lu_jvp(tangent, P[..., :0, :0], L, U, False), expected)
    gL = sample(*L.shape, dtype=dtype, seed=2)
    gU = sample(*U.shape, dtype=dtype, seed=3)
    expected = P.mT @ ops.linalg_lu_backward(gL, gU, P, L, U, True)
    actual = ops.linalg_lu_backward(gL, gU, P[..., :0, :0], L, U, False)
    torch.testing.assert_close(actual, expected)


@over_dtypes
@over_shapes
def test_lu_tangents(shape, dtype):
    assert_jvp(
        lambda a: linalg.lu(a)[1:],
        lambda tangents, ins, outs: ops.linalg_lu_jvp(
            tangents[0], linalg.lu(ins[0])[0], *outs, True
        ),
        sample(*shape, dtype=dtype),
    )


@over_dtypes
@over_shapes
def test_lu_factor(shape, dtype):
    A = sample(*shape, dtype=dtype)
    assert_backward(
        lambda a: torch.linalg.lu_factor_ex(a)[:2],
        lambda grads, _, outs: ops.lu_factor_ex_backward(grads[0], *outs, True),
        A,
    )
    pivots = linalg.lu_factor(A)[1]
    assert_jvp(
        lambda a: linalg.lu_factor(a)[0],
        lambda tangents, _, outs: ops.lu_factor_ex_jvp(tangents[0], outs[0], pivots, True),
        A,
    )


@over_dtypes
@over_losses
@over_shapes
def test_qr(shape, loss, dtype):
    assert_backward(
        linalg.qr,
        lambda grads, _, outs: ops.linalg_qr_backward(*grads, *outs, "reduced"),
        sample(*shape, dtype=dtype),
        loss=loss,
    )


@over_dtypes
@pytest.mark.parametrize(
    ("shape", "mode"),
    [((4, 3), "reduced"), ((3, 3), "complete"), ((2, 3, 5), "complete"), ((0, 3), "reduced")],
)
def test_qr_tangents(shape, mode, dtype):
    assert_jvp(
        lambda a: linalg.qr(a, mode),
        lambda tangents, _, outs: ops.linalg_qr_jvp(tangents[0], *outs, mode),
        sample(*shape, dtype=dtype),
    )


@pytest.mark.parametrize(("shape", "mode"), [((3, 3), "r"), ((4, 3), "complete")])
def test_qr_raises_where_it_has_no_derivative(shape, mode):
    A = sample(*shape)
    Q, R = linalg.qr(A, mode)
    with pytest.raises(RuntimeError, match=f"mode='{mode}' has no derivative"):
        ops.linalg_qr_jvp(A, Q, R, mode)
    if mode == "complete":
        with pytest.raises(RuntimeError, match=f"mode='{mode}' has no derivative"):
            ops.linalg_qr_backward(Q, R, Q, R, mode)


@over_modes
@over_dtypes
def test_reverse_helpers_differentiate_in_both_modes(dtype, fast_mode):
    A = hermitian(3, 3, dtype=dtype)
    g = sample(3, 3, dtype=dtype, seed=1)
    assert_gradcheck(
        lambda g, a: ops.cholesky_backward(g, False, linalg.cholesky(a + a.mH)),
        g.tril(),
        A,
        fast_mode=fast_mode,
    )
    wide = sample(2, 3, dtype=dtype)
    assert_gradcheck(
        lambda gL, gU, a: ops.linalg_lu_backward(gL, gU, *linalg.lu(a), True),
        g[:2, :2],
        g[:2],
        wide,
        fast_mode=fast_mode,
    )
    assert_gradcheck(
        lambda gQ, gR, a: ops.linalg_qr_backward(gQ, gR, *linalg.qr(a), "reduced"),
        g[:2, :2],
        g[:2],
        wide,
        fast_mode=fast_mode,
    )


@over_dtypes
def test_under_vmap(dtype):
    A = hermitian(4, 3, 3, dtype=dtype)
    g = sample(4, 3, 3, dtype=dtype, seed=1)
    L = linalg.cholesky(A)
    assert_maps(lambda g, L: ops.cholesky_backward(g, False, L), g, L)
    assert_maps(lambda g, L: ops.cholesky_jvp(g, L, False), g, L)
    P, L, U = linalg.lu(A)
    assert_maps(lambda *x: ops.linalg_lu_backward(*x, True), g, g.mT, P, L, U)
    assert_maps(lambda *x: ops.linalg_lu_jvp(*x, True), g, P, L, U)
    Q, R = linalg.qr(A)
    assert_maps(lambda *x: ops.linalg_qr_backward(*x, "reduced"), g, g.mT, Q, R)
    assert_maps(lambda *x: ops.linalg_qr_jvp(*x, "reduced"), g, Q, R)
