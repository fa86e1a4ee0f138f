# SPDX-License-Identifier: BSD-3-Clause
"""The helpers of torchext/derivatives/matmul.h against aten's autograd."""

import pytest
import torch
from aten_oracle import REAL_AND_COMPLEX, assert_differentiable, assert_vmaps, sample
from torch.testing import assert_close

ops = torch.ops.derivative_helpers
aten = torch.ops.aten
pytestmark = pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
over_dtypes = pytest.mark.parametrize("dtype", REAL_AND_COMPLEX, ids=str)


def alpha_of(dtype):
    return 2 - 3j if dtype.is_complex else 2


def column_major(t):
    return t.mT.contiguous().mT


LAYOUTS = {
    "rows": lambda t: t,
    "columns": column_major,
    "strided": lambda t: t.repeat_interleave(2, 1)[:, ::2],
    "empty": lambda t: t[:0] if t.shape[0] == 3 else t,
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@over_dtypes
def test_mm(layout, dtype):
    mat1 = layout(sample(3, 4, dtype=dtype)).detach().requires_grad_()
    mat2 = layout(sample(4, 5, dtype=dtype, seed=1)).detach().requires_grad_()
    result = mat1.mm(mat2)
    grad = torch.ones_like(result) * (1 + sample(mat1.shape[0], 5, dtype=dtype, seed=2))
    for_mat1, for_mat2 = torch.autograd.grad(result, (mat1, mat2), grad)
    alpha = alpha_of(dtype)
    conj = alpha.conjugate()
    for factor in (1, alpha):
        scale = 1 if factor == 1 else conj
        actual = ops.mm_mat1_backward(grad, mat2, mat1, factor)
        assert_close(actual, for_mat1 * scale)
        assert actual.stride() == for_mat1.stride()
        actual = ops.mm_mat2_backward(grad, mat1, mat2, factor)
        assert_close(actual, for_mat2 * scale)
        assert actual.stride() == for_mat2.stride()


@pytest.mark.parametrize("layout", [LAYOUTS["rows"], LAYOUTS["columns"]], ids=["rows", "columns"])
def test_mm_gradients_differentiate_and_vmap(layout):
    mat1, mat2, grad = layout(sample(3, 4)), layout(sample(4, 5, seed=1)), sample(3, 5, seed=2)
    assert_differentiable(lambda g, m: ops.mm_mat1_backward(g, m, mat1, 2), grad, mat2)
    assert_differentiable(lambda g, m: ops.mm_mat2_backward(g, m, mat2, 2), grad, mat1)
    grads = sample(2, 3, 5, seed=3)
    assert_vmaps(lambda g: ops.mm_mat1_backward(g, mat2, mat1, 2), grads)


def sparse_sample(*shape, dtype, seed=0):
    x = sample(*shape, dtype=dtype, seed=seed)
    return x * (x.real > 0)


@pytest.mark.parametrize("layout", [torch.strided, torch.sparse_coo, torch.sparse_csr], ids=str)
@over_dtypes
def test_sparse_factor_of_a_product(layout, dtype):
    dense = sparse_sample(3, 4, dtype=dtype)
    mat1 = dense if layout == torch.strided else dense.to_sparse(layout=layout)
    mat2, grad = sample(4, 5, dtype=dtype, seed=1), sample(3, 5, dtype=dtype, seed=2)
    alpha = alpha_of(dtype)
    expected = grad @ mat2.mH * torch.tensor(alpha).conj()
    actual = ops.mm_mat1_sparse_backward(grad, mat1, mat2, alpha)
    assert actual.layout == layout
    if layout != torch.strided:
        expected = expected * (dense != 0)
        actual = actual.to_dense()
    assert_close(actual, expected)


def test_gradient_of_a_csr_factor_does_not_read_its_values():
    mat1 = torch.tensor([[float("nan"), 0.0], [0.0, float("inf")]]).to_sparse_csr()
    grad, mat2 = torch.ones(2, 3), torch.ones(2, 3)
    actual = ops.mm_mat1_sparse_backward(grad, mat1, mat2, 1)
    assert_close(actual.values(), torch.full((2,), 3.0))


def test_sparse_factor_agrees_with_aten():
    mat1 = sparse_sample(3, 4, dtype=torch.float64).to_sparse().requires_grad_()
    bias, mat2 = sample(3, 5), sample(4, 5, seed=1)
    result = aten._sparse_addmm(bias, mat1, mat2, alpha=3)
    grad = sample(3, 5, seed=2)
    (expected,) = torch.autograd.grad(result, mat1, grad)
    assert_close(ops.mm_mat1_sparse_backward(grad, mat1, mat2, 3).to_dense(), expected.to_dense())


def test_layouts_without_a_gradient_are_refused():
    sparse = torch.eye(3).to_sparse()
    with pytest.raises(RuntimeError, match="strided"):
        ops.mm_mat1_sparse_backward(sparse, sparse, torch.eye(3), 1)
    with pytest.raises(RuntimeError, match="CSR"):
        ops.mm_mat1_sparse_backward(torch.eye(3), torch.eye(3).to_sparse_csc(), torch.eye(3), 1)


@pytest.mark.parametrize("beta", [1, 3])
@over_dtypes
def test_sparse_sampled_addmm(beta, dtype):
    alpha = alpha_of(dtype)
    self = sparse_sample(3, 4, dtype=dtype).to_sparse_csr().requires_grad_()
    mat1 = sample(3, 2, dtype=dtype, seed=1).requires_grad_()
    mat2 = sample(2, 4, dtype=dtype, seed=2).requires_grad_()
    result = torch.sparse.sampled_addmm(self, mat1, mat2, alpha=alpha, beta=beta)
    grad = sparse_sample(3, 4, dtype=dtype).to_sparse_csr() * 2
    expected = torch.autograd.grad(result, (self, mat1, mat2), grad)
    actual = ops.sparse_sampled_addmm_backward(grad, self, mat1, mat2, alpha, beta, [True] * 3)
    assert actual[0].layout == torch.sparse_csr
    assert_close([a.to_dense() for a in actual], [e.to_dense() for e in expected])
    only_mat2 = ops.sparse_sampled_addmm_backward(
        grad, self, mat1, None, alpha, beta, [False, False, True]
    )
    assert only_mat2[:2] == (None, None)
    assert_close(only_mat2[2], expected[2])
    without = ops.sparse_sampled_addmm_backward(None, self, mat1, mat2, 1, 1, [True] * 3)
    assert without == (None,) * 3


@over_dtypes
def test_sparse_sparse_matmul(dtype):
    mat1 = sparse_sample(3, 4, dtype=dtype).to_sparse().requires_grad_()
    mat2 = sparse_sample(4, 5, dtype=dtype, seed=1).to_sparse().requires_grad_()
    result = aten._sparse_sparse_matmul(mat1, mat2)
    grad = (result.detach() * 2).coalesce()
    expected = torch.autograd.grad(result, (mat1, mat2), grad)
    for order in range(2):
        actual = ops.sparse_sparse_matmul_backward(grad, mat1, mat2, order)
        assert actual._nnz() == (mat1, mat2)[order]._nnz()
        assert_close(actual.to_dense(), expected[order].to_dense())
    with pytest.raises(RuntimeError, match="grad_order"):
        ops.sparse_sparse_matmul_backward(grad, mat1, mat2, 2)


# shapes of the two factors; the groups end at 8 and at 16
GROUPED = {
    "rows": ((16, 8), (2, 8, 24), True),
    "columns": ((2, 8, 24), (24, 16), True),
    "summed": ((8, 16), (16, 24), True),
    "stacks": ((2, 8, 16), (2, 16, 24), False),
}


@pytest.mark.parametrize("layout", [lambda t: t, column_major], ids=["rows", "columns"])
@pytest.mark.parametrize(("left", "right", "has_groups"), GROUPED.values(), ids=GROUPED)
def test_grouped_mm(left, right, has_groups, layout):
    offs = torch.tensor([8, 16], dtype=torch.int32) if has_groups else None
    mat1 = layout(sample(*left, dtype=torch.float32)).detach().requires_grad_()
    mat2 = layout(sample(*right, dtype=torch.float32, seed=1)).detach().requires_grad_()
    result = torch._grouped_mm(mat1, mat2, offs=offs)
    grad = sample(*result.shape, dtype=torch.float32, seed=2)
    expected = torch.autograd.grad(result, (mat1, mat2), grad)
    actual = (
        ops._grouped_mm_mat1_backward(grad, mat2, mat1, offs, 2),
        ops._grouped_mm_mat2_backward(grad, mat1, mat2, offs, 2),
    )
    assert_close(actual, tuple(2 * e for e in expected))
    assert [t.stride() for t in actual] == [t.stride() for t in expected]


# the dims that the factors lack, the dims that are summed
TRILINEAR = [
    ((2, 3), (4, 3), (2, 4), [1], [0], [2], [2]),  # a product of matrices for each factor
    ((2, 3), (2, 4), (3, 4), [2], [1], [0], [0, 1]),
    ((2, 3, 4), (2, 3, 4), (2, 3, 4), [], [], [], []),
]


@pytest.mark.parametrize(("s1", "s2", "s3", "e1", "e2", "e3", "summed"), TRILINEAR)
@over_dtypes
def test_trilinear(s1, s2, s3, e1, e2, e3, summed, dtype):
    factors = [sample(*s, dtype=dtype, seed=i).requires_grad_() for i, s in enumerate((s1, s2, s3))]
    full = list(factors)
    for i, expanded in enumerate((e1, e2, e3)):
        for dim in expanded:
            full[i] = full[i].unsqueeze(dim)
    product = full[0] * full[1] * full[2]
    result = product.sum(summed) if summed else product
    dims = (e1, e2, e3, summed)
    plain = [f.detach() for f in factors]  # aten refuses complex factors that require grad
    assert_close(aten._trilinear(*plain, *dims), result.detach())
    grad = sample(*result.shape, dtype=dtype, seed=5)
    expected = torch.autograd.grad(result, factors, grad)
    assert_close(ops._trilinear_backward(grad, *plain, *dims, [True] * 3), expected)
    for i in range(3):
        mask = [i == k for k in range(3)]
        needed = [None if mask[k] else plain[k] for k in range(3)]
        actual = ops._trilinear_backward(grad, *needed, *dims, mask)
        assert_close(actual[i], expected[i])
        assert [a is None for a in actual] == [not m for m in mask]
    assert ops._trilinear_backward(None, *factors, *dims, [True] * 3) == (None,) * 3


def test_trilinear_gradients_differentiate():
    dims = ([1], [0], [2], [2])
    assert_differentiable(
        lambda *t: ops._trilinear_backward(*t, *dims, [True] * 3),
        sample(2, 4, seed=3),
        sample(2, 3),
        sample(4, 3, seed=1),
        sample(2, 4, seed=2),
    )


def linear_backward(self, grad_output, weight):
    """What `linear_backward` returns, of which the CPU has no kernel."""
    rows = grad_output.reshape(-1, grad_output.shape[-1])
    return grad_output @ weight, rows.mT @ self.reshape(-1, self.shape[-1]), rows.sum(0)


@pytest.mark.parametrize("batch", [(), (5,), (2, 5), (0,)])
@pytest.mark.parametrize("wanted", [(1, 1, 1), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 0)])
def test_linear_double_backward(batch, wanted):
    inputs = [sample(*batch, 3), sample(*batch, 4, seed=1), sample(4, 3, seed=2)]
    inputs = [t.requires_grad_() for t in inputs]
    results = linear_backward(*inputs)
    grads = [sample(*r.shape, seed=3 + i) if wanted[i] else None for i, r in enumerate(results)]
    actual = ops.linear_double_backward(grads, *inputs)
    if not any(wanted):
        assert actual == (None, None, None)
        return
    total = sum((r * g).sum() for r, g in zip(results, grads, strict=True) if g is not None)
    expected = torch.autograd.grad(total, inputs, allow_unused=True)
    assert [a is None for a in actual] == [e is None for e in expected]
    defined = [(a, e) for a, e in zip(actual, expected, strict=True) if e is not None]
    assert_close(*zip(*defined, strict=True))


def test_linear_double_backward_differentiates():
    tensors = [sample(2, 5, 3), sample(4, 3), sample(4)]
    inputs = [sample(2, 5, 3, seed=1), sample(2, 5, 4, seed=2), sample(4, 3, seed=3)]
    assert_differentiable(
        lambda *t: ops.linear_double_backward(list(t[:3]), *t[3:]), *tensors, *inputs
    )


def test_wrap_opt_if():
    x = sample(2)
    assert_close(ops.wrap_opt_if(x, True), x)
    assert ops.wrap_opt_if(x, False) is None
