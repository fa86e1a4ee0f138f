# SPDX-License-Identifier: BSD-3-Clause
"""Wrong arguments: the error names operator, argument, what was expected and what came."""

import pytest
import torch

ops = torch.ops.myns


def ones(*shape, dtype=torch.float32):
    return torch.ones(shape, dtype=dtype)


def rms_norm_backward(grad, x, weight):
    return ops.rms_norm_backward(grad, x, weight, 1e-6, [True, True])


# What is wrong, the call, and the message. Shapes are such that each occurs once in a message.
SHAPE_ERRORS = {
    "rms_norm weight of another size": (
        lambda: ops.rms_norm(ones(2, 64), ones(32)),
        "myns::rms_norm: weight has 32 where the tensors before it have 64",
    ),
    "rms_norm of a 0-dim tensor": (
        lambda: ops.rms_norm(ones()),
        "myns::rms_norm: input has no dimension, and no rows",
    ),
    "rms_norm_backward gradient of another shape": (
        lambda: rms_norm_backward(ones(3, 64), ones(2, 64), None),
        "myns::rms_norm_backward: input has 2 where the tensors before it have 3",
    ),
    "rms_norm_backward weight of another size": (
        lambda: rms_norm_backward(ones(2, 64), ones(2, 64), ones(32)),
        "myns::rms_norm_backward: weight has 32 where the tensors before it have 64",
    ),
    "silu_and_mul of an odd last dimension": (
        lambda: ops.silu_and_mul(ones(2, 7)),
        "myns::silu_and_mul: input has rows of 7 elements, which are not 2 slices of one length",
    ),
    "silu_and_mul of a 0-dim tensor": (
        lambda: ops.silu_and_mul(ones()),
        "myns::silu_and_mul: input has no dimension, and no rows",
    ),
    "silu_and_mul_backward gradient of another shape": (
        lambda: ops.silu_and_mul_backward(ones(2, 8), ones(2, 8)),
        "myns::silu_and_mul_backward: input has 4 where the tensors before it have 8",
    ),
    "dot of a matrix": (
        lambda: ops.dot(ones(2, 3), ones(3)),
        r"myns::dot: self must.*1.*got.*(2|\[2, 3\])",
    ),
    "dot with a matrix": (
        lambda: ops.dot(ones(3), ones(2, 3)),
        r"myns::dot: tensor must.*1.*got.*(2|\[2, 3\])",
    ),
    "dot of different sizes": (
        lambda: ops.dot(ones(3), ones(4)),
        r"myns::dot: tensor must.*3.*got.*4",
    ),
}

DTYPE_ERRORS = {
    "dot of different dtypes": (
        lambda: ops.dot(ones(3), ones(3, dtype=torch.float64)),
        r"myns::dot: tensor must.*(?i:float).*got.*(?i:double|float64)",
    ),
    "rms_norm of integers": (
        lambda: ops.rms_norm(ones(2, 4, dtype=torch.int64)),
        r"myns::rms_norm: input must.*float.*got.*(?i:long|int64)",
    ),
    "silu_and_mul of integers": (
        lambda: ops.silu_and_mul(ones(2, 4, dtype=torch.int64)),
        r"myns::silu_and_mul: input must.*float.*got.*(?i:long|int64)",
    ),
    "softmax of complex numbers": (
        lambda: ops.softmax(ones(2, dtype=torch.complex64), 0),
        r"myns::softmax: self must.*float.*got.*(?i:complexfloat|complex64|c10::complex)",
    ),
    "neg of bools": (
        lambda: ops.neg(ones(2, dtype=torch.bool)),
        r"myns::neg: self.*(?i:bool)",
    ),
}

ERRORS = {**SHAPE_ERRORS, **DTYPE_ERRORS}


@pytest.mark.parametrize("case", ERRORS)
def test_the_error_names_operator_argument_expected_and_got(case):
    call, message = ERRORS[case]
    with pytest.raises(RuntimeError, match=message):
        call()


@pytest.mark.parametrize("case", ERRORS)
def test_the_error_is_the_same_where_gradients_are_off(case):
    call, message = ERRORS[case]
    with torch.no_grad(), pytest.raises(RuntimeError, match=message):
        call()


@pytest.mark.parametrize("case", ERRORS)
def test_the_error_is_no_internal_assertion(case):
    call, _ = ERRORS[case]
    with pytest.raises(RuntimeError) as error:
        call()
    assert "INTERNAL ASSERT" not in str(error.value)


@pytest.mark.parametrize("dim", [2, -3, 100])
def test_softmax_refuses_a_dim_that_is_not_there_as_torch_does(dim):
    with pytest.raises(IndexError) as expected:
        torch.softmax(ones(2, 3), dim)
    with pytest.raises(IndexError) as actual:
        ops.softmax(ones(2, 3), dim)
    assert str(expected.value) in str(actual.value)


@pytest.mark.parametrize("operator", [ops.mul, ops.add], ids=["mul", "add"])
def test_shapes_that_do_not_broadcast_are_refused_as_torch_does(operator):
    message = (
        r"The size of tensor a \(3\) must match the size of tensor b \(4\) at non-singleton "
        r"dimension 1"
    )
    with pytest.raises(RuntimeError, match=message):
        operator(ones(2, 3), ones(2, 4))


def test_a_missing_argument_is_refused():
    with pytest.raises(RuntimeError, match=r"myns::mul\(\) is missing value for argument 'other'"):
        ops.mul(ones(2))


def test_a_gradient_of_the_wrong_shape_is_refused():
    x = ones(2, 3).requires_grad_()
    with pytest.raises(RuntimeError, match="[Ss]hape|size"):
        ops.sin(x).backward(ones(3, 2))
