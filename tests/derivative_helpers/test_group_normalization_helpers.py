# SPDX-License-Identifier: BSD-3-Clause
"""The helpers of torchext/derivatives/group_normalization.h against aten's derivatives."""

import itertools

import pytest
import torch
from aten_oracle import assert_vmaps, directional_gradients, sample, sample_like
from torch.testing import assert_close

from torchext.compat import version

ops = torch.ops.derivative_helpers
forward_ad = torch.autograd.forward_ad
EPS = 1e-3
GROUPS = 2
SHAPES = [(3, 4), (2, 4, 3), (2, 6, 2, 2), (2, 4, 2, 1, 2), (0, 4, 2)]
of_nothing = pytest.mark.skipif(
    version() >= (2, 14), reason="torch 2.14 normalizes no channels without elements"
)
SOME_OF_THREE = [mask for mask in itertools.product([True, False], repeat=3) if any(mask)]


def sizes_of(x):
    elements = x.shape[2:].numel()
    return x.shape[0], x.shape[1], elements, GROUPS


def group_norm(x, weight, bias):
    return torch.ops.aten.native_group_norm(x, weight, bias, *sizes_of(x), EPS)


def composed_group_norm(x, weight, bias):
    """The same from operators whose derivatives of any order are right: aten drops the gradient of
    one of the statistics where the other has none."""
    grouped = x.reshape(x.shape[0], GROUPS, -1)
    mean = grouped.mean(-1)
    rstd = (grouped.var(-1, correction=0) + EPS).rsqrt()
    result = ((grouped - mean[..., None]) * rstd[..., None]).reshape(x.shape)
    if weight is not None:
        per_channel = (1, -1, *[1] * (x.dim() - 2))
        result = result * weight.view(per_channel) + bias.view(per_channel)
    return result, mean, rstd


def parameters(shape, affine):
    return tuple(sample(shape[1], seed=i) if affine else None for i in (1, 2))


@pytest.mark.parametrize(
    ("affine", "moving"),
    [*((True, mask) for mask in SOME_OF_THREE), (False, (True, False, False))],
)
@pytest.mark.parametrize("shape", [*SHAPES, pytest.param((2, 4, 0), marks=of_nothing)])
def test_group_norm_tangents(shape, affine, moving):
    x, (weight, bias) = sample(*shape), parameters(shape, affine)
    primals = (x, weight, bias)
    tangents = [
        sample_like(primal, seed=5) if primal is not None and there else None
        for primal, there in zip(primals, moving, strict=True)
    ]
    _, mean, rstd = group_norm(*primals)
    with forward_ad.dual_level():
        duals = [
            primal if tangent is None else forward_ad.make_dual(primal, tangent)
            for primal, tangent in zip(primals, tangents, strict=True)
        ]
        expected = [forward_ad.unpack_dual(output).tangent for output in group_norm(*duals)]
    pairs = itertools.chain.from_iterable(zip(primals, tangents, strict=True))
    assert_close(ops.group_norm_jvp(*pairs, mean, rstd, GROUPS), expected[0])
    x_t = tangents[0]
    mean_t = ops.group_norm_mean_jvp(x_t, mean, GROUPS)
    rstd_t = ops.group_norm_invstd_jvp(x, x_t, mean, rstd, GROUPS)
    if x_t is None:
        assert mean_t is None
        assert rstd_t is None
    else:
        assert_close(mean_t, expected[1], equal_nan=True)
        assert_close(rstd_t, expected[2], equal_nan=True)


def backward(grads, x, mean, rstd, weight, affine):
    """Both names of the helper, which agree."""
    arguments = (*grads, x, mean, rstd, weight, *sizes_of(x))
    mask = [True, affine, affine]
    gradients = ops.infinitely_differentiable_native_group_norm_backward(*arguments, EPS, mask)
    assert_close(
        [g for g in ops.native_group_norm_backward_dispatcher(*arguments, mask) if g is not None],
        [g for g in gradients if g is not None],
    )
    return [gradient for gradient in gradients if gradient is not None]


@pytest.mark.parametrize("given", SOME_OF_THREE)
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if 0 not in shape])
def test_group_norm_backward(shape, affine, given):
    leaves = [t for t in (sample(*shape), *parameters(shape, affine)) if t is not None]
    leaves = [leaf.requires_grad_() for leaf in leaves]
    x, weight, bias = leaves if affine else (leaves[0], None, None)
    outputs = composed_group_norm(x, weight, bias)
    grads = [
        sample_like(output, seed=6 + i).requires_grad_() if there else None
        for i, (output, there) in enumerate(zip(outputs, given, strict=True))
    ]
    used = [(out, grad) for out, grad in zip(outputs, grads, strict=True) if grad is not None]
    expected = torch.autograd.grad(
        [out for out, _ in used],
        leaves,
        [grad for _, grad in used],
        create_graph=True,
        allow_unused=True,
    )
    expected = [gradient for gradient in expected if gradient is not None]
    actual = backward(grads, x, *outputs[1:], weight, affine)
    assert_close(actual, expected)
    inputs = [*leaves, *(grad for _, grad in used)]
    second = directional_gradients(expected, inputs)
    assert_close(directional_gradients(actual, inputs), second)


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_group_norm_backward_is_that_of_aten(shape, affine):
    leaves = [t for t in (sample(*shape), *parameters(shape, affine)) if t is not None]
    leaves = [leaf.requires_grad_() for leaf in leaves]
    x, weight, bias = leaves if affine else (leaves[0], None, None)
    result, mean, rstd = group_norm(x, weight, bias)
    grad = sample_like(result, seed=6)
    expected = torch.autograd.grad(result, leaves, grad)
    assert_close(backward((grad, None, None), x, mean, rstd, weight, affine), list(expected))


@of_nothing
def test_group_norm_backward_of_empty_channels():
    """The sums over nothing are zero; aten's gradient of the weight is NaN."""
    x, (weight, bias) = sample(2, 4, 0), parameters((2, 4, 0), True)
    _, mean, rstd = group_norm(x, weight, bias)
    gradients = backward((x, None, None), x, mean, rstd, weight, True)
    assert_close(gradients, [x, torch.zeros_like(weight), torch.zeros_like(bias)])


def test_group_norm_backward_without_gradients():
    x = sample(2, 4)
    _, mean, rstd = group_norm(x, None, None)
    assert backward((None, None, None), x, mean, rstd, None, False) == []


def test_vmap_of_group_norm():
    x, weight = sample(2, 4, 3), sample(4, seed=2)
    _, mean, rstd = group_norm(x, weight, weight)
    tangents = sample(3, 2, 4, 3, seed=1)
    assert_vmaps(
        lambda t: ops.group_norm_jvp(x, t, weight, None, None, None, mean, rstd, GROUPS), tangents
    )
    assert_vmaps(lambda t: ops.group_norm_mean_jvp(t, mean, GROUPS), tangents)
    for part in range(3):
        assert_vmaps(
            lambda t, part=part: ops.infinitely_differentiable_native_group_norm_backward(
                t, mean, rstd, x, mean, rstd, weight, *sizes_of(x), EPS, [True] * 3
            )[part],
            tangents,
        )
