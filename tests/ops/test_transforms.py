# SPDX-License-Identifier: BSD-3-Clause
"""torch.func over every operator: grad, per-sample gradients, jacrev; forward mode never lies."""

import pytest
import torch
from cases import (
    first_call,
    function_of_tensors,
    gradients,
    has_kernels,
    is_differentiable,
    loss_of,
    operator_of,
    over_operators,
    parts,
    requiring_grad,
    run,
)
from samples import SAMPLES, tensor
from torch.autograd import forward_ad

BATCH = 3


def all_arguments(call):
    return tuple(range(len(call.tensors)))


def gradient_function(sample, call):
    function = function_of_tensors(sample, call)
    return torch.func.grad(lambda *tensors: loss_of(function(*tensors)), all_arguments(call))


@over_operators(is_differentiable)
def test_func_grad_is_the_gradient(sample):
    for call in sample.calls(sample.small_shape, torch.float64):
        actual = gradient_function(sample, call)(*call.tensors)
        torch.testing.assert_close(actual, gradients(sample, requiring_grad(call)))


@over_operators(is_differentiable)
def test_vmap_of_grad_gives_per_sample_gradients(sample):
    for call in sample.calls(sample.small_shape, torch.float64):
        batches = [tensor((BATCH, *t.shape), torch.float64) for t in call.tensors]
        actual = torch.func.vmap(gradient_function(sample, call))(*batches)
        for index, grads in enumerate(zip(*actual)):
            single = requiring_grad(call.with_tensors([batch[index] for batch in batches]))
            torch.testing.assert_close(grads, gradients(sample, single))


@over_operators()
def test_vmap_over_any_dimension_is_a_loop(sample):
    for in_dim in (0, -1):
        call = first_call(sample)
        stacks = [torch.stack([t, 2 * t, 3 * t], in_dim) for t in call.tensors]
        function = function_of_tensors(sample, call)
        in_dims = (in_dim, *[None] * (len(stacks) - 1))
        mapped = torch.func.vmap(function, in_dims)(stacks[0], *call.tensors[1:])
        for factor in range(BATCH):
            single = function((factor + 1) * call.tensors[0], *call.tensors[1:])
            of_batch = [part[factor] for part in parts(mapped)]
            torch.testing.assert_close(of_batch, parts(single))


@over_operators(is_differentiable)
def test_jacrev_is_the_jacobian(sample):
    call = first_call(sample)
    function = function_of_tensors(sample, call)
    actual = torch.func.jacrev(function, all_arguments(call))(*call.tensors)
    expected = torch.autograd.functional.jacobian(function, tuple(call.tensors))
    torch.testing.assert_close(actual, expected)


@over_operators(is_differentiable)
def test_grad_of_grad_is_the_second_derivative(sample):
    call = first_call(sample)
    first = gradient_function(sample, call)
    second = torch.func.grad(lambda *tensors: loss_of(first(*tensors)), all_arguments(call))
    recorded = requiring_grad(call)
    loss = loss_of(run(sample, recorded))
    grads = torch.autograd.grad(loss, recorded.tensors, create_graph=True, materialize_grads=True)
    expected = torch.autograd.grad(loss_of(grads), recorded.tensors, materialize_grads=True)
    torch.testing.assert_close(second(*call.tensors), expected)


@over_operators(has_kernels)
def test_jvp_without_forward_mode_raises_and_never_gives_zero(sample):
    for call in sample.calls(sample.small_shape, torch.float64):
        tangents = tuple(torch.ones_like(t) for t in call.tensors)
        with pytest.raises(RuntimeError, match=operator_of(sample).qualified_name):
            torch.func.jvp(function_of_tensors(sample, call), tuple(call.tensors), tangents)


@over_operators(has_kernels)
def test_a_tangent_on_any_one_input_raises(sample):
    for call in sample.calls(sample.small_shape, torch.float64):
        for index, primal in enumerate(call.tensors):
            with forward_ad.dual_level():
                inputs = list(call.tensors)
                inputs[index] = forward_ad.make_dual(primal, torch.ones_like(primal))
                with pytest.raises(RuntimeError, match=operator_of(sample).qualified_name):
                    run(sample, call.with_tensors(inputs))


def test_functionalize_keeps_the_result():
    sample = SAMPLES["rms_norm"]
    call = first_call(sample)
    function = function_of_tensors(sample, call)
    torch.testing.assert_close(
        torch.func.functionalize(function)(*call.tensors), function(*call.tensors)
    )
