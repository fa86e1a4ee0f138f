# SPDX-License-Identifier: BSD-3-Clause
"""What torch's own autograd says, to compare derivative helpers with."""

import torch
from torch.autograd import gradcheck


def values(*size, dtype=torch.float64, seed=0):
    """Random numbers, the same for the same arguments."""
    generator = torch.Generator().manual_seed(seed + 1)
    return torch.randn(size, dtype=dtype, generator=generator)


def gradients(function, inputs, cotangents):
    """Gradients of a function's results, None where a result does not depend on an input."""
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    return torch.autograd.grad(function(*leaves), leaves, cotangents, allow_unused=True)


def assert_same(actual, expected):
    """Equal values, dtypes and shapes, and None in the same places."""
    assert [x is None for x in actual] == [x is None for x in expected]
    for ours, theirs in zip(actual, expected, strict=True):
        if theirs is not None:
            torch.testing.assert_close(ours, theirs, equal_nan=True)


def assert_differentiable(function, *inputs, forward=True):
    """The function's own derivatives are right: reverse and forward, batched, too."""
    leaves = tuple(x.detach().clone().requires_grad_() for x in inputs)
    # Batched tangents of views of complex numbers end in an internal error of torch.
    batches_tangents = forward and not any(x.is_complex() for x in inputs)
    assert gradcheck(
        function,
        leaves,
        check_batched_grad=True,
        check_forward_ad=forward,
        check_batched_forward_grad=batches_tangents,
        check_undefined_grad=False,
    )
