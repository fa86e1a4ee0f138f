# SPDX-License-Identifier: BSD-3-Clause
"""The helpers of torchext/derivatives/dropout.h against the derivatives of aten's operators."""

import pytest
import torch
from aten_oracle import assert_reverse, assert_vmaps, sample
from torch.testing import assert_close

ops = torch.ops.derivative_helpers
MASK = sample(2, 3, seed=4) > 0


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_native_dropout_backward(p):
    scale = 0.0 if p == 1 else 1 / (1 - p)
    x = sample(20).requires_grad_()
    result, mask = torch.ops.aten.native_dropout(x, p, True)
    grad = sample(20, seed=1)
    (expected,) = torch.autograd.grad(result, x, grad)
    assert_close(ops.infinitely_differentiable_native_dropout_backward(grad, mask, scale), expected)


def test_dropout_backward_is_differentiable():
    assert torch.autograd.gradcheck(
        lambda grad: ops.infinitely_differentiable_native_dropout_backward(grad, MASK, 1.5),
        sample(2, 3).requires_grad_(),
        check_forward_ad=True,
        check_batched_grad=True,
    )


def test_native_dropout_double_backward():
    assert_reverse(
        lambda grad: torch.ops.aten.native_dropout_backward(grad, MASK, 1.5),
        lambda ggI, grad, result: ops.native_dropout_double_backward(ggI, grad, MASK, 1.5),
        sample(2, 3),
    )


def test_dropout_double_backward_has_the_dtype_of_the_gradient():
    ggI, grad = sample(2, 3), sample(2, 3, dtype=torch.float32)
    result = ops.native_dropout_double_backward(ggI, grad, MASK, 1.5)
    assert_close(result, ggI.float() * MASK * 1.5)


def test_fused_dropout_backward():
    """_fused_dropout has no CPU kernel: the mask is of bytes, and `p` the probability to keep."""
    mask = MASK.byte()
    assert_reverse(
        lambda x: x * mask / 0.3,
        lambda grad, x, result: ops._fused_dropout_backward(grad, mask, 0.3),
        sample(2, 3),
    )


def test_vmap_over_masks():
    masks = torch.stack([MASK, ~MASK])
    grad = sample(2, 3)
    assert_vmaps(lambda mask: ops._fused_dropout_backward(grad, mask, 0.3), masks)
    assert_vmaps(lambda mask: ops.native_dropout_double_backward(grad, grad, mask, 2.0), masks)
