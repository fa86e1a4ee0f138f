# SPDX-License-Identifier: BSD-3-Clause
"""Compare a derivative helper with what torch's own autograd makes of the aten operator.

An operator is a function of one tensor, with its other arguments bound. Its reverse helper is
called as `helper(grad, self, result)`, its forward helper as `helper(self, tangent, result)`.
"""

import re
from pathlib import Path

import pytest
import torch
import torchgen
from torch.testing import assert_close

REAL_AND_COMPLEX = (torch.float64, torch.complex128)


def needs_formula(name):
    """Skips a test whose oracle is the derivative of an operator, where aten has none."""
    packaged = Path(torchgen.__file__).parent / "packaged" / "autograd" / "derivatives.yaml"
    has_formula = re.search(rf"^- name: {name}\(", packaged.read_text(), re.MULTILINE)
    return pytest.mark.skipif(
        not has_formula, reason=f"aten of this torch has no derivative of {name}"
    )


def sample(*shape, dtype=torch.float64, seed=0):
    """A random tensor, the same for the same arguments."""
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def sample_like(t, seed):
    """A random tensor of the shape and dtype of `t`."""
    return sample(*t.shape, dtype=t.dtype, seed=seed)


def directional_gradients(outputs, inputs, seed=7):
    """The gradients of random combinations of `outputs`; zeros where an input has no part."""
    total = sum((out * sample_like(out, seed).conj()).real.sum() for out in outputs)
    return torch.autograd.grad(
        total, inputs, retain_graph=True, allow_unused=True, materialize_grads=True
    )


def assert_reverse(operator, helper, x, twice=True):
    """`helper` gives the gradient of `operator`; with `twice`, so do their derivatives."""
    x = x.detach().requires_grad_()
    result = operator(x)
    grad = sample_like(result, seed=1).requires_grad_()
    (expected,) = torch.autograd.grad(result, x, grad, create_graph=twice)
    actual = helper(grad, x, result)
    assert_close(actual, expected)
    if twice and expected.requires_grad:
        second = directional_gradients([expected], [x, grad])
        assert_close(directional_gradients([actual], [x, grad]), second)


def assert_tangent(operator, helper, x):
    """`helper` gives the tangent of `operator`."""
    x = x.detach()
    tangent = sample_like(x, seed=2)
    result, expected = torch.func.jvp(operator, (x,), (tangent,))
    assert_close(helper(x, tangent, result), expected)


def assert_vmaps(helper, *stacks):
    """vmap of `helper` gives what a loop over the stacks does."""
    expected = torch.stack([helper(*slices) for slices in zip(*stacks, strict=True)])
    assert_close(torch.func.vmap(helper)(*stacks), expected)


def gradients(function, inputs, cotangents):
    """Gradients of a function's results, None where a result does not depend on an input."""
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    return torch.autograd.grad(function(*leaves), leaves, cotangents, allow_unused=True)


def assert_same(actual, expected):
    """Equal values, dtypes and shapes, and None in the same places."""
    assert [x is None for x in actual] == [x is None for x in expected]
    for ours, theirs in zip(actual, expected, strict=True):
        if theirs is not None:
            assert_close(ours, theirs, equal_nan=True)


# Numerical derivatives in all directions take a minute for three small matrices.
over_modes = pytest.mark.parametrize(
    "fast_mode", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["one", "all"]
)


def assert_differentiable(function, *inputs, forward=True, fast_mode=False):
    """The function's own derivatives are right: reverse and forward, batched, too; with
    `fast_mode` in one direction."""
    leaves = tuple(x.detach().clone().requires_grad_() for x in inputs)
    # Batched tangents of views of complex numbers end in an internal error of torch.
    batches_tangents = forward and not any(x.is_complex() for x in inputs)
    assert torch.autograd.gradcheck(
        function,
        leaves,
        check_batched_grad=True,
        check_forward_ad=forward,
        check_batched_forward_grad=batches_tangents,
        check_undefined_grad=False,
        fast_mode=fast_mode,
    )
