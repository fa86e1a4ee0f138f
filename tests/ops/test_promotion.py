# SPDX-License-Identifier: BSD-3-Clause
"""Pointwise operators of two tensors broadcast and promote types as torch's do."""

import itertools

import pytest
import torch
from cases import assert_same_results, first_call, over_operators, run
from samples import ALL_DTYPES, tensor

BROADCASTS = (
    ((3, 1), (1, 4)),
    ((2, 3, 4), (4,)),
    ((4,), (2, 3, 4)),
    ((), (3, 4)),
    ((3, 4), ()),
    ((2, 1, 4), (3, 1)),
    ((1,), (0,)),
    ((3, 0), (1, 1)),
)
# Sizes of the two tensors: 0-dim tensors weigh less in promotion than those with dimensions.
RANKS = (((3,), (3,)), ((3,), ()), ((), (3,)), ((), ()))


def is_binary_pointwise(sample) -> bool:
    return sample.is_pointwise and len(first_call(sample).tensors) == 2


def exact_values(shape, dtype):
    """Values so small that every dtype computes with them exactly, whatever the order."""
    return torch.randint(1, 4, shape).to(dtype)


@pytest.mark.parametrize("shapes", BROADCASTS, ids=str)
@over_operators(is_binary_pointwise)
def test_shapes_are_broadcast(sample, shapes):
    for call in sample.calls((3,), torch.float32):
        call = call.with_tensors([tensor(shape, torch.float32) for shape in shapes])
        result, expected = run(sample, call), sample.expected(call)
        assert_same_results(result, expected)
        assert result.stride() == expected.stride()


@pytest.mark.parametrize("shapes", RANKS, ids=str)
@over_operators(is_binary_pointwise)
def test_dtypes_are_promoted(sample, shapes):
    for dtypes in itertools.product(ALL_DTYPES, repeat=2):
        arguments = [exact_values(shape, dtype) for shape, dtype in zip(shapes, dtypes)]
        if torch.result_type(*arguments) not in ALL_DTYPES:
            continue  # complex32, which torch itself takes in part only
        # Scalars that the result's dtype can hold: the sample has them by dtype.
        for call in sample.calls((3,), torch.result_type(*arguments)):
            call = call.with_tensors(arguments)
            expected = sample.reference(*call.args, **call.kwargs)
            assert_same_results(run(sample, call), expected)


@over_operators(is_binary_pointwise)
def test_gradients_have_the_shape_and_dtype_of_their_input(sample):
    for dtypes in itertools.permutations((torch.float32, torch.float64, torch.complex64), 2):
        call = first_call(sample, torch.float32)
        pairs = zip(((3, 1), (4,)), dtypes)
        arguments = [exact_values(shape, dtype).requires_grad_() for shape, dtype in pairs]
        result = run(sample, call.with_tensors(arguments))
        grads = torch.autograd.grad(result, arguments, torch.ones_like(result))
        expected = sample.reference(*call.with_tensors(arguments).args, **call.kwargs)
        expected_grads = torch.autograd.grad(expected, arguments, torch.ones_like(expected))
        torch.testing.assert_close(grads, expected_grads)


def test_a_float_alpha_of_integers_is_refused():
    ones = torch.ones(3, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="alpha"):
        torch.ops.myns.add(ones, ones, alpha=0.5)


def test_a_bool_alpha_of_numbers_is_refused():
    with pytest.raises(RuntimeError, match="[Bb]oolean alpha|alpha.*bool"):
        torch.ops.myns.add(torch.ones(3), torch.ones(3), alpha=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
def test_an_integer_that_only_uint64_holds_is_added(dtype):
    ones = torch.ones(2, dtype=dtype)
    torch.testing.assert_close(torch.ops.myns.muladd(ones, ones, 2**63), ones * ones + 2**63)


@pytest.mark.parametrize(("dtype", "alpha"), [(torch.float16, 70000), (torch.bfloat16, 1e39)])
def test_an_alpha_that_the_dtype_cannot_hold_is_refused_as_by_torch(dtype, alpha):
    ones = torch.ones(2, dtype=dtype)
    for add in (torch.add, torch.ops.myns.add):
        with pytest.raises(RuntimeError, match="without overflow"):
            add(ones, ones, alpha=alpha)
