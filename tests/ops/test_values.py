# SPDX-License-Identifier: BSD-3-Clause
"""Values against torch's own operators: every dtype, empty and 0-dim tensors, special values."""

import math

import pytest
import torch
from cases import (
    assert_same_results,
    has_kernels,
    operator_of,
    over_operators,
    over_operators_and,
    run,
)
from samples import ALL_DTYPES, SAMPLES, tensor

SPECIAL_VALUES = (0.0, -0.0, 1e-30, 88.0, -88.0, 1e4, -1e4, math.inf, -math.inf, math.nan)


@over_operators_and("dtype", lambda sample: sample.dtypes)
def test_result_is_that_of_torch(sample, dtype):
    for shape in sample.shapes:
        for call in sample.calls(shape, dtype):
            assert_same_results(run(sample, call), sample.expected(call))


@over_operators_and("dtype", lambda sample: sample.dtypes)
def test_result_on_empty_tensors_is_that_of_torch(sample, dtype):
    for shape in sample.empty_shapes:
        for call in sample.calls(shape, dtype):
            assert_same_results(run(sample, call), sample.expected(call))


@over_operators_and(
    "dtype",
    lambda sample: [dtype for dtype in ALL_DTYPES if dtype not in sample.dtypes],
    has_kernels,
)
def test_other_dtypes_are_refused_by_name(sample, dtype):
    for call in sample.calls(sample.small_shape, dtype):
        with pytest.raises(RuntimeError, match=operator_of(sample).qualified_name):
            run(sample, call)


@over_operators()
def test_arguments_are_left_as_they_were(sample):
    for call in sample.calls(sample.small_shape, torch.float32):
        before = [argument.clone() for argument in call.tensors]
        versions = [argument._version for argument in call.tensors]
        run(sample, call)
        torch.testing.assert_close(call.tensors, before, rtol=0, atol=0)
        assert [argument._version for argument in call.tensors] == versions


@over_operators()
def test_result_shares_no_memory_with_an_argument(sample):
    for call in sample.calls(sample.small_shape, torch.float32):
        results = run(sample, call)
        storages = {argument.untyped_storage().data_ptr() for argument in call.tensors}
        for result in results if isinstance(results, tuple) else (results,):
            assert result is None or result.untyped_storage().data_ptr() not in storages


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@over_operators(lambda sample: sample.is_pointwise or sample.name in ("softmax", "zero_out"))
def test_infinities_and_nans_are_treated_as_torch_treats_them(sample, dtype):
    special = torch.tensor(SPECIAL_VALUES, dtype=dtype)
    for call in sample.calls(special.shape, dtype):
        # Pairs each value with each other one; unary operators take the first only.
        call = call.with_tensors([special.unsqueeze(1).expand(-1, 10), special.expand(10, 10)])
        assert_same_results(run(sample, call), sample.expected(call))


@pytest.mark.parametrize("value", [1e4, -1e4])
def test_softmax_of_large_values_does_not_overflow(value):
    result = torch.ops.myns.softmax(torch.full((3, 7), value), -1)
    torch.testing.assert_close(result, torch.full((3, 7), 1 / 7))


def test_softmax_gives_no_weight_to_minus_infinity():
    scores = torch.tensor([0.0, -math.inf, 0.0])
    result = torch.ops.myns.softmax(scores, 0)
    torch.testing.assert_close(result, torch.tensor([0.5, 0.0, 0.5]), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["float16", "bfloat16"])
def test_half_precision_sums_are_accumulated_in_float32(dtype):
    ones = torch.ones(5000, dtype=dtype)
    # A float16 sum stops growing at 2048, a bfloat16 sum at 256.
    assert torch.ops.myns.dot(ones, ones) == torch.tensor(5000.0).to(dtype)
    assert torch.ops.myns.rms_norm(ones * 4, None, 0.0).eq(1).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["float16", "bfloat16"])
def test_rms_norm_squares_of_half_precision_do_not_overflow(dtype):
    large = torch.full((2, 8), 30000.0, dtype=dtype)
    torch.testing.assert_close(torch.ops.myns.rms_norm(large), torch.ones(2, 8, dtype=dtype))


def test_a_weight_of_rms_norm_broadcasts():
    x, weight = tensor((3, 8), torch.float32), tensor((2, 1, 8), torch.float32)
    expected = torch.nn.functional.rms_norm(x, (8,), None, 1e-6) * weight
    torch.testing.assert_close(torch.ops.myns.rms_norm(x, weight), expected)


@pytest.mark.parametrize("weight_dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_rms_norm_takes_a_weight_of_another_floating_dtype(dtype, weight_dtype):
    x = tensor((3, 8), dtype).requires_grad_()
    weight = tensor((8,), weight_dtype).requires_grad_()
    result = torch.ops.myns.rms_norm(x, weight)
    exact = [t.detach().double().requires_grad_() for t in (x, weight)]
    expected = torch.nn.functional.rms_norm(exact[0], (8,), exact[1], 1e-6)
    torch.testing.assert_close(result, expected.to(dtype))
    incoming = tensor((3, 8), dtype)
    grads = torch.autograd.grad(result, (x, weight), incoming)
    expected = torch.autograd.grad(expected, exact, incoming.double())
    torch.testing.assert_close(grads[0], expected[0].to(dtype))
    torch.testing.assert_close(grads[1], expected[1].to(weight_dtype))


def test_zero_out_keeps_the_first_element_of_a_transposed_tensor():
    argument = torch.arange(1.0, 7.0).reshape(2, 3).t()
    result = torch.ops.myns.zero_out(argument)
    assert result.is_contiguous()
    assert result.tolist() == [[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("name", ["sin", "cos", "sigmoid"])
def test_integers_are_computed_in_the_default_dtype(name):
    argument = tensor((5,), torch.int32)
    previous = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        result = getattr(torch.ops.myns, name)(argument)
    finally:
        torch.set_default_dtype(previous)
    torch.testing.assert_close(result, getattr(torch, name)(argument.double()))


def test_conjugated_and_negated_views_are_resolved():
    z = tensor((3, 4), torch.complex64)
    for name in ("neg", "sin", "mul.Tensor", "zero_out"):
        sample = SAMPLES[name]
        for view in (z.conj(), z.conj().imag):
            call = next(sample.calls((3, 4), view.dtype))
            call = call.with_tensors([view] * len(call.tensors))
            assert_same_results(run(sample, call), sample.expected(call))
