# SPDX-License-Identifier: BSD-3-Clause
"""The helpers of torchext/derivatives/normalization.h against aten's derivatives."""

import itertools

import pytest
import torch
from aten_oracle import assert_vmaps, directional_gradients, sample, sample_like
from torch.testing import assert_close

ops = torch.ops.derivative_helpers
aten = torch.ops.aten
EPS = 1e-3
# Which of (input, weight, bias) or of the gradients of the three results of a backward are there.
SOME_OF_THREE = [mask for mask in itertools.product([True, False], repeat=3) if any(mask)]
# Whether there are a weight and a bias, and which of the three: without them only the first.
AFFINE_AND_SOME = [*((True, mask) for mask in SOME_OF_THREE), (False, (True, False, False))]


def assert_tangent(operator, helper, primals, moving):
    """`helper(*primal and tangent of each argument)` is the tangent of `operator`, where only the
    arguments in `moving` have a tangent and a missing argument is None."""
    tangents = [
        sample_like(primal, seed=10 + i) if primal is not None and moving[i] else None
        for i, primal in enumerate(primals)
    ]
    with torch.autograd.forward_ad.dual_level():
        duals = [
            primal if tangent is None else torch.autograd.forward_ad.make_dual(primal, tangent)
            for primal, tangent in zip(primals, tangents, strict=True)
        ]
        expected = torch.autograd.forward_ad.unpack_dual(operator(*duals)).tangent
    pairs = itertools.chain.from_iterable(zip(primals, tangents, strict=True))
    assert_close(helper(*pairs), expected)


def assert_double_backward(backward, helper, leaves, given):
    """`helper` is the derivative of `backward(input, weight, grad_out)`, where the gradients of
    the results are given for those in `given` only; a missing weight is None."""
    leaves = [leaf if leaf is None else leaf.requires_grad_() for leaf in leaves]
    outputs = backward(*leaves)
    gradients = [
        sample_like(output, seed=20 + i) if output is not None and given[i] else None
        for i, output in enumerate(outputs)
    ]
    used = [(out, grad) for out, grad in zip(outputs, gradients, strict=True) if grad is not None]
    expected = iter(
        torch.autograd.grad(
            [out for out, _ in used],
            [leaf for leaf in leaves if leaf is not None],
            [grad for _, grad in used],
            allow_unused=True,
        )
    )
    actual = helper(*leaves[:2], *gradients, leaves[2])
    for leaf, gradient in zip(leaves, actual, strict=True):
        expected_gradient = None if leaf is None else next(expected)
        assert (gradient is None) == (expected_gradient is None)
        if gradient is not None:
            assert_close(gradient, expected_gradient)


# ---- Batch norm

BATCH_SHAPES = [(4, 3), (2, 3, 4), (2, 3, 2, 2)]


def running_statistics(training):
    return (None, None) if training else (sample(3, seed=8), sample(3, seed=9).square() + 1)


def batch_norm(x, weight, bias, running, training):
    return aten.native_batch_norm(x, weight, bias, *running, training, 0.1, EPS)


@pytest.mark.parametrize(("affine", "moving"), AFFINE_AND_SOME)
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", BATCH_SHAPES)
def test_batch_norm_jvp(shape, training, affine, moving):
    x = sample(*shape)
    weight, bias = (sample(3, seed=1), sample(3, seed=2)) if affine else (None, None)
    running = running_statistics(training)
    _, mean, invstd = batch_norm(x, weight, bias, running, training)
    assert_tangent(
        lambda x, weight, bias: batch_norm(x, weight, bias, running, training)[0],
        lambda *pairs: ops.batch_norm_jvp(*pairs, *running, mean, invstd, training, EPS),
        (x, weight, bias),
        moving,
    )


@pytest.mark.parametrize(("affine", "given"), AFFINE_AND_SOME)
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", BATCH_SHAPES)
def test_batchnorm_double_backward(shape, training, affine, given):
    x = sample(*shape)
    weight = sample(3, seed=1) if affine else None
    running = running_statistics(training)
    _, *saved = batch_norm(x, weight, None, running, training)

    def backward(x, weight, grad):
        mask = [True, weight is not None, weight is not None]
        return aten.native_batch_norm_backward(
            grad, x, weight, *running, *saved, training, EPS, mask
        )

    def helper(x, weight, *gradients_and_grad):
        return ops.batchnorm_double_backward(
            x, weight, *gradients_and_grad, *running, training, EPS, *saved, [True] * 3
        )

    assert_double_backward(backward, helper, [x, weight, sample(*shape, seed=3)], given)


def test_batch_norm_evaluation_needs_running_statistics():
    x = sample(2, 3)
    with pytest.raises(RuntimeError, match="without running statistics"):
        ops.batch_norm_jvp(x, x, None, None, None, None, None, None, x[0], x[0], False, EPS)


# ---- Layer norm

# Shape of the input and number of dimensions normalized.
LAYER_SHAPES = [((2, 3, 4), 1), ((2, 3, 4), 2), ((2, 3), 2), ((5,), 1), ((0, 3), 1)]


@pytest.mark.parametrize(("affine", "moving"), AFFINE_AND_SOME)
@pytest.mark.parametrize(("shape", "dims"), LAYER_SHAPES)
def test_layer_norm_jvp(shape, dims, affine, moving):
    x, normalized_shape = sample(*shape), shape[-dims:]
    weight, bias = (sample(*normalized_shape, seed=i) if affine else None for i in (1, 2))
    _, *saved = aten.native_layer_norm(x, normalized_shape, weight, bias, EPS)
    assert_tangent(
        lambda x, w, b: aten.native_layer_norm(x, normalized_shape, w, b, EPS)[0],
        lambda *pairs: ops.layer_norm_jvp(*pairs, *saved, normalized_shape),
        (x, weight, bias),
        moving,
    )


@pytest.mark.parametrize("outer", [torch.func.jacrev, torch.func.jacfwd])
def test_the_tangent_of_layer_norm_has_derivatives(outer):
    """What was saved has none, and yet follows from the input."""
    x, moved, weight = sample(3, 4), sample(3, 4, seed=1), sample(4, seed=2)
    _, *saved = aten.native_layer_norm(x, [4], weight, None, EPS)

    def written(x):
        rest = x - x.mean(-1, keepdim=True)
        return rest / (rest.square().mean(-1, keepdim=True) + EPS).sqrt() * weight

    found = outer(lambda x: ops.layer_norm_jvp(x, moved, weight, None, None, None, *saved, [4]))(x)
    assert_close(found, outer(lambda x: torch.func.jvp(written, (x,), (moved,))[1])(x))


@pytest.mark.parametrize(("affine", "given"), AFFINE_AND_SOME)
@pytest.mark.parametrize(("shape", "dims"), LAYER_SHAPES)
def test_layer_norm_double_backward(shape, dims, affine, given):
    x, normalized_shape = sample(*shape), shape[-dims:]
    weight = sample(*normalized_shape, seed=1) if affine else None
    _, *saved = aten.native_layer_norm(x, normalized_shape, weight, None, EPS)

    def backward(x, weight, grad):
        mask = [True, weight is not None, weight is not None]
        return aten.native_layer_norm_backward(
            grad, x, normalized_shape, *saved, weight, weight, mask
        )

    def helper(x, weight, *gradients_and_grad):
        return ops.layer_norm_double_backward(
            x, weight, *gradients_and_grad, *saved, normalized_shape, [True] * 3
        )

    assert_double_backward(backward, helper, [x, weight, sample(*shape, seed=3)], given)


def test_output_mask_of_double_backward():
    x = sample(4, 3)
    _, *saved = aten.native_layer_norm(x, [3], None, None, EPS)
    for mask in itertools.product([True, False], repeat=3):
        gradients = ops.layer_norm_double_backward(x, x[0], x, x[0], x[0], x, *saved, [3], mask)
        assert tuple(gradient is not None for gradient in gradients) == mask


def test_mixed_precision_of_layer_norm():
    """Half precision input, single precision parameters: each gradient has its tensor's dtype."""
    x = sample(2, 3, dtype=torch.bfloat16)
    weight = sample(3, dtype=torch.float32)
    _, *saved = aten.native_layer_norm(x, [3], weight, weight, EPS)
    gradients = ops.layer_norm_double_backward(
        x, weight, x, weight, weight, x, *saved, [3], [True] * 3
    )
    dtypes = [gradient.dtype for gradient in gradients]
    assert dtypes == [torch.bfloat16, torch.float32, torch.bfloat16]
    tangent = ops.layer_norm_jvp(x, x, weight, weight, weight, weight, *saved, [3])
    assert tangent.dtype == torch.bfloat16


# ---- RMS norm


def rms_norm(x, dims, weight=None):
    """Both results of _fused_rms_norm, which on the CPU is differentiated through its parts."""
    return aten._fused_rms_norm(x, x.shape[x.dim() - dims :], weight, EPS)


@pytest.mark.parametrize(
    ("affine", "moving"),
    [(True, (True, True)), (True, (True, False)), (True, (False, True)), (False, (True, False))],
)
@pytest.mark.parametrize(("shape", "dims"), LAYER_SHAPES)
def test_rms_norm_jvp(shape, dims, affine, moving):
    x, normalized_shape = sample(*shape), shape[-dims:]
    weight = sample(*normalized_shape, seed=1) if affine else None
    _, rstd = rms_norm(x, dims)
    assert_tangent(
        lambda x, weight: rms_norm(x, dims, weight)[0],
        lambda *pairs: ops.rms_norm_jvp(*pairs, rstd, normalized_shape),
        (x, weight),
        moving,
    )


@pytest.mark.parametrize(("shape", "dims"), LAYER_SHAPES)
def test_rms_norm_rstd_jvp(shape, dims):
    x = sample(*shape)
    _, rstd = rms_norm(x, dims)
    assert_tangent(
        lambda x: rms_norm(x, dims)[1],
        lambda x, x_t: ops.rms_norm_rstd_jvp(x, x_t, rstd, shape[-dims:]),
        (x,),
        (True,),
    )
    assert ops.rms_norm_rstd_jvp(x, None, rstd, shape[-dims:]) is None


@pytest.mark.parametrize("given", [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize(("shape", "dims"), LAYER_SHAPES)
def test_rms_norm_backward(shape, dims, affine, given):
    x = sample(*shape).requires_grad_()
    weight = sample(*shape[-dims:], seed=1).requires_grad_() if affine else None
    leaves = [x, weight] if affine else [x]
    result, rstd = rms_norm(x, dims, weight)
    grads = [sample_like(t, seed=3).requires_grad_() for t in (result, rstd)]
    outputs = [
        (t, grad) for t, grad, there in zip((result, rstd), grads, given, strict=True) if there
    ]
    expected = torch.autograd.grad(
        [output for output, _ in outputs],
        leaves,
        [grad for _, grad in outputs],
        create_graph=True,
        allow_unused=True,
    )
    given_grads = [grad if there else None for grad, there in zip(grads, given, strict=True)]
    actual = ops.infinitely_differentiable_native_rms_norm_backward(
        *given_grads, x, shape[-dims:], rstd, weight, [True, affine]
    )
    actual = [gradient for gradient in actual if gradient is not None]
    expected = [gradient for gradient in expected if gradient is not None]
    assert_close(actual, expected)
    inputs = [*leaves, *(grad for grad in given_grads if grad is not None)]
    second = directional_gradients(expected, inputs)
    assert_close(directional_gradients(actual, inputs), second)


def test_vmap_of_normalizations():
    x, tangents, weight = sample(4, 3), sample(2, 4, 3, seed=1), sample(3, seed=2)
    _, *saved = aten.native_layer_norm(x, [3], weight, weight, EPS)
    assert_vmaps(
        lambda t: ops.layer_norm_jvp(x, t, weight, None, None, None, *saved, [3]), tangents
    )
    for part in range(3):
        assert_vmaps(
            lambda t, part=part: ops.layer_norm_double_backward(
                x, weight, t, weight, weight, x, *saved, [3], [True] * 3
            )[part],
            tangents,
        )
    _, *saved = batch_norm(x, weight, weight, (None, None), True)
    for part in range(3):
        assert_vmaps(
            lambda t, part=part: ops.batchnorm_double_backward(
                x, weight, t, weight, weight, t, None, None, True, EPS, *saved, [True] * 3
            )[part],
            tangents,
        )
