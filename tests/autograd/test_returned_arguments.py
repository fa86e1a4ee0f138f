# SPDX-License-Identifier: BSD-3-Clause
"""Kernels that return an argument itself: the caller's tensor keeps its own history."""

import pytest
import torch


def leaf():
    return torch.ones(2, 3, dtype=torch.float64, requires_grad=True)


def test_a_kernel_that_returns_its_argument_is_refused_by_name(agtest):
    x = leaf()
    assert agtest.maybe_copy(x, True).grad_fn.name() == "MaybeCopyBackward0"
    with pytest.raises(RuntimeError, match="agtest::maybe_copy: the kernel returned one of its"):
        agtest.maybe_copy(x, False)
    assert x.is_leaf and x.grad_fn is None


def test_a_view_operator_may_return_its_argument(agtest):
    x = leaf()
    view = agtest.maybe_slice(x, False)
    assert x.is_leaf and x.grad_fn is None
    assert view._is_view() and view._base is x
    with pytest.raises(RuntimeError, match="maybe_slice is not implemented"):
        view.sum().backward()
    x.sum().backward()
    assert x.grad.eq(1).all()


@pytest.mark.parametrize("requires_grad", [False, True])
def test_views_of_a_list_know_the_tensor_that_they_view(agtest, requires_grad):
    tensors = [torch.ones(2, 3), torch.zeros(2, 3)]
    if requires_grad:
        tensors = [t.requires_grad_() for t in tensors]
    rows = agtest.first_rows(tensors)
    assert [row._base is tensor for row, tensor in zip(rows, tensors)] == [True, True]
