# SPDX-License-Identifier: BSD-3-Clause
"""The helpers of torchext/derivatives/cumulative.h against aten's autograd."""

import math

import pytest
import torch
from aten_oracle import (
    REAL_AND_COMPLEX,
    assert_differentiable,
    assert_reverse,
    assert_tangent,
    assert_vmaps,
    sample,
)
from torch.testing import assert_close

ops = torch.ops.derivative_helpers
INF = math.inf

SHAPES_AND_DIMS = [
    ((), 0),
    ((), -1),
    ((1,), 0),
    ((2,), 0),
    ((7,), -1),
    ((8,), 0),
    ((3, 5), 1),
    ((5, 3, 2), 0),
    ((0,), 0),
    ((2, 0), 1),
    ((2, 0), 0),
]
over_shapes = pytest.mark.parametrize(("shape", "dim"), SHAPES_AND_DIMS)
over_dtypes = pytest.mark.parametrize("dtype", REAL_AND_COMPLEX, ids=str)


@over_shapes
@over_dtypes
def test_cumsum(shape, dim, dtype):
    assert_reverse(
        lambda x: x.cumsum(dim),
        lambda grad, x, _: ops.cumsum_backward(grad, dim),
        sample(*shape, dtype=dtype),
    )


@pytest.mark.parametrize("zeros", [(), (0,), (3,), (1, 2), (0, 4)])
@over_shapes
@over_dtypes
def test_cumprod(shape, dim, zeros, dtype):
    x = sample(*shape, dtype=dtype)
    if shape:
        x = x.index_fill(dim, torch.tensor([z for z in zeros if z < shape[dim]]).long(), 0)
    assert_tangent(
        lambda x: x.cumprod(dim),
        lambda x, t, result: ops.cumprod_jvp(t, x, result, dim),
        x,
    )


@pytest.mark.parametrize("zeros", [(), (0,), (1, 3)])
def test_cumprod_tangent_differentiates_at_zeros(zeros):
    x, t = sample(5), sample(5, seed=1)
    x[list(zeros)] = 0
    assert_differentiable(lambda t, x: ops.cumprod_jvp(t, x, x, 0), t, x)


@over_shapes
@over_dtypes
def test_logcumsumexp(shape, dim, dtype):
    def logcumsumexp(x):
        return x.logcumsumexp(dim)

    x = sample(*shape, dtype=dtype) * 3
    assert_reverse(
        logcumsumexp, lambda grad, x, result: ops.logcumsumexp_backward(grad, x, result, dim), x
    )
    if x.numel() == 0:  # aten's tangent raises
        assert_close(ops.logcumsumexp_jvp(x, x, dim), x)
    else:
        assert_tangent(logcumsumexp, lambda x, t, _: ops.logcumsumexp_jvp(x, t, dim), x)


def test_logcumsumexp_over_a_wide_range():
    # exp of no difference to a common reference is representable throughout
    x = torch.tensor([1500.0, -2000.0, 900.0, 1501.0, 3000.0], dtype=torch.float64)
    assert_reverse(
        lambda x: x.logcumsumexp(0),
        lambda grad, x, result: ops.logcumsumexp_backward(grad, x, result, 0),
        x,
        twice=False,
    )
    t = sample(5)
    weights = (x.unsqueeze(0) - x.logcumsumexp(0).unsqueeze(1)).exp().tril()
    assert_close(ops.logcumsumexp_jvp(x, t, 0), weights @ t)


@pytest.mark.parametrize("absent", [(0,), (0, 1), (2,), (0, 2, 4), (0, 1, 2, 3, 4)])
@over_dtypes
def test_logcumsumexp_of_absent_elements(absent, dtype):
    x, t = sample(5, dtype=dtype), sample(5, dtype=dtype, seed=1)
    x[list(absent)] = -INF
    # row j: what each element contributes to the sum that ends at j; nothing where all are absent
    shares = x.exp().expand(5, 5).tril()
    total = shares.sum(1)
    weights = shares / total.masked_fill(total == 0, 1).unsqueeze(1)
    assert_close(ops.logcumsumexp_jvp(x, t, 0), weights @ t)
    assert_close(ops.logcumsumexp_backward(t, x, x.logcumsumexp(0), 0), weights.mH @ t)


def test_logcumsumexp_gradient_is_linear_in_a_gradient_of_zero():
    x = sample(4)
    grad = torch.tensor([1.0, 0.0, -2.0, 0.0], dtype=torch.float64)
    assert_differentiable(
        lambda grad, x: ops.logcumsumexp_backward(grad, x, x.logcumsumexp(0), 0), grad, x
    )


@pytest.mark.parametrize(
    "helper",
    [
        lambda x, t: ops.cumsum_backward(t, 0),
        lambda x, t: ops.cumprod_jvp(t, x, x, 0),
        lambda x, t: ops.logcumsumexp_backward(t, x, x.logcumsumexp(0), 0),
        lambda x, t: ops.logcumsumexp_jvp(x, t, 0),
    ],
)
@over_dtypes
def test_helpers_differentiate_and_vmap(helper, dtype):
    x, t = sample(3, 5, dtype=dtype), sample(3, 5, dtype=dtype, seed=1)
    assert_differentiable(helper, x[0], t[0])
    assert_vmaps(helper, x, t)
