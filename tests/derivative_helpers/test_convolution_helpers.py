# SPDX-License-Identifier: BSD-3-Clause
"""Derivative helpers of convolution and max pooling, against torch's own operators."""

import pytest
import torch
from aten_oracle import assert_differentiable, assert_same, gradients, over_modes, sample
from torch.nn import functional

OPS, ATEN = torch.ops.derivative_helpers, torch.ops.aten

# input, weight, (stride, padding, dilation, transposed, output_padding, groups)
CASES = {
    "1d": ((2, 3, 6), (4, 3, 3), ([2], [1], [1], False, [0], 1)),
    "2d": ((2, 4, 5, 6), (6, 2, 2, 3), ([1, 2], [1, 0], [2, 1], False, [0, 0], 2)),
    "3d": ((1, 2, 4, 3, 4), (2, 2, 2, 1, 2), ([1] * 3, [0] * 3, [1] * 3, False, [0] * 3, 1)),
    "transposed": ((2, 4, 3, 4), (4, 2, 3, 2), ([2, 2], [1, 0], [1, 1], True, [1, 0], 2)),
    "empty": ((0, 3, 6), (4, 3, 3), ([1], [0], [1], False, [0], 1)),
}
over_cases = pytest.mark.parametrize("case", CASES)
over_dtypes = pytest.mark.parametrize("dtype", [torch.float64, torch.float32])


def arguments_of(case, dtype=torch.float64):
    """Input, weight, bias, and the rest."""
    input_size, weight_size, rest = CASES[case]
    channels = weight_size[1] * rest[5] if rest[3] else weight_size[0]
    x, w = sample(*input_size, dtype=dtype), sample(*weight_size, dtype=dtype, seed=1)
    return x, w, sample(channels, dtype=dtype, seed=2), rest


def interleaved(primals, tangents):
    return [t for pair in zip(primals, tangents, strict=True) for t in pair]


@over_dtypes
@over_cases
@pytest.mark.parametrize("name", ["convolution", "_convolution"])
def test_tangents(name, case, dtype):
    *primals, rest = arguments_of(case, dtype)
    tangents = [sample(*p.shape, dtype=dtype, seed=seed) for seed, p in enumerate(primals, 5)]
    _, expected = torch.func.jvp(
        lambda *p: ATEN.convolution(*p, *rest), tuple(primals), tuple(tangents)
    )
    helper = getattr(OPS, f"{name}_jvp")
    assert_same([helper(*interleaved(primals, tangents), *rest)], [expected])


@pytest.mark.parametrize("name", ["convolution", "_convolution"])
@pytest.mark.parametrize("missing", [[0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]])
def test_missing_tangents_are_zero(name, missing):
    *primals, rest = arguments_of("2d")
    tangents = [None if i in missing else sample(*p.shape, seed=7) for i, p in enumerate(primals)]
    helper = getattr(OPS, f"{name}_jvp")
    actual = helper(*interleaved(primals, tangents), *rest)
    if len(missing) == 3:
        assert actual is None
        return
    full = [torch.zeros_like(p) if t is None else t for p, t in zip(primals, tangents, strict=True)]
    _, expected = torch.func.jvp(
        lambda *p: ATEN.convolution(*p, *rest), tuple(primals), tuple(full)
    )
    assert_same([actual], [expected])


@over_modes
def test_tangents_differentiate_again(fast_mode):
    x, w, _, rest = arguments_of("1d")
    tangents = sample(*x.shape, seed=3), sample(*w.shape, seed=4)

    def helper(x, x_t, w, w_t):
        return OPS.convolution_jvp(x, x_t, w, w_t, None, None, *rest)

    assert_differentiable(helper, x, tangents[0], w, tangents[1], fast_mode=fast_mode)


@pytest.mark.parametrize("size", [(2, 3, 4), (2, 3, 4, 5), (2, 3, 1, 2, 2), (0, 3, 4)])
def test_tangent_of_the_gradient_of_the_bias(size):
    grad, bias = sample(*size), torch.zeros(3).double()
    expected = grad.sum([d for d in range(len(size)) if d != 1])
    assert_same([OPS.convolution_backward_jvp_grad_bias(grad, bias)], [expected])
    assert OPS.convolution_backward_jvp_grad_bias(grad, None) is None


def test_tangent_of_the_gradient_of_the_bias_refuses_other_gradients():
    with pytest.raises(RuntimeError, match="gradient of 3 to 5 dimensions, got 2"):
        OPS.convolution_backward_jvp_grad_bias(sample(2, 3), sample(3))


@over_cases
@pytest.mark.parametrize("mask", [[True, True], [True, False], [False, True]])
def test_cudnn_convolution(case, mask):
    x, w, _, (stride, padding, dilation, transposed, output_padding, groups) = arguments_of(case)
    shape = padding, output_padding, stride, dilation, transposed, groups

    def convolve(x, w):
        rest = stride, padding, dilation, transposed, output_padding, groups
        return ATEN.convolution(x, w, None, *rest)

    grad = sample(*convolve(x, w).shape, seed=3)
    expected = gradients(convolve, [x, w], grad)
    expected = [t if is_needed else None for t, is_needed in zip(expected, mask, strict=True)]
    assert_same(OPS._cudnn_convolution_backward(x, grad, w, *shape, mask), expected)
    assert OPS._cudnn_convolution_backward(x, None, w, *shape, mask) == (None, None)


@over_modes
def test_cudnn_convolution_differentiates_again(fast_mode):
    x, w, _, (stride, padding, dilation, transposed, output_padding, groups) = arguments_of("1d")
    shape = padding, output_padding, stride, dilation, transposed, groups

    def helper(x, g, w):
        return OPS._cudnn_convolution_backward(x, g, w, *shape, [True, True])

    assert_differentiable(helper, x, sample(2, 4, 3), w, forward=False, fast_mode=fast_mode)


# Pooling.


@pytest.mark.parametrize(
    "size, dim", [((2, 3, 6, 4), 2), ((3, 6, 4), 2), ((2, 2, 4, 4, 6), 3), ((2, 4, 4, 6), 3)]
)
def test_max_pooling(size, dim):
    x = sample(*size)
    pool = {2: functional.max_pool2d, 3: functional.max_pool3d}[dim]
    y, indices = pool(x, 2, return_indices=True)

    def backward(g):
        operator = getattr(ATEN, f"max_pool{dim}d_with_indices_backward")
        return operator(g, x, [2] * dim, [2] * dim, [0] * dim, [1] * dim, False, indices)

    grad = sample(*size, seed=1)
    actual = OPS.max_pool_double_backward(grad, indices, dim)
    assert_same([actual], gradients(backward, [y], grad))
    assert_differentiable(lambda g: OPS.max_pool_double_backward(g, indices, dim), grad)


def test_max_unpooling():
    x = sample(1, 2, 4, 6)
    y, indices = functional.max_pool2d(x, 2, return_indices=True)
    grad = sample(1, 2, 4, 6, seed=1)
    expected = gradients(lambda y: ATEN.max_unpool2d(y, indices, [4, 6]), [y], grad)
    assert_same([OPS.max_pool_double_backward(grad, indices, 2)], expected)


def test_max_pooling_of_nothing():
    indices = torch.empty(0, 2, 3, 3, dtype=torch.long)
    actual = OPS.max_pool_double_backward(sample(0, 2, 6, 6), indices, 2)
    assert_same([actual], [sample(0, 2, 3, 3)])


def test_max_pooling_without_indices_has_no_second_derivative():
    with pytest.raises(RuntimeError, match="return_indices=True"):
        OPS.error_for_max_pool2d_double_backward()
