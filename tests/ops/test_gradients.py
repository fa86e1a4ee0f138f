# SPDX-License-Identifier: BSD-3-Clause
"""Numerical checks of first and second derivatives in both modes, and which gradients are asked."""

import pytest
import torch
from cases import (
    first_call,
    function_of_tensors,
    gradients,
    has_kernels,
    is_differentiable,
    loss_of,
    over_operators,
    over_operators_and,
    parts,
    requiring_grad,
    run,
)
from layouts import LAYOUTS_OF_A_MATRIX, in_layout
from samples import HALVES, SAMPLES, tensor
from torch.autograd import gradcheck, gradgradcheck

SHAPE = (2, 4)


def contiguous_clone(t):
    return t.clone(memory_format=torch.contiguous_format)


def calls_with_gradient(sample, dtype):
    shape = SHAPE if len(sample.small_shape) > 1 else sample.small_shape
    return [requiring_grad(call) for call in sample.calls(shape, dtype)]


@over_operators_and("dtype", lambda sample: sample.gradient_dtypes, is_differentiable)
def test_gradients_agree_with_finite_differences(sample, dtype):
    for call in calls_with_gradient(sample, dtype):
        assert gradcheck(
            function_of_tensors(sample, call),
            call.tensors,
            check_forward_ad=True,
            check_backward_ad=True,
            check_batched_grad=True,
            check_batched_forward_grad=True,
        )


@over_operators_and("dtype", lambda sample: sample.gradient_dtypes, is_differentiable)
def test_second_derivatives_agree_with_finite_differences(sample, dtype):
    for call in calls_with_gradient(sample, dtype):
        function = function_of_tensors(sample, call)
        assert gradgradcheck(
            function, call.tensors, check_fwd_over_rev=True, check_rev_over_rev=True
        )


@over_operators(lambda sample: sample.is_pointwise)
def test_gradients_of_0_dim_and_broadcast_tensors_agree_with_finite_differences(sample):
    for shapes in (((), ()), ((), (3,)), ((3, 1), (2,)), ((1, 1), (2, 3)), ((0, 1), (3,))):
        for call in sample.calls((), torch.float64):
            arguments = [tensor(shape, torch.float64) for shape, _ in zip(shapes, call.tensors)]
            call = requiring_grad(call.with_tensors(arguments))
            function = function_of_tensors(sample, call)
            assert gradcheck(function, call.tensors, check_forward_ad=True)


@pytest.mark.parametrize("name", ["add.Tensor", "mul.Tensor", "muladd"])
def test_gradients_of_a_real_and_a_complex_tensor_agree_with_finite_differences(name):
    sample = SAMPLES[name]
    for dtypes in ((torch.float64, torch.complex128), (torch.complex128, torch.float64)):
        for call in sample.calls((3,), torch.complex128):
            call = requiring_grad(call.with_tensors([tensor((3,), dtype) for dtype in dtypes]))
            function = function_of_tensors(sample, call)
            assert gradcheck(function, call.tensors, check_forward_ad=True)
            assert gradgradcheck(function, call.tensors, check_fwd_over_rev=True)


@over_operators(is_differentiable)
def test_each_input_alone_gets_the_gradient_it_gets_together(sample):
    for call in calls_with_gradient(sample, torch.float64):
        together = gradients(sample, call)
        for index, expected in enumerate(together):
            alone = [t.detach().requires_grad_(i == index) for i, t in enumerate(call.tensors)]
            result = run(sample, call.with_tensors(alone))
            if any(part.requires_grad for part in parts(result)):
                loss_of(result).backward()
                torch.testing.assert_close(alone[index].grad, expected, rtol=0, atol=0)
            else:
                assert not expected.any()
            assert all(t.grad is None for i, t in enumerate(alone) if i != index)


def has_forward_meaning(sample) -> bool:
    return has_kernels(sample) and not sample.name.endswith("_backward")


@over_operators_and("dtype", lambda sample: HALVES, has_forward_meaning)
def test_gradients_of_half_precision_are_those_of_torch(sample, dtype):
    for call in calls_with_gradient(sample, dtype):
        result = run(sample, call)
        incoming = tensor(result.shape, dtype)
        grads = torch.autograd.grad(result, call.tensors, incoming)
        # Where torch has no such operator, the kernel rounds once: what float32 gives, rounded.
        in_torch = sample.reference.__module__ != "references"
        exact = call if in_torch else requiring_grad(call.map_tensors(torch.Tensor.float))
        expected = sample.reference(*exact.args, **exact.kwargs)
        expected = torch.autograd.grad(expected, exact.tensors, incoming.to(expected.dtype))
        torch.testing.assert_close(grads, tuple(grad.to(dtype) for grad in expected))


@pytest.mark.parametrize("layout", LAYOUTS_OF_A_MATRIX, ids=lambda layout: layout.__name__)
@over_operators(is_differentiable)
def test_the_layout_of_an_incoming_gradient_does_not_matter(sample, layout):
    call = requiring_grad(first_call(sample))
    results = parts(run(sample, call))
    incoming = [in_layout(layout, tensor(part.shape, part.dtype)) for part in results]
    contiguous = [contiguous_clone(grad) for grad in incoming]
    grads = torch.autograd.grad(results, call.tensors, incoming, retain_graph=True)
    expected = torch.autograd.grad(results, call.tensors, contiguous)
    torch.testing.assert_close(grads, expected)


@pytest.mark.parametrize("layout", LAYOUTS_OF_A_MATRIX, ids=lambda layout: layout.__name__)
@over_operators(is_differentiable)
def test_the_layout_of_inputs_does_not_change_gradients(sample, layout):
    call = first_call(sample).map_tensors(lambda t: in_layout(layout, t))
    strided = call.map_tensors(lambda t: t.detach().requires_grad_())
    contiguous = requiring_grad(call.map_tensors(contiguous_clone))
    torch.testing.assert_close(gradients(sample, strided), gradients(sample, contiguous))


@pytest.mark.parametrize("index", [0, 1], ids=["grad_input_only", "grad_weight_only"])
def test_a_result_whose_gradient_is_undefined_contributes_nothing(index):
    sample = SAMPLES["rms_norm_backward"]
    call = requiring_grad(first_call(sample))
    results, expected = run(sample, call), sample.reference(*call.args)
    grads = torch.autograd.grad(results[index].sum(), call.tensors, materialize_grads=True)
    expected = torch.autograd.grad(expected[index].sum(), call.tensors, materialize_grads=True)
    torch.testing.assert_close(grads, expected)


@pytest.mark.parametrize("mask", [[True, False], [False, True]], ids=str)
def test_a_masked_result_of_backward_is_absent(mask):
    x, weight = tensor((2, 4), torch.float64), tensor((4,), torch.float64)
    results = torch.ops.myns.rms_norm_backward(x, x, weight, 1e-6, mask)
    assert [result is not None for result in results] == mask


def test_rms_norm_without_weight_has_a_gradient_for_its_input_only():
    x = tensor((2, 4), torch.float64).requires_grad_()
    assert gradcheck(lambda x: torch.ops.myns.rms_norm(x, None, 0.5), (x,), check_forward_ad=True)
    torch.ops.myns.rms_norm(x).sum().backward()
    assert x.grad is not None


@over_operators_and("shape", lambda sample: sample.empty_shapes, is_differentiable)
def test_gradients_of_empty_tensors_are_empty(sample, shape):
    for call in sample.calls(shape, torch.float64):
        call = requiring_grad(call)
        for grad, argument in zip(gradients(sample, call), call.tensors):
            assert grad.shape == argument.shape
            assert not grad.any()
