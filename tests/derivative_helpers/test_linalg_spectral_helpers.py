# SPDX-License-Identifier: BSD-3-Clause
"""The helpers of torchext/derivatives/linalg_spectral.h against aten's autograd."""

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

linalg = torch.linalg

over_squares = pytest.mark.parametrize("shape", [(3, 3), (1, 1), (2, 4, 4), (0, 0), (0, 2, 2)])


def squared_moduli(x, seed):
    """A loss of vectors that does not depend on their phases."""
    return (sample(*x.shape, seed=seed) * x.abs().square()).sum()


def projectors(left, right, seed):
    """The same, of two sets of vectors whose phases cancel."""
    weights = torch.arange(1, left.shape[-1] + 1)
    product = (left * weights) @ right
    return (sample(*product.shape, dtype=left.dtype, seed=seed).conj() * product).sum().real


def eigenvector_loss(_, V):
    return squared_moduli(V, 1) + projectors(V, V.mH, 2)


def eigen_loss(L, V):
    return only(0)(L) + eigenvector_loss(L, V)


def eig_backward(is_hermitian):
    def helper(grads, ins, outs):
        found = ops.linalg_eig_backward(*grads, *outs, is_hermitian, True)
        return found if found is None or ins[0].is_complex() else found.real

    return helper


over_eigen_losses = pytest.mark.parametrize("loss", [only(0), eigenvector_loss, eigen_loss])


@over_dtypes
@over_eigen_losses
@over_squares
def test_eigh(shape, loss, dtype):
    A = hermitian(*shape, dtype=dtype)
    assert_backward(linalg.eigh, eig_backward(True), A, loss=loss)
    assert_jvp(
        linalg.eigh,
        lambda tangents, _, outs: ops.linalg_eig_jvp(tangents[0], *outs, True),
        A,
    )


@over_dtypes
@over_eigen_losses
@over_squares
def test_eig(shape, loss, dtype):
    A = sample(*shape, dtype=dtype)
    assert_backward(linalg.eig, eig_backward(False), A, loss=loss)
    assert_jvp(
        linalg.eig,
        lambda tangents, _, outs: ops.linalg_eig_jvp(tangents[0], *outs, False),
        A,
    )


def test_eigenvectors_must_be_there():
    A = sample(3, 3)
    with pytest.raises(RuntimeError, match="needs the eigenvectors"):
        ops.linalg_eig_backward(A[0], None, A[0], A[:0, :0], True, False)


@pytest.mark.parametrize("is_hermitian", [False, True])
def test_eigenvectors_have_no_phase(is_hermitian):
    L, V = (linalg.eigh if is_hermitian else linalg.eig)(hermitian(3, 3, dtype=torch.complex128))
    with pytest.raises(RuntimeError, match=r"eigenvectors are determined up to factors exp\(i phi"):
        ops.linalg_eig_backward(None, 1j * V, L, V, is_hermitian, True)


def svd(A):
    return linalg.svd(A, full_matrices=False)


def svd_backward(grads, _, outs):
    return ops.svd_backward(*grads, *outs)


def all_of_svd(U, S, Vh):
    return squared_moduli(U, 1) + squared_moduli(Vh, 2) + only(0)(S) + projectors(U, Vh, 3)


SVD_LOSSES = {
    "U": lambda U, S, Vh: squared_moduli(U, 1),
    "S": only(1),
    "Vh": lambda U, S, Vh: squared_moduli(Vh, 1),
    "U, S": lambda U, S, Vh: squared_moduli(U, 1) + only(0)(S),
    "U, Vh": lambda U, S, Vh: projectors(U, Vh, 3),
    "U, S, Vh": all_of_svd,
}
RECTANGLES = [(3, 3), (5, 3), (3, 5), (1, 1), (2, 4, 3), (2, 3, 4), (0, 3), (3, 0), (0, 3, 2)]
over_rectangles = pytest.mark.parametrize("shape", RECTANGLES)


@over_dtypes
@pytest.mark.parametrize("loss", SVD_LOSSES.values(), ids=SVD_LOSSES)
@over_rectangles
def test_svd(shape, loss, dtype):
    assert_backward(svd, svd_backward, sample(*shape, dtype=dtype), loss=loss)


@over_dtypes
@pytest.mark.parametrize("full_matrices", [False, True])
@over_rectangles
def test_svd_tangents(shape, full_matrices, dtype):
    assert_jvp(
        lambda a: linalg.svd(a, full_matrices=full_matrices),
        lambda tangents, _, outs: ops.linalg_svd_jvp(tangents[0], *outs, full_matrices),
        sample(*shape, dtype=dtype),
    )


def test_gradients_that_are_all_undefined_stay_so():
    U, S, Vh = svd(sample(3, 3))
    assert ops.svd_backward(None, None, None, U, S, Vh) is None
    assert ops.linalg_eig_backward(None, None, S, U, True, True) is None


def test_singular_vectors_have_no_phase():
    U, S, Vh = svd(sample(3, 3, dtype=torch.complex128))
    for grads in ((1j * U, None, None), (None, None, 1j * Vh), (1j * U, S, -1j * Vh)):
        with pytest.raises(RuntimeError, match="singular vectors are determined up to factors"):
            ops.svd_backward(*grads, U, S, Vh)
    ops.svd_backward(1j * U, S, 1j * Vh, U, S, Vh)


@over_dtypes
def test_reverse_helpers_differentiate_in_both_modes(dtype):
    # Constant gradients of the vectors would depend on their phases.
    A = hermitian(2, 2, dtype=dtype)
    weights = sample(2, seed=1)
    assert_gradcheck(
        lambda a: ops.linalg_eig_backward(weights, None, *linalg.eigh(a + a.mH), True, True), A
    )
    assert_gradcheck(
        lambda a: ops.svd_backward(None, weights, None, *svd(a)), sample(2, 3, dtype=dtype)
    )


@over_dtypes
def test_under_vmap(dtype):
    A = hermitian(5, 3, 3, dtype=dtype)
    dA = sample(5, 3, 3, dtype=dtype, seed=1)
    for is_hermitian in (True, False):
        L, V = (linalg.eigh if is_hermitian else linalg.eig)(A)
        assert_maps(lambda *x, h=is_hermitian: ops.linalg_eig_jvp(*x, h), dA, L, V)
        assert_maps(lambda *x, h=is_hermitian: ops.linalg_eig_backward(*x, h, True), L, V, L, V)
    U, S, Vh = svd(sample(5, 4, 3, dtype=dtype))
    assert_maps(ops.svd_backward, U, S, Vh, U, S, Vh)
    assert_maps(lambda *x: ops.linalg_svd_jvp(*x, False), U, U, S, Vh)


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64], ids=str)
def test_single_precision_stays_so(dtype):
    A = hermitian(3, 3, dtype=dtype)
    assert_backward(linalg.eigh, eig_backward(True), A, loss=eigen_loss, twice=False)
    assert_backward(svd, svd_backward, sample(4, 3, dtype=dtype), loss=all_of_svd, twice=False)
    U, S, Vh = svd(A)
    found = [x.dtype for x in ops.linalg_svd_jvp(A, U, S, Vh, False)]
    assert found == [dtype, torch.float32, dtype]
