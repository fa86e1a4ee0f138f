# SPDX-License-Identifier: BSD-3-Clause
"""torch.func over every operator: what each transform gives for its reference, made of torch's."""

import pytest
import torch
from cases import (
    all_arguments,
    direction,
    directions,
    first_call,
    function_of_tensors,
    gradient_of,
    gradients,
    is_differentiable,
    loss_of,
    over_operators,
    over_operators_and,
    parts,
    reference_of_tensors,
    requiring_grad,
    run,
)
from samples import SAMPLES, tensor
from torch.autograd import forward_ad

BATCH = 3


def vjp(function, tensors):
    results, pull_back = torch.func.vjp(function, *tensors)
    single = isinstance(results, torch.Tensor)
    return pull_back(direction(results) if single else directions(results))


def jvp(function, tensors):
    return torch.func.jvp(function, tuple(tensors), directions(tensors))


def tangents(function, tensors):
    return tuple(parts(torch.func.jvp(function, tuple(tensors), directions(tensors))[1]))


def batches_of(tensors):
    return [torch.stack([t, 2 * t, t - 1]) for t in tensors]


def hessian(function, tensors):
    loss = torch.func.hessian(lambda *given: loss_of(function(*given)), all_arguments(tensors))
    return loss(*tensors)


def vmap_of_grad(function, tensors):
    return torch.func.vmap(gradient_of(function, tensors))(*batches_of(tensors))


def vmap_of_jvp(function, tensors):
    mapped = torch.func.vmap(lambda *given: tangents(function, given))
    return mapped(*batches_of(tensors))


def forward_over_reverse(function, tensors):
    return jvp(gradient_of(function, tensors), tensors)


def reverse_over_forward(function, tensors):
    return gradient_of(lambda *given: tangents(function, given), tensors)(*tensors)


TRANSFORMS = {
    "grad": lambda function, tensors: gradient_of(function, tensors)(*tensors),
    "vjp": vjp,
    "jvp": jvp,
    "jacrev": lambda f, tensors: torch.func.jacrev(f, all_arguments(tensors))(*tensors),
    "jacfwd": lambda f, tensors: torch.func.jacfwd(f, all_arguments(tensors))(*tensors),
    "hessian": hessian,
    "vmap(grad)": vmap_of_grad,
    "vmap(jvp)": vmap_of_jvp,
    "jvp(grad)": forward_over_reverse,
    "grad(jvp)": reverse_over_forward,
}


@over_operators_and("name", lambda sample: TRANSFORMS, is_differentiable)
def test_a_transform_gives_what_it_gives_for_the_reference(sample, name):
    for call in sample.calls(sample.small_shape, torch.float64):
        actual = TRANSFORMS[name](function_of_tensors(sample, call), call.tensors)
        expected = TRANSFORMS[name](reference_of_tensors(sample, call), call.tensors)
        torch.testing.assert_close(actual, expected)


def is_complex(sample):
    return is_differentiable(sample) and torch.complex128 in sample.dtypes


@over_operators_and("name", lambda sample: ("grad", "vjp", "jvp", "vmap(jvp)"), is_complex)
def test_a_transform_of_complex_numbers(sample, name):
    for call in sample.calls(sample.small_shape, torch.complex128):
        actual = TRANSFORMS[name](function_of_tensors(sample, call), call.tensors)
        expected = TRANSFORMS[name](reference_of_tensors(sample, call), call.tensors)
        torch.testing.assert_close(actual, expected)


@over_operators(is_differentiable)
def test_func_grad_is_the_gradient(sample):
    for call in sample.calls(sample.small_shape, torch.float64):
        function = function_of_tensors(sample, call)
        actual = gradient_of(function, call.tensors)(*call.tensors)
        torch.testing.assert_close(actual, gradients(sample, requiring_grad(call)))


@over_operators(is_differentiable)
def test_a_tangent_on_one_input_alone_is_that_with_zeros_on_the_others(sample):
    for call in sample.calls(sample.small_shape, torch.float64):
        reference = reference_of_tensors(sample, call)
        for index, primal in enumerate(call.tensors):
            given = [torch.zeros_like(t) for t in call.tensors]
            given[index] = direction(primal)
            _, expected = torch.func.jvp(reference, tuple(call.tensors), tuple(given))
            with forward_ad.dual_level():
                inputs = list(call.tensors)
                inputs[index] = forward_ad.make_dual(primal, given[index])
                results = parts(run(sample, call.with_tensors(inputs)))
                actual = [forward_ad.unpack_dual(result).tangent for result in results]
            for found, wanted in zip(actual, parts(expected), strict=True):
                if found is None:
                    assert not wanted.any()
                else:
                    torch.testing.assert_close(found, wanted)


@over_operators(is_differentiable)
def test_without_tangents_there_is_none(sample):
    call = first_call(sample)
    with forward_ad.dual_level():
        results = parts(run(sample, call))
        assert [forward_ad.unpack_dual(result).tangent for result in results] == [None] * len(
            results
        )


@pytest.mark.usefixtures("fresh_dynamo")
@over_operators(is_differentiable)
def test_a_compiled_jvp_is_that_of_eager(sample):
    call = first_call(sample)
    function = function_of_tensors(sample, call)

    def step(primals, given):
        return torch.func.jvp(function, primals, given)

    arguments = tuple(call.tensors), directions(call.tensors)
    compiled = torch.compile(step, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(*arguments), step(*arguments))


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
def test_vmap_of_grad_gives_per_sample_gradients(sample):
    for call in sample.calls(sample.small_shape, torch.float64):
        batches = [tensor((BATCH, *t.shape), torch.float64) for t in call.tensors]
        gradient = gradient_of(function_of_tensors(sample, call), call.tensors)
        for index, grads in enumerate(zip(*torch.func.vmap(gradient)(*batches))):
            single = requiring_grad(call.with_tensors([batch[index] for batch in batches]))
            torch.testing.assert_close(grads, gradients(sample, single))


def test_functionalize_keeps_the_result():
    sample = SAMPLES["rms_norm"]
    call = first_call(sample)
    function = function_of_tensors(sample, call)
    torch.testing.assert_close(
        torch.func.functionalize(function)(*call.tensors), function(*call.tensors)
    )
