# SPDX-License-Identifier: BSD-3-Clause
"""Derivative helpers of activation functions, against torch's own operators."""

import pytest
import torch
from aten_oracle import assert_differentiable, assert_same, gradients, sample
from torch.nn import functional

OPS, ATEN = torch.ops.derivative_helpers, torch.ops.aten
SIZES = [(3, 4), (), (0, 2)]
DTYPES = [torch.float64, torch.float32]


def assert_is_double_backward(helper, backward, *inputs):
    """`helper(grad, *inputs)` is the gradient of the last input of an operator's backward."""
    grad = sample(*backward(*inputs).shape, dtype=inputs[0].dtype, seed=9)
    assert_same([helper(grad, *inputs)], gradients(backward, inputs, grad)[-1:])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["silu", "mish"])
def test_first_derivatives(name, size, dtype):
    helper = getattr(OPS, f"infinitely_differentiable_{name}_backward")
    x, grad = sample(*size, dtype=dtype) * 5, sample(*size, dtype=dtype, seed=1)
    assert_same([helper(grad, x)], gradients(getattr(functional, name), [x], grad))
    if dtype == torch.float64 and x.numel() > 0:
        assert_differentiable(helper, grad, x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu(approximate, size, dtype):
    def helper(grad, g, x):
        return OPS.gelu_double_backward(grad, g, x, approximate)

    def backward(g, x):
        return ATEN.gelu_backward(g, x, approximate=approximate)

    g, x = sample(*size, dtype=dtype), sample(*size, dtype=dtype, seed=1) * 3
    assert_is_double_backward(helper, backward, g, x)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_differentiates_again(approximate):
    inputs = sample(4), sample(4, seed=1), sample(4, seed=2)
    assert_differentiable(lambda *t: OPS.gelu_double_backward(*t, approximate), *inputs)


def test_gelu_refuses_other_approximations():
    x = sample(2)
    with pytest.raises(RuntimeError, match='gelu: approximate must be "none" or "tanh"'):
        OPS.gelu_double_backward(x, x, x, "erf")


SCALES = [(1.0, 1.0, 1.0), (1.6, 0.5, 2.0)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("is_result", [False, True])
def test_elu(is_result, scales, dtype):
    def helper(grad, g, x):
        return OPS.elu_double_backward(grad, g, *scales, is_result, x)

    def backward(g, x):
        return ATEN.elu_backward(g, *scales, is_result, x)

    # Beyond the exponential's range, too, and at the kink.
    x = torch.tensor([-0.7, -0.1, 0, 0.3, 2, 800], dtype=dtype)
    g = sample(6, dtype=dtype)
    assert_is_double_backward(helper, backward, g, x)
    assert_is_double_backward(helper, backward, sample(0, 2), sample(0, 2))
    inputs = sample(4, seed=1), sample(4, seed=2), torch.tensor([-0.7, -0.2, 0.3, 2]).double()
    assert_differentiable(helper, *inputs)


def test_slope_of_elu_far_from_the_kink_is_finite():
    x = torch.tensor([1000.0, 5.0], requires_grad=True)
    ones = torch.ones(2)
    (gradient,) = torch.autograd.grad(
        OPS.elu_double_backward(ones, ones, 1.0, 1.0, 1.0, False, x).sum(), x
    )
    assert_same([gradient], [torch.zeros(2)])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES)
def test_log_sigmoid(size, dtype):
    def helper(grad, g, x):
        return OPS.log_sigmoid_double_backward(grad * g, x)

    def backward(g, x):
        _, buffer = ATEN.log_sigmoid_forward(x)
        return ATEN.log_sigmoid_backward(g, x, buffer)

    g, x = sample(*size, dtype=dtype), sample(*size, dtype=dtype, seed=1) * 5
    assert_is_double_backward(helper, backward, g, x)
    assert_differentiable(OPS.log_sigmoid_double_backward, sample(3), sample(3, seed=1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("beta, threshold", [(1, 20), (2.5, 1), (0.5, 0.25)])
def test_softplus(beta, threshold, dtype):
    def helper(grad, g, x):
        return OPS.softplus_double_backward(grad * g, x, beta, threshold)

    def backward(g, x):
        return ATEN.softplus_backward(g, x, beta, threshold)

    x = torch.tensor([-3, -0.1, 0, 0.4, 0.5, 2, 30], dtype=dtype)
    assert_is_double_backward(helper, backward, sample(7, dtype=dtype), x)
    inputs = sample(4), torch.tensor([-3, -0.1, 0.2, 2]).double()
    assert_differentiable(lambda g, x: OPS.softplus_double_backward(g, x, beta, threshold), *inputs)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size, dim", [((3, 4), 1), ((3, 4), -2), ((), 0), ((0, 2), 1)])
def test_softmax(size, dim, dtype):
    def helper(grad, g, y):
        return OPS.softmax_double_backward(grad, g, dim, y)

    def backward(g, y):
        return ATEN._softmax_backward_data(g, y, dim, dtype)

    y = sample(*size, dtype=dtype, seed=1).softmax(dim)
    assert_is_double_backward(helper, backward, sample(*size, dtype=dtype), y)
    if dtype == torch.float64 and y.numel() > 0:
        assert_differentiable(helper, sample(*size), sample(*size, seed=2), y)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size, dim", [((3, 4), 1), ((4, 3), -2), ((2,), 0), ((0, 2), 1)])
def test_glu(size, dim, dtype):
    x = sample(*size, dtype=dtype)
    g = sample(*functional.glu(x, dim).shape, dtype=dtype, seed=1)

    def backward(g, x):
        return ATEN.glu_backward(g, x, dim)

    grad = sample(*size, dtype=dtype, seed=2)
    actual = [
        OPS.glu_double_backward_grad_output(grad, x, dim),
        OPS.glu_double_backward(grad, g, x, dim),
    ]
    assert_same(actual, gradients(backward, [g, x], grad))


def test_glu_differentiates_again():
    grad, g, x = sample(3, 4), sample(3, 2, seed=1), sample(3, 4, seed=2)
    assert_differentiable(lambda *t: OPS.glu_double_backward(*t, 1), grad, g, x)
    assert_differentiable(lambda *t: OPS.glu_double_backward_grad_output(*t, 1), grad, x)
