# SPDX-License-Identifier: BSD-3-Clause
"""Compare the helpers of a decomposition with torch's autograd of the aten operator.

An operator takes tensors and gives one or a tuple of them. Its reverse helper is called as
`helper(grads, inputs, outputs)` and gives the gradients of the inputs, its forward helper as
`helper(tangents, inputs, outputs)` and gives the tangents of the outputs.
"""

import pytest
import torch
from aten_oracle import REAL_AND_COMPLEX, directional_gradients, sample, sample_like
from torch.testing import assert_close


class Helpers:
    """The operators of the helpers, called past the dispatcher: there vmap would make a loop of
    them, so that their own operations would not see batches."""

    def __getattr__(self, name):
        return getattr(torch.ops.derivative_helpers, name).default.decompose


ops = Helpers()
over_dtypes = pytest.mark.parametrize("dtype", REAL_AND_COMPLEX, ids=str)


def as_tuple(value):
    return value if isinstance(value, (tuple, list)) else (value,)


def hermitian(*shape, dtype=torch.float64, seed=0):
    """A well-conditioned, positive definite matrix (or a batch) of the shape."""
    x = sample(*shape, dtype=dtype, seed=seed)
    return x @ x.mH + shape[-1] * torch.eye(shape[-1], dtype=dtype)


def mixed_loss(*outputs):
    """A loss whose gradient depends on every output that can be differentiated."""
    terms = []
    for seed, out in enumerate(outputs):
        if out.requires_grad:
            terms.append((sample_like(out, seed + 10).conj() * out).real.sum())
            terms.append((out * out.conj()).real.sum() / 2)
    return sum(terms)


def only(*positions):
    """The loss of these outputs, so that the others have an undefined gradient."""
    return lambda *outputs: mixed_loss(*[outputs[i] for i in positions])


def assert_same_gradients(actual, expected):
    for ours, theirs in zip(as_tuple(actual), expected, strict=True):
        assert (ours is None) == (theirs is None)
        if theirs is not None:
            assert_close(ours, theirs)


def assert_backward(operator, helper, *inputs, loss=mixed_loss, twice=True):
    """`helper` gives the gradients of `operator`, with and without a graph, and so do, with
    `twice`, the derivatives of what it gives."""
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    outputs = as_tuple(operator(*leaves))
    value = loss(*outputs)
    options = {"retain_graph": True, "allow_unused": True}
    differentiable = [out for out in outputs if out.requires_grad]
    found = iter(torch.autograd.grad(value, differentiable, create_graph=True, **options))
    grads = [next(found) if out.requires_grad else None for out in outputs]

    expected = torch.autograd.grad(value, leaves, create_graph=True, **options)
    actual = as_tuple(helper(grads, leaves, outputs))
    assert_same_gradients(actual, expected)
    with torch.no_grad():
        plain = helper(grads, leaves, outputs)
    assert_same_gradients(plain, torch.autograd.grad(value, leaves, **options))
    ours = [x for x in actual if x is not None and x.numel()]
    theirs = [x for x in expected if x is not None and x.numel()]
    if twice and ours:
        assert_close(directional_gradients(ours, leaves), directional_gradients(theirs, leaves))


def assert_jvp(operator, helper, *inputs):
    """`helper` gives the tangents of `operator`."""
    tangents = tuple(sample_like(x, seed) for seed, x in enumerate(inputs, 20))
    outputs, expected = torch.func.jvp(operator, inputs, tangents)
    actual = helper(tangents, inputs, as_tuple(outputs))
    assert_close(as_tuple(actual), as_tuple(expected))


def assert_maps(function, *stacks):
    """vmap of `function` gives what the function gives for the batch."""
    assert_close(as_tuple(torch.func.vmap(function)(*stacks)), as_tuple(function(*stacks)))


def assert_gradcheck(function, *inputs, forward=True, fast_mode=False):
    """Numerical differentiation agrees with both modes of automatic differentiation; with
    `fast_mode` in one direction."""
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    assert torch.autograd.gradcheck(function, leaves, check_forward_ad=forward, fast_mode=fast_mode)
