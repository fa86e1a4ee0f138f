# SPDX-License-Identifier: BSD-3-Clause
"""The helpers of torchext/derivatives/distance.h.

The first derivatives are compared with aten's. Of cdist's and pdist's second derivatives the oracle
is the first written with differentiable operations, which is compared with aten's in turn.
"""

import math

import pytest
import torch
from aten_oracle import assert_differentiable, assert_vmaps, directional_gradients, sample
from torch.testing import assert_close

ops = torch.ops.derivative_helpers
aten = torch.ops.aten
INF = math.inf

POWERS = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, INF]
over_powers = pytest.mark.parametrize("p", POWERS)


def distance_slope(difference, distance, p):
    """The derivative of the p-norm by the difference, as a function of that and of the norm."""
    distance = distance.unsqueeze(-1)
    if p == 0:
        return difference * 0 * distance
    if p == INF:
        return difference.sign() * (difference.abs() == distance)
    return difference.sign() * difference.abs() ** (p - 1) / distance ** (p - 1)


def cdist_gradient(grad, x1, x2, p, distance):
    slope = distance_slope(x1.unsqueeze(-2) - x2.unsqueeze(-3), distance, p)
    return (grad.unsqueeze(-1) * slope).sum(-2)


def pdist_gradient(grad, x, p, distance):
    begin, end = torch.triu_indices(len(x), len(x), 1)
    share = grad.unsqueeze(-1) * distance_slope(x[begin] - x[end], distance, p)
    return torch.zeros_like(x).index_add(0, begin, share).index_add(0, end, -share)


def leaves(*tensors):
    return [t.detach().requires_grad_() for t in tensors]


@pytest.mark.parametrize("batch", [(), (2,), (3, 2)])
def test_euclidean_dist(batch):
    x1, x2 = leaves(sample(*batch, 3, 4), sample(*batch, 5, 4, seed=1))
    result = aten._euclidean_dist(x1, x2)
    grad = sample(*batch, 3, 5, seed=2)
    expected = torch.autograd.grad(result, (x1, x2), grad, create_graph=True)
    actual = ops._euclidean_dist_backward(grad, x1, x2, result)
    assert_close(actual, expected)
    inputs = (x1, x2)
    assert_close(directional_gradients(actual, inputs), directional_gradients(expected, inputs))
    assert ops._euclidean_dist_backward(None, x1, x2, result) == (None, None)


def test_euclidean_dist_at_distance_zero():
    x1, x2, distance = leaves(
        sample(2, 3), sample(2, 3), sample(2, 2, seed=1).abs().fill_diagonal_(0)
    )
    actual = ops._euclidean_dist_backward(torch.ones(2, 2).double(), x1, x2, distance)
    lone = (x1[0] - x2[1]) / distance[0, 1]
    assert_close(actual[0][0], lone)
    second = directional_gradients(actual, (x1, x2, distance))
    assert not any(s.isnan().any() for s in second)


@pytest.mark.parametrize("batch", [(), (2,)])
@over_powers
def test_cdist_double_backward(p, batch):
    x1, x2 = sample(*batch, 3, 4), sample(*batch, 5, 4, seed=1)
    distance = torch.cdist(x1, x2, p, compute_mode="donot_use_mm_for_euclid_dist")
    inputs = leaves(sample(*batch, 3, 5, seed=2), x1, x2, distance)
    grad_output, x1, x2, distance = inputs
    first = cdist_gradient(grad_output, x1, x2, p, distance)
    assert_close(aten._cdist_backward(grad_output, x1, x2, p, distance), first)

    grad = sample(*batch, 3, 4, seed=3)
    expected = torch.autograd.grad(first, inputs, grad, allow_unused=True, materialize_grads=True)
    args = (grad, grad_output, x1, x2, p, distance)
    assert_close(ops._cdist_backward_backward(*args, [True] * 4), expected)
    for i in range(4):
        mask = [i == k for k in range(4)]
        actual = ops._cdist_backward_backward(*args, mask)
        assert_close(actual[i], expected[i])
        if i in (0, 3):
            assert [a is None for a in actual] == [not m for m in mask]
    assert ops._cdist_backward_backward(None, *args[1:], [True] * 4) == (None,) * 4


@over_powers
def test_pdist_double_backward(p):
    x = sample(4, 3)
    inputs = leaves(sample(6, seed=1), x, torch.pdist(x, p))
    grad_output, x, distance = inputs
    first = pdist_gradient(grad_output, x, p, distance)
    assert_close(aten._pdist_backward(grad_output, x, p, distance), first)

    grad = sample(4, 3, seed=2)
    expected = torch.autograd.grad(first, inputs, grad, allow_unused=True, materialize_grads=True)
    args = (grad, grad_output, x, p, distance)
    assert_close(ops._pdist_backward_backward(*args, [True] * 3), expected)
    for i in range(3):
        mask = [i == k for k in range(3)]
        actual = ops._pdist_backward_backward(*args, mask)
        assert_close(actual[i], expected[i])
        assert [a is None for a in actual] == [not m for m in mask]
    assert ops._pdist_backward_backward(None, *args[1:], [True] * 3) == (None,) * 3


@over_powers
def test_coinciding_points_and_coordinates_leave_no_nan(p):
    x1 = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64)
    x2 = torch.tensor([[1.0, 2.0], [3.0, 5.0]], dtype=torch.float64)
    distance = torch.cdist(x1, x2, p, compute_mode="donot_use_mm_for_euclid_dist")
    inputs = leaves(sample(2, 2), sample(2, 2, seed=1), x1, x2, distance)
    grad, grad_output, x1, x2, distance = inputs
    actual = ops._cdist_backward_backward(grad, grad_output, x1, x2, p, distance, [True] * 4)
    assert not any(a.isnan().any() or a.isinf().any() for a in actual)
    # linear in grad, with the slope that aten uses
    assert_close(
        (grad * aten._cdist_backward(grad_output, x1, x2, p, distance)).sum(),
        (actual[0] * grad_output).sum(),
    )
    third = directional_gradients([a for a in actual if a.requires_grad], inputs)
    assert not any(t.isnan().any() for t in third)


@pytest.mark.parametrize(("rows", "columns", "size"), [(0, 2, 3), (2, 0, 3), (2, 3, 0)])
def test_empty_inputs(rows, columns, size):
    x1, x2, distance = sample(rows, size), sample(columns, size), sample(rows, columns)
    actual = ops._cdist_backward_backward(x1, distance, x1, x2, 2.0, distance, [True] * 4)
    assert [a.shape for a in actual] == [t.shape for t in (distance, x1, x2, distance)]
    pairs = sample(rows * (rows - 1) // 2)
    actual = ops._pdist_backward_backward(x1, pairs, x1, 2.0, pairs, [True] * 3)
    assert [a.shape for a in actual] == [t.shape for t in (pairs, x1, pairs)]


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
def test_helpers_differentiate_and_vmap(p):
    def cdist(grad, grad_output, x1, x2):
        distance = (x1.unsqueeze(-2) - x2.unsqueeze(-3)).abs().pow(p).sum(-1).pow(1 / p)
        return ops._cdist_backward_backward(grad, grad_output, x1, x2, p, distance, [True] * 4)

    def pdist(grad, grad_output, x):
        distance = x[:2].sub(x[1:]).abs().pow(p).sum(-1).pow(1 / p)
        distance = torch.stack([distance[0], distance[0], distance[1]])
        return ops._pdist_backward_backward(grad, grad_output, x, p, distance, [True] * 3)

    assert_differentiable(
        cdist, sample(3, 2), sample(3, 4, seed=1), sample(3, 2, seed=2), sample(4, 2, seed=3)
    )
    assert_differentiable(pdist, sample(3, 2), sample(3, seed=1), sample(3, 2, seed=2))
    assert_vmaps(
        lambda *t: cdist(*t)[1],
        sample(2, 3, 2),
        sample(2, 3, 4, seed=1),
        sample(2, 3, 2, seed=2),
        sample(2, 4, 2, seed=3),
    )
    assert_vmaps(
        lambda *t: pdist(*t)[1], sample(2, 3, 2), sample(2, 3, seed=1), sample(2, 3, 2, seed=2)
    )
