# SPDX-License-Identifier: BSD-3-Clause
"""The helpers of torchext/derivatives/conversion.h against the derivatives of aten's operators."""

import pytest
import torch
from aten_oracle import assert_reverse, sample
from torch.testing import assert_close

ops = torch.ops.derivative_helpers

pytestmark = pytest.mark.filterwarnings("ignore:Sparse:UserWarning")

SPARSE = {
    "coo": {"layout": torch.sparse_coo},
    "csr": {"layout": torch.sparse_csr},
    "csc": {"layout": torch.sparse_csc},
    "bsr": {"layout": torch.sparse_bsr, "blocksize": (2, 1)},
    "bsc": {"layout": torch.sparse_bsc, "blocksize": (1, 2)},
}


@pytest.mark.parametrize("case", SPARSE)
def test_gradient_of_a_dense_tensor(case):
    x = sample(4, 6).requires_grad_()
    result = x.to_sparse(**SPARSE[case])
    grad = sample(4, 6, seed=1).to_sparse(**SPARSE[case])
    (expected,) = torch.autograd.grad(result, x, grad)
    assert_close(ops.to_sparse_backward(grad, x), expected)
    dense = grad.to_dense()
    assert_close(ops.to_sparse_backward(dense, x), dense)


@pytest.mark.parametrize("to", ["coo", "csr"])
@pytest.mark.parametrize("source", SPARSE)
def test_gradient_has_the_layout_of_a_sparse_tensor(source, to):
    x = sample(4, 6).to_sparse(**SPARSE[source])
    grad = sample(4, 6, seed=1).to_sparse(**SPARSE[to])
    gradient = ops.to_sparse_backward(grad, x, SPARSE[source].get("blocksize"))
    assert gradient.layout == x.layout
    assert_close(gradient.to_dense(), grad.to_dense())


def test_second_derivative_through_a_sparse_gradient():
    x = sample(3, 2)
    assert torch.autograd.gradcheck(
        lambda grad: ops.to_sparse_backward(grad.to_sparse(), x), sample(3, 2).requires_grad_()
    )


MASK = torch.sparse_coo_tensor(
    [[0, 1, 1], [1, 2, 2]], torch.ones(3, dtype=torch.float64), (3, 4), check_invariants=True
)


@pytest.mark.parametrize("mask", [MASK, MASK.coalesce()], ids=["repeated", "coalesced"])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_sparse_mask_backward(mask, is_sparse):
    x = sample(3, 4)
    x = (x.to_sparse() if is_sparse else x).requires_grad_()
    result = x.sparse_mask(mask)
    grad = result.detach() * 2
    (expected,) = torch.autograd.grad(result, x, grad)
    actual = ops.sparse_mask_backward(grad, mask, x)
    assert actual.layout == expected.layout
    assert_close(actual.to_dense(), expected.to_dense())


def test_sparse_mask_backward_of_compressed_rows():
    x = sample(3, 4)
    mask = MASK.coalesce().to_sparse_csr()
    gradient = ops.sparse_mask_backward(sample(3, 4).to_sparse_csr(), mask, x)
    assert_close(gradient, x * (MASK.to_dense() != 0))


@pytest.mark.parametrize(
    ("dtype", "copy_dtype"),
    [
        (torch.float64, torch.float32),
        (torch.float32, torch.float64),
        (torch.float64, torch.complex128),
        (torch.float32, torch.complex128),
        (torch.complex128, torch.complex64),
    ],
)
def test_to_copy_backward(dtype, copy_dtype, recwarn):
    assert_reverse(
        lambda x: torch.ops.aten._to_copy(x, dtype=copy_dtype),
        lambda grad, x, result: ops._to_copy_backward(grad, x),
        sample(2, 3, dtype=dtype),
    )
    assert not [warning for warning in recwarn if "imaginary" in str(warning.message)]


@pytest.mark.parametrize("transform", [False, True])
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_nested_from_padded_backward(transform):
    padded_shape = (2, 3, 4, 2) if transform else (2, 4, 6)
    lengths = torch.tensor([[4, 6], [2, 6]])

    def operator(padded):
        return torch.ops.aten._nested_from_padded(padded, lengths, transform)

    padded = sample(*padded_shape).requires_grad_()
    result = operator(padded)
    grad = torch.nested.nested_tensor([sample(4, 6, seed=1), sample(2, 6, seed=2)])
    (expected,) = torch.autograd.grad(result, padded, grad)
    assert_close(ops._nested_from_padded_backward(grad, padded, transform), expected)


def test_warn_backwards(capfd):
    grad = sample(2)
    assert_close(ops.warn_backwards(grad), grad)
    # Outside of the autograd engine nothing hands warnings to Python.
    assert "Warning: a warning from a backward pass" in capfd.readouterr().err
