# SPDX-License-Identifier: BSD-3-Clause
"""The helpers of torchext/derivatives/view.h against aten's derivatives."""

import pytest
import torch
from aten_oracle import REAL_AND_COMPLEX, assert_reverse, sample, sample_like
from torch.testing import assert_close

ops = torch.ops.derivative_helpers
pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")


@pytest.mark.parametrize("dtype", REAL_AND_COMPLEX)
@pytest.mark.parametrize("dims", [(2, 0, 1), (-1, 0, -2), (0, 1, 2)])
def test_permute_backwards(dims, dtype):
    assert_reverse(
        lambda x: x.permute(dims),
        lambda grad, x, result: ops.permute_backwards(grad, dims),
        sample(2, 3, 4, dtype=dtype),
    )


def test_permute_backwards_of_a_number():
    assert ops.permute_backwards(sample(), ()).shape == ()


@pytest.mark.parametrize("dims", [None, (1,), (-1, 1), ()])
def test_unsqueeze_multiple(dims):
    x = sample(2, 1, 3, 1)
    squeezed = sample() if dims is None else x.squeeze(dims)
    expected = (1, 1, 1, 1) if dims is None else x.shape
    assert ops.unsqueeze_multiple(squeezed, dims, 4).shape == expected


def test_unsqueeze_multiple_of_a_number():
    assert ops.unsqueeze_multiple(sample(), (0,), 0).shape == ()


@pytest.mark.parametrize("missing", [(), (0,), (1, 2)])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_unbind_backward(dim, missing):
    x = sample(3, 4, 3).requires_grad_()
    slices = x.unbind(dim)
    grads = [None if i in missing else sample_like(s, i) for i, s in enumerate(slices)]
    used = [(s, g) for s, g in zip(slices, grads) if g is not None]
    (expected,) = torch.autograd.grad([s for s, _ in used], x, [g for _, g in used])
    assert_close(ops.unbind_backward(grads, dim), expected)


def nested(layout=torch.strided):
    components = [sample(2, 4, seed=1), sample(3, 4, seed=2)]
    return torch.nested.nested_tensor(components, layout=layout, requires_grad=True)


def backpropagated(pieces, x, missing, seed=5):
    """Gradients of pieces, of which some are missing, and aten's gradient of the whole."""
    whole_pieces = [piece.detach().contiguous() for piece in pieces]
    grads = [None if i in missing else p * (i + seed) for i, p in enumerate(whole_pieces)]
    used = [(piece, g) for piece, g in zip(pieces, grads) if g is not None]
    (whole,) = torch.autograd.grad([p for p, _ in used], x, [g for _, g in used])
    return grads, whole


def assert_same_components(actual, expected):
    pairs = list(zip(actual.unbind(), expected.unbind()))
    assert len(pairs) == 2
    for one, other in pairs:
        assert_close(one, other)


@pytest.mark.parametrize("missing", [(), (1,)])
def test_unbind_backward_nested(missing):
    x = nested()
    grads, expected = backpropagated(x.unbind(), x, missing)
    assert_same_components(ops.unbind_backward_nested(grads, x.detach(), 0), expected)


@pytest.mark.parametrize("missing", [(), (0,)])
def test_unbind_backward_nested_jagged(missing):
    x = nested(torch.jagged)
    grads, expected = backpropagated(x.unbind(), x, missing)
    actual = ops.unbind_backward_nested_jagged(grads, x.detach(), 0)
    assert_same_components(actual, expected)


@pytest.mark.parametrize("missing", [(), (1,)])
def test_chunk_backward_nested(missing):
    x = nested(torch.jagged)
    grads, expected = backpropagated(x.chunk(2, -1), x, missing)
    assert_same_components(ops.chunk_backward_nested(grads, x.detach(), 2, -1), expected)


@pytest.mark.parametrize("missing", [(), (0,)])
def test_nested_split_with_sizes_backward(missing):
    x = nested()
    sizes = (1, 3)
    grads, expected = backpropagated(x.split_with_sizes(sizes, -1), x, missing)
    actual = ops._nested_split_with_sizes_backward(grads, sizes, -1, x.detach())
    assert_same_components(actual, expected)


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_bsc])
@pytest.mark.filterwarnings("ignore:Sparse (CSR|BSC) tensor support:UserWarning")
def test_values_backward(layout):
    options = {"blocksize": (2, 2)} if layout is torch.sparse_bsc else {}
    dense = sample(4, 6) * (torch.arange(24).reshape(4, 6) % 3 > 0)
    x = dense.to_sparse(layout=layout, **options)
    x = (x.coalesce() if layout is torch.sparse_coo else x).requires_grad_()
    values = x.values()
    grad = sample_like(values, 3)
    (expected,) = torch.autograd.grad(values, x, grad)
    actual = ops.values_backward(grad, x.detach())
    assert actual.layout is layout
    assert_close(actual.to_dense(), expected.to_dense())


def test_values_backward_of_no_gradient():
    assert ops.values_backward(None, sample(2, 2).to_sparse()) is None
