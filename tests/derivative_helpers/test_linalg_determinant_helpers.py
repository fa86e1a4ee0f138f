# SPDX-License-Identifier: BSD-3-Clause
"""The helpers of torchext/derivatives/linalg_determinant.h against aten's autograd."""

import pytest
import torch
from aten_oracle import sample
from linalg_oracle import assert_backward, assert_jvp, assert_maps, only, ops, over_dtypes
from torch.autograd import forward_ad
from torch.testing import assert_close

from torchext.compat import version

aten = torch.ops.aten

over_shapes = pytest.mark.parametrize(
    "shape", [(3, 3), (1, 1), (2, 4, 4), (2, 3, 2, 2), (0, 0), (0, 2, 2)]
)
over_layouts = pytest.mark.parametrize("is_contiguous", [True, False])


def matrix(shape, dtype, is_contiguous=True):
    x = sample(*shape, dtype=dtype)
    return x if is_contiguous else x.mT.contiguous().mT


def is_factored_transposed(A):
    return A.is_contiguous() and not A.is_complex()


def det_backward(grads, ins, outs):
    return ops.linalg_det_backward(grads[0], outs[0], *ins, *outs[1:])


@over_dtypes
@over_layouts
@over_shapes
def test_det(shape, is_contiguous, dtype):
    A = matrix(shape, dtype, is_contiguous)
    if A.numel() == 0 and version() < (2, 13):
        pytest.skip("aten of torch 2.11 gives an empty determinant no gradient")
    assert_backward(aten._linalg_det, det_backward, A)

    tangent = sample(*shape, dtype=dtype, seed=1)
    expected = torch.func.jvp(torch.linalg.det, (A,), (tangent,))[1]
    det, LU, pivots = aten._linalg_det(A)
    actual = ops.linalg_det_jvp(tangent, det, LU, pivots, is_factored_transposed(A))
    assert_close(actual, expected)


def cofactors(A):
    """The cofactors of a matrix, one minor after the other."""
    n = A.shape[-1]
    keep = [[i for i in range(n) if i != k] for k in range(n)]
    minors = [[A[rows][:, columns].det() for columns in keep] for rows in keep]
    signs = [[(-1) ** (i + j) for j in range(n)] for i in range(n)]
    return torch.stack([torch.stack(row) for row in minors]) * torch.tensor(signs)


SINGULAR = {
    "zero in the diagonal": lambda x: torch.diag(torch.tensor([2.0, 3.0, 0.0, 1.0]).to(x.dtype)),
    "equal columns": lambda x: torch.cat([x[:, :1], x[:, :1], x[:, 2:]], 1),
    "small numbers": lambda x: 1e-3 * torch.cat([x[:, :1], 2 * x[:, :1], x[:, 2:]], 1),
    "rank 2 of 4": lambda x: x[:, :2] @ x[:2],
    "rank 1 of 4": lambda x: x[:, :1] @ x[:1],
    "rank 1 of 5": lambda x: torch.ones(5, 5, dtype=x.dtype),
    "zeros": torch.zeros_like,
    "identity": lambda x: torch.eye(4, dtype=x.dtype),
    "1 by 1": lambda x: torch.zeros_like(x[:1, :1]),
    "2 by 2": lambda x: torch.zeros_like(x[:2, :2]),
}


@over_dtypes
@pytest.mark.parametrize("kind", SINGULAR)
def test_det_of_singular_matrices(kind, dtype):
    A = SINGULAR[kind](sample(4, 4, dtype=dtype)).requires_grad_()
    det, LU, pivots = aten._linalg_det(A)
    one = torch.ones_like(det)
    expected = cofactors(A)
    assert_close(ops.linalg_det_backward(one, det, A, LU, pivots), expected.conj())
    with torch.no_grad():
        assert_close(ops.linalg_det_backward(one, det, A, LU, pivots), expected.conj())
        tangent = sample(*A.shape, dtype=dtype, seed=1)
        actual = ops.linalg_det_jvp(tangent, det, LU, pivots, is_factored_transposed(A))
        assert_close(actual, (expected * tangent).sum())


@over_dtypes
@pytest.mark.parametrize("kind", SINGULAR)
def test_second_derivative_of_det_of_singular_matrices(kind, dtype):
    A = SINGULAR[kind](sample(4, 4, dtype=dtype)).requires_grad_()
    det, LU, pivots = aten._linalg_det(A)
    weights = sample(*A.shape, dtype=dtype, seed=1)
    actual = ops.linalg_det_backward(torch.ones_like(det), det, A, LU, pivots)
    first = (weights.conj() * actual).sum().real
    if A.shape[-1] == 1:  # the determinant is the element
        assert not first.requires_grad
        return
    (second,) = torch.autograd.grad(first, A)
    # The cofactors may have singular minors themselves, but are linear in each entry of A: the
    # difference of two of them is exact for steps of any size.
    entries = torch.eye(A.numel(), dtype=dtype).reshape(-1, *A.shape)
    units = [1, 1j] if dtype.is_complex else [1]
    expected = torch.zeros_like(A).detach()
    with torch.no_grad():
        for unit in units:
            slopes = [
                (weights.conj() * cofactors(A + unit * entry).conj()).sum().real
                - (weights.conj() * cofactors(A - unit * entry).conj()).sum().real
                for entry in entries
            ]
            expected += unit * torch.stack(slopes).reshape(A.shape) / 2
    assert_close(second, expected, rtol=1e-10, atol=1e-10)


@over_dtypes
def test_det_is_differentiated_by_dual_numbers_where_no_graph_is_recorded(dtype):
    A = sample(3, 3, dtype=dtype)
    tangent = sample(3, 3, dtype=dtype, seed=1)

    def helper(a):
        det, LU, pivots = aten._linalg_det(a)
        return ops.linalg_det_backward(torch.ones_like(det), det, a, LU, pivots)

    expected = torch.func.jvp(helper, (A,), (tangent,))[1]
    with torch.no_grad(), forward_ad.dual_level():
        dual = helper(forward_ad.make_dual(A, tangent))
        assert_close(forward_ad.unpack_dual(dual).tangent, expected)


def slogdet_backward(grads, ins, outs):
    sign, _, LU, pivots = outs
    return ops.slogdet_backward(*grads[:2], *ins, sign, LU, pivots)


@over_dtypes
@over_layouts
@over_shapes
@pytest.mark.parametrize("loss", [only(1), only(0, 1)])
def test_slogdet(shape, is_contiguous, loss, dtype):
    A = matrix(shape, dtype, is_contiguous)
    assert_backward(aten._linalg_slogdet, slogdet_backward, A, loss=loss)

    def helper(tangents, ins, outs):
        sign, _, LU, pivots = aten._linalg_slogdet(A)
        return ops.slogdet_jvp(LU, pivots, *tangents, sign, is_factored_transposed(A))

    assert_jvp(torch.linalg.slogdet, helper, A)


def test_the_sign_alone():
    A = sample(3, 3, dtype=torch.complex128)
    assert_backward(aten._linalg_slogdet, slogdet_backward, A, loss=only(0))
    A = sample(3, 3)
    sign, _, LU, pivots = aten._linalg_slogdet(A)
    assert ops.slogdet_backward(sign, None, A, sign, LU, pivots) is None
    assert ops.slogdet_backward(None, None, A, sign, LU, pivots) is None


@over_dtypes
def test_under_vmap(dtype):
    A = sample(5, 3, 3, dtype=dtype)
    tangent = sample(5, 3, 3, dtype=dtype, seed=1)
    det, LU, pivots = aten._linalg_det(A)
    sign, logabsdet, _, _ = aten._linalg_slogdet(A)
    assert_maps(ops.linalg_det_backward, det, det, A, LU, pivots)
    transposed = is_factored_transposed(A)
    assert_maps(lambda *x: ops.linalg_det_jvp(*x, transposed), tangent, det, LU, pivots)
    assert_maps(ops.slogdet_backward, sign, logabsdet, A, sign, LU, pivots)
    assert_maps(lambda *x: ops.slogdet_jvp(*x, transposed), LU, pivots, tangent, sign)


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64], ids=str)
def test_single_precision_stays_so(dtype):
    A = sample(3, 3, dtype=dtype).requires_grad_()
    assert_backward(aten._linalg_det, det_backward, A, twice=False)
    assert_backward(aten._linalg_slogdet, slogdet_backward, A, twice=False)
    det, LU, pivots = aten._linalg_det(A)
    assert ops.linalg_det_jvp(A, det, LU, pivots, False).dtype == dtype
    assert [x.dtype for x in ops.slogdet_jvp(LU, pivots, A, det, False)] == [dtype, torch.float32]
