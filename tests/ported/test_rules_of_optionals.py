# SPDX-License-Identifier: BSD-3-Clause
"""Rules that ask for one of several optional tensors: only that one must be there."""

from __future__ import annotations

import pytest
import torch

X, A, B, C = torch.ones(2), torch.ones(3), torch.ones(2, 3), torch.ones(4)
DEVICES = ["cpu", "meta"]


def on(device, *tensors):
    return [t if t is None else t.to(device) for t in tensors]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("given", "shape"),
    [((A,), (3,)), ((None, B), (2, 3)), ((torch.ones(2, 3), B), (2, 3)), ((C, A), (4,))],
)
def test_the_size_of_the_one_that_is_there(given, shape, device, ops) -> None:
    assert ops.either(X.to(device), *on(device, *given)).shape == shape


@pytest.mark.parametrize("device", DEVICES)
def test_none_of_them_is_refused(device, ops) -> None:
    with pytest.raises(RuntimeError, match="either: the results depend on b, which is missing"):
        ops.either(X.to(device))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("given", "shape"),
    [
        ((A, B, C), (3,)),
        ((None, B, C), (2, 3)),
        ((None, torch.ones(()), C), (4,)),
        ((None, torch.ones(())), (2,)),
        ((None, None, C), (4,)),
        ((), (2,)),
    ],
)
def test_like_the_first_that_is_there(given, shape, device, ops) -> None:
    assert ops.either_like(X.to(device), *on(device, *given)).shape == shape


@pytest.mark.parametrize("device", DEVICES)
def test_a_check_of_the_one_that_is_there(device, ops) -> None:
    x, a = on(device, X, A)
    assert ops.either_checked(x, x).shape == (2,)
    assert ops.either_checked(x, None, x).shape == (2,)
    assert ops.either_checked(x, x, a).shape == (2,)
    assert ops.either_checked(x).shape == (2,)  # nothing to compare with
    for given in ((a,), (None, a), (a, x)):
        with pytest.raises(RuntimeError, match=r"either_checked: x must have shape \[3\], got \[2"):
            ops.either_checked(x, *given)


@pytest.mark.parametrize("device", DEVICES)
def test_the_condition_is_no_question_of_presence(device, ops) -> None:
    x, a, b = on(device, X, A, B)
    assert ops.either_of(x, True, a).shape == (3, 1)
    assert ops.either_of(x, False, None, b).shape == (2, 1)
    assert ops.either_of(x, False, a, b).shape == (2, 1)
    assert ops.either_of(x, True, a, a).shape == (3, 2)
    for first, given, missing in ((True, (None, b), "a"), (False, (a,), "b")):
        with pytest.raises(
            RuntimeError, match=f"either_of: the results depend on {missing}, which"
        ):
            ops.either_of(x, first, *given)


@pytest.mark.parametrize("device", DEVICES)
def test_words_name_what_the_condition_does_not_ask_for(device, ops) -> None:
    x, a, b = on(device, X, A, B)
    assert ops.worded(b).shape == ops.worded(b, a).shape == (2, 3)
    assert ops.worded(x, None, b).shape == (2,)
    for given, shown in (((), "None"), ((a,), r"\[3\]")):
        with pytest.raises(RuntimeError, match=f"x has 1 dimensions, False for a of {shown}"):
            ops.worded(x, *given)


def test_under_compile(ops) -> None:
    torch._dynamo.reset()
    f = torch.compile(lambda x, a, b: ops.either(x, a, b) + 1, fullgraph=True, dynamic=True)
    for given in ((A, None), (None, B), (None, A), (B, A)):
        torch.testing.assert_close(f(X, *given), ops.either(X, *given) + 1)
