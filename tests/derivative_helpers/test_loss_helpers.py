# SPDX-License-Identifier: BSD-3-Clause
"""Derivative helpers of losses, against torch's own operators."""

import pytest
import torch
from aten_oracle import assert_differentiable, assert_same, gradients, sample
from torch.nn import functional

OPS, ATEN = torch.ops.derivative_helpers, torch.ops.aten
NONE, MEAN, SUM = 0, 1, 2
SIZES = [(3, 4), (), (0, 2)]

over_reductions = pytest.mark.parametrize("reduction", [NONE, MEAN, SUM])
over_sizes = pytest.mark.parametrize("size", SIZES)
over_weights = pytest.mark.parametrize("is_weighted", [False, True])


def probabilities(*size, seed=0):
    return sample(*size, seed=seed).sigmoid()


def cotangent(function, *inputs):
    """A gradient for the function's result."""
    return sample(*function(*inputs).shape, seed=9)


@over_reductions
def test_reductions(reduction):
    x = sample(3, 4)
    expected = {NONE: x, MEAN: x.mean(), SUM: x.sum()}[reduction]
    assert_same([OPS.apply_loss_reduction(x, reduction)], [expected])


# Cross entropy.


@over_weights
@over_reductions
@over_sizes
def test_target_of_binary_cross_entropy(size, reduction, is_weighted):
    x, t = probabilities(*size), probabilities(*size, seed=1)
    weight = sample(*size, seed=2).abs() if is_weighted else None

    def loss(t):
        return ATEN.binary_cross_entropy(x, t, weight, reduction)

    grad = cotangent(loss, t)
    actual = OPS.binary_cross_entropy_target_backward(grad, x, t, weight, reduction)
    assert_same([actual], gradients(loss, [t], grad))


def test_target_of_binary_cross_entropy_at_the_ends():
    x, t = torch.tensor([0.0, 1, 0, 1, 0.5]), torch.tensor([0.0, 1, 1, 0, 1])
    grad = torch.ones(5)
    actual = OPS.binary_cross_entropy_target_backward(grad, x, t, None, NONE)
    expected = gradients(lambda t: ATEN.binary_cross_entropy(x, t, None, NONE), [t], grad)
    assert_same([actual], expected)


def double_backward_of_cross_entropy(grad, g, x, t, weight, reduction):
    of_g = OPS.binary_cross_entropy_double_backward_grad_output(grad, x, t, weight, reduction)
    return (
        of_g.sum_to_size(g.shape),  # as the engine does; a tangent is not summed
        OPS.binary_cross_entropy_double_backward(g, grad, x, t, weight, reduction),
        OPS.binary_cross_entropy_double_backward_target(grad, g, x, t, weight, reduction),
    )


@over_weights
@over_reductions
@over_sizes
def test_binary_cross_entropy_backward(size, reduction, is_weighted):
    x, t = probabilities(*size), probabilities(*size, seed=1)
    weight = sample(*size, seed=2).abs() if is_weighted else None
    g = sample(*(size if reduction == NONE else ()), seed=3)

    def backward(g, x, t):
        return ATEN.binary_cross_entropy_backward(g, x, t, weight, reduction)

    grad = cotangent(backward, g, x, t)
    actual = double_backward_of_cross_entropy(grad, g, x, t, weight, reduction)
    assert_same(actual, gradients(backward, [g, x, t], grad))


def test_binary_cross_entropy_backward_at_the_ends():
    x, t = torch.tensor([0.0, 1, 0, 1, 0.5]), torch.tensor([0.0, 1, 1, 0, 0])
    g, grad = torch.ones(5), torch.ones(5)

    def backward(g, x, t):
        return ATEN.binary_cross_entropy_backward(g, x, t, None, NONE)

    actual = double_backward_of_cross_entropy(grad, g, x, t, None, NONE)
    assert_same(actual, gradients(backward, [g, x, t], grad))


@over_reductions
def test_binary_cross_entropy_differentiates_again(reduction):
    x, t, weight = probabilities(3), probabilities(3, seed=1), sample(3, seed=2).abs()
    grad, g = sample(3, seed=3), sample(*((3,) if reduction == NONE else ()), seed=4)

    def helper(grad, g, x, t):
        return double_backward_of_cross_entropy(grad, g, x, t, weight, reduction)

    assert_differentiable(helper, grad, g, x, t)
    assert_differentiable(
        lambda g, x, t: OPS.binary_cross_entropy_target_backward(g, x, t, weight, reduction),
        g,
        x,
        t,
    )


WEIGHTS = [(False, False), (True, False), (False, True), (True, True)]


def of_logits(g, x, t, weight, pos_weight, reduction):
    arguments = g, x, t, weight, pos_weight, reduction
    return (
        OPS.binary_cross_entropy_with_logits_backward(*arguments),
        OPS.binary_cross_entropy_with_logits_target_backward(*arguments),
    )


@over_reductions
@over_sizes
@pytest.mark.parametrize("is_weighted, has_pos_weight", WEIGHTS)
def test_cross_entropy_of_logits(size, reduction, is_weighted, has_pos_weight):
    x, t = sample(*size) * 4, probabilities(*size, seed=1)
    weight = sample(*size, seed=2).abs() if is_weighted else None
    pos_weight = sample(*size[-1:], seed=3).abs() if has_pos_weight else None

    def loss(x, t):
        arguments = weight, pos_weight, reduction
        return ATEN.binary_cross_entropy_with_logits(x, t, *arguments)

    g = cotangent(loss, x, t)
    actual = of_logits(g, x, t, weight, pos_weight, reduction)
    assert_same(actual, gradients(loss, [x, t], g))
    if x.numel() > 0:
        assert_differentiable(
            lambda g, x, t: of_logits(g, x, t, weight, pos_weight, reduction), g, x, t
        )


def test_cross_entropy_of_large_logits_is_finite():
    x, t = torch.tensor([-500.0, 500]), torch.tensor([1.0, 0])
    for gradient in of_logits(torch.ones(2), x, t, None, torch.tensor(2.0), NONE):
        assert gradient.isfinite().all()


# Distances.

X, T = torch.tensor([0.0, 1, 2.5, -3, 0.25]).double(), torch.tensor([0.0, 0, 1, 1, 0.5]).double()


def distance_backward(name, reduction, *arguments):
    """The backward of a loss, and the helper as the gradient of its `self`, for its product."""
    backward = getattr(ATEN, f"{name}_backward")
    helper = getattr(OPS, f"{name}_double_backward")
    return (
        lambda g, x, t: backward(g, x, t, reduction, *arguments),
        lambda grad, x, t: helper(grad, x, t, reduction, *arguments),
    )


@over_reductions
@pytest.mark.parametrize(
    "name, arguments",
    [
        ("smooth_l1_loss", [1.0]),
        ("smooth_l1_loss", [2.0]),
        ("smooth_l1_loss", [0.0]),
        ("huber_loss", [1.0]),
        ("huber_loss", [0.3]),
        ("soft_margin_loss", []),
    ],
)
def test_second_derivatives_of_distances(name, arguments, reduction):
    backward, helper = distance_backward(name, reduction, *arguments)
    for x, t in ((X, T), (sample(0, 2), sample(0, 2)), (sample(), sample(seed=1))):
        g = sample(*(x.shape if reduction == NONE else ()), seed=3)
        grad = cotangent(backward, g, x, t)
        # The target of soft_margin_loss has no gradient.
        inputs = [g, x] if name == "soft_margin_loss" else [g, x, t]
        _, *expected = gradients(lambda g, x, t=t: backward(g, x, t), inputs, grad)
        second = helper(grad * g, x, t)
        assert_same([second, -second][: len(expected)], expected)


@over_reductions
def test_second_derivative_of_mse_loss(reduction):
    g = sample(*(X.shape if reduction == NONE else ()), seed=3)
    grad = sample(5, seed=4)

    def backward(g, x, t):
        return ATEN.mse_loss_backward(g, x, t, reduction)

    of_x = OPS.mse_loss_double_backward(grad * g, X, reduction)
    assert_same([of_x, -of_x], gradients(backward, [g, X, T], grad)[1:])
    assert_differentiable(lambda grad: OPS.mse_loss_double_backward(grad, X, reduction), grad)


@over_reductions
@pytest.mark.parametrize("name, arguments", [("huber_loss", [1.0]), ("soft_margin_loss", [])])
def test_gradient_of_grad_output(name, arguments, reduction):
    backward, _ = distance_backward(name, reduction, *arguments)
    helper = getattr(OPS, f"{name}_double_backward_grad_output")
    for x, t in ((X, T), (sample(0, 2), sample(0, 2))):
        g = sample(*(x.shape if reduction == NONE else ()), seed=3)
        grad = cotangent(backward, g, x, t)
        expected = gradients(lambda g, x=x, t=t: backward(g, x, t), [g], grad)
        assert_same([helper(grad, g, x, t, reduction, *arguments)], expected)


@over_reductions
def test_distances_differentiate_again(reduction):
    x, t, grad = sample(4), sample(4, seed=1), sample(4, seed=2)
    g = sample(*((4,) if reduction == NONE else ()), seed=3)
    for name, arguments in (("smooth_l1_loss", [1.0]), ("huber_loss", [1.0])):
        _, helper = distance_backward(name, reduction, *arguments)
        assert_differentiable(helper, grad, x, t)

    def soft_margin(grad, g, x):
        of_g = OPS.soft_margin_loss_double_backward_grad_output(grad, g, x, t, reduction)
        return of_g, OPS.soft_margin_loss_double_backward(grad * g, x, t, reduction)

    # torch has no tangent of soft_margin_loss_backward.
    assert_differentiable(soft_margin, grad, g, x, forward=False)


# CTC.


@pytest.mark.parametrize("library", ["cudnn", "miopen"])
@pytest.mark.parametrize("zero_infinity", [False, True])
def test_ctc(library, zero_infinity):
    helper = getattr(OPS, f"_{library}_ctc_loss_backward")
    log_probs = sample(6, 3, 5).log_softmax(2)
    targets = torch.tensor([[1, 2, 3, 4], [1, 1, 1, 1], [4, 3, 2, 1]])
    lengths = [6, 6, 6], [4, 4, 2]

    def losses(log_probs):
        arguments = targets, *lengths
        return functional.ctc_loss(
            log_probs, *arguments, reduction="none", zero_infinity=zero_infinity
        )

    loss, grad = losses(log_probs), sample(3)
    assert zero_infinity == bool((loss == 0).any())  # [1, 1, 1, 1] needs seven steps
    (raw,) = gradients(losses, [log_probs], torch.ones(3))
    raw = raw.nan_to_num()
    if zero_infinity:  # as a library leaves it
        raw[:, 1] = float("nan")
    actual = helper(grad, loss, raw, zero_infinity)
    expected = gradients(losses, [log_probs], grad)
    assert_same([actual], [t.nan_to_num() for t in expected])
    assert_differentiable(lambda g: helper(g, loss, raw.nan_to_num(), zero_infinity), grad)
