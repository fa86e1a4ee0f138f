# SPDX-License-Identifier: BSD-3-Clause
"""The helpers of torchext/derivatives/norm.h against aten's autograd."""

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
aten = torch.ops.aten
INF = math.inf

ORDERS = [0.5, 1, 1.5, 2, 2.5, 3, INF, -INF, -1]
REDUCTIONS = [
    ((), [], False),
    ((), [0], True),
    ((4,), [0], False),
    ((3, 4), [1], False),
    ((3, 4), [-2], True),
    ((2, 3, 4), [-1, 0], False),
    ((3, 4), [], True),
    ((0, 3), [1], False),
]
over_orders = pytest.mark.parametrize("p", ORDERS)
over_reductions = pytest.mark.parametrize(("shape", "dim", "keepdim"), REDUCTIONS)
over_dtypes = pytest.mark.parametrize("dtype", REAL_AND_COMPLEX, ids=str)


@over_reductions
@over_orders
@over_dtypes
def test_norm_along_dims(shape, dim, keepdim, p, dtype):
    def norm(x):
        return aten.norm.ScalarOpt_dim(x, p, dim, keepdim)

    x = sample(*shape, dtype=dtype)
    assert_reverse(
        norm,
        lambda grad, x, result: ops.norm_backward.dim(grad, x, p, result, dim, keepdim),
        x,
        twice=shape != () and x.numel() > 0,
    )
    assert_tangent(norm, lambda x, t, r: ops.norm_jvp.dim(x, t, p, r, dim, keepdim), x)


@pytest.mark.parametrize("shape", [(), (4,), (3, 4)])
@pytest.mark.parametrize("p", ORDERS)
@over_dtypes
def test_norm_of_all(shape, p, dtype):
    def norm(x):
        return aten.norm.Scalar(x, p)

    def norm_of_rank_zero(x):  # the tangent of aten.norm.Scalar has another shape than its result
        return torch.linalg.vector_norm(x, p)

    x = sample(*shape, dtype=dtype)
    assert_reverse(
        norm, lambda g, x, r: ops.norm_backward.default(g, x, p, r), x, twice=shape != ()
    )
    assert_tangent(norm_of_rank_zero, lambda x, t, r: ops.norm_jvp.default(x, t, p, r), x)


def test_norm_is_euclidean_by_default():
    x, grad = sample(4), sample()
    expected = ops.norm_backward.default(grad, x, 2, x.norm())
    assert_close(ops.norm_backward.default(grad, x, None, x.norm()), expected)


@pytest.mark.parametrize("dtype", [None, torch.complex128])
@pytest.mark.parametrize(
    ("shape", "dim", "keepdim"),
    [((), None, False), ((3, 4), None, True), ((3, 4), [1], False), ((3, 4), [0, 1], True)],
)
@over_orders
def test_linalg_vector_norm(shape, dim, keepdim, p, dtype):
    def norm(x):
        return torch.linalg.vector_norm(x, p, dim, keepdim, dtype=dtype)

    x = sample(*shape, dtype=dtype or torch.float64)
    assert_reverse(
        norm,
        lambda g, x, r: ops.linalg_vector_norm_backward(g, x, p, r, dim, keepdim),
        x,
        twice=shape != (),
    )
    assert_tangent(norm, lambda x, t, r: ops.linalg_vector_norm_jvp(x, t, p, r, dim, keepdim), x)


def test_the_number_of_nonzeros_has_no_derivative():
    x, grad = sample(3), sample()
    assert ops.norm_backward.default(grad, x, 0, x.norm(0)) is None
    assert ops.linalg_vector_norm_backward(grad, x, 0, x.norm(0), None, False) is None
    assert_close(ops.norm_jvp.default(x, x, 0, x.norm(0)), torch.zeros_like(x.norm()))


@over_orders
@over_dtypes
def test_norm_at_zeros(p, dtype):
    # one row with a zero, one of zeros
    x = sample(2, 3, dtype=dtype)
    x[0, 1] = 0
    x[1] = 0

    def norm(x):
        return torch.linalg.vector_norm(x, p, 1)

    assert_reverse(
        norm,
        lambda g, x, r: ops.linalg_vector_norm_backward(g, x, p, r, [1], False),
        x,
        twice=False,
    )
    x.requires_grad_()
    gradient = ops.linalg_vector_norm_backward(torch.ones(2), x, p, norm(x), [1], False)
    (second,) = torch.autograd.grad(
        gradient.abs().sum(), x, allow_unused=True, materialize_grads=True
    )
    assert not second.isnan().any()


def test_ties_share_the_gradient_of_the_maximum_norm():
    x = torch.tensor([[3.0, -3.0, 1.0], [2.0, 0.0, -1.0]], dtype=torch.float64)
    for p in (INF, -INF):
        assert_reverse(
            lambda x, p=p: x.norm(p, 1),
            lambda g, x, r, p=p: ops.norm_backward.dim(g, x, p, r, [1], False),
            x,
        )


def test_shares_of_the_maximum_norm_have_the_precision_of_the_tensor():
    x, grad = torch.ones(3, dtype=torch.float64), torch.ones((), dtype=torch.float64)
    assert torch.equal(ops.norm_backward.default(grad, x, INF, x.norm(INF)) * 3, x)


@pytest.mark.parametrize("dtype", [torch.half, torch.float32, torch.complex64], ids=str)
@over_orders
def test_norm_keeps_the_dtype(p, dtype):
    x = sample(3, 4).to(dtype)
    result = torch.linalg.vector_norm(x, p, 1)
    args = (p, result, [1], False)
    assert ops.norm_backward.dim(torch.ones_like(result), x, *args).dtype == dtype
    assert ops.norm_jvp.dim(x, x, *args).dtype == result.dtype


@pytest.mark.parametrize("p", [0.5, 1, 1.5, 2, 3, INF])
def test_dist(p):
    x, y = sample(3, 4), sample(3, 4, seed=3)
    assert_reverse(
        lambda x: torch.dist(x, y, p), lambda g, x, r: ops.norm_backward.default(g, x - y, p, r), x
    )
    assert_tangent(
        lambda x: torch.dist(x, y, p),
        lambda x, t, r: ops.norm_jvp.dim(x - y, t, p, r, [], False),
        x,
    )


@pytest.mark.parametrize("p", [0.5, 1, 1.5, 2, 3, INF])
@pytest.mark.parametrize(("shape", "dim"), [((3, 4), 0), ((3, 4), -1), ((2, 3, 4), 1)])
@over_dtypes
def test_renorm_scales_some_slices(p, shape, dim, dtype):
    x = sample(*shape, dtype=dtype)
    norms = torch.linalg.vector_norm(x.movedim(dim, 0).flatten(1), p, 1)
    maxnorm = norms.median().item() * 1.01

    def renorm(x):
        return torch.renorm(x, p, dim, maxnorm)

    assert_reverse(renorm, lambda g, x, _: ops.renorm_backward(g, x, p, dim, maxnorm), x)
    assert_tangent(renorm, lambda x, t, _: ops.renorm_jvp(x, t, p, dim, maxnorm), x)


def test_renorm_keeps_half_types():
    x = sample(3, 4).half()
    for helper in (ops.renorm_backward, ops.renorm_jvp):
        assert helper(x, x, 2, 0, 0.5).dtype == torch.half


@pytest.mark.parametrize(
    "helper",
    [
        lambda x, t: ops.norm_backward.dim(t.sum(1), x, 3, x.norm(3, 1), [1], False),
        lambda x, t: ops.norm_backward.dim(t.sum(1), x, 1.5, x.norm(1.5, 1), [1], False),
        lambda x, t: ops.norm_backward.default(t.sum(), x, None, x.norm()),
        lambda x, t: ops.norm_backward.default(t.sum(), x, INF, x.norm(INF)),
        lambda x, t: ops.norm_jvp.dim(x, t, 0.5, x.norm(0.5, 1), [1], False),
        lambda x, t: ops.linalg_vector_norm_jvp(x, t, 2, x.norm(), None, False),
        lambda x, t: ops.renorm_backward(t, x, 2, 0, 1.5),
        lambda x, t: ops.renorm_jvp(x, t, 3, 0, 1.5),
    ],
)
def test_helpers_differentiate_and_vmap(helper):
    x, t = sample(3, 4), sample(3, 4, seed=1)
    assert_differentiable(helper, x, t)
    assert_vmaps(helper, sample(2, 3, 4), sample(2, 3, 4, seed=1))
