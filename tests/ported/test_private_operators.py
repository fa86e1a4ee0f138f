# SPDX-License-Identifier: BSD-3-Clause
"""Errors of private operators, in the words of the operator that was called."""

from __future__ import annotations

import contextlib

import pytest
import torch

PRIVATE = r"\(in portedtest::_crop_forward\)"
X = torch.ones(3)
# what goes wrong -> the second argument, the number, the error's type, and what it says
WRONG = {
    "dtype": (X.double(), 1, RuntimeError, "y must have dtype float32, got float64"),
    "rule": (X, -1, RuntimeError, "by must be > 0, got -1"),
    "linalg": (X, 13, torch.linalg.LinAlgError, "by: nothing is singular"),
    "index": (X, 7, IndexError, "by: nothing has seven"),
    "not_implemented": (X, 9, NotImplementedError, "not by nine"),
}
MODES = {
    "no_grad": torch.no_grad,
    "recorded": contextlib.nullcontext,
    "inference": torch.inference_mode,
}


def _message(error: pytest.ExceptionInfo) -> str:
    return str(error.value).split("\n")[0]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", WRONG)
def test_the_caller_is_named_and_the_type_kept(name, mode, ops) -> None:
    y, by, kind, words = WRONG[name]
    x = X.clone().requires_grad_(mode == "recorded")
    with MODES[mode](), pytest.raises(kind) as error:
        ops.crop(x, y, by)
    assert type(error.value) is kind
    assert _message(error) == f"portedtest::crop: {words} (in portedtest::_crop_forward)"
    with MODES[mode](), pytest.raises(kind) as error:
        ops._crop_forward(x, y, by)
    assert _message(error) == f"portedtest::_crop_forward: {words}"


def test_in_place_and_explicit_composites_too(ops) -> None:
    with pytest.raises(IndexError, match=f"^portedtest::crop_: by: nothing has seven {PRIVATE}"):
        ops.crop_(X.clone(), X)
    # What called the private operator is named, and not what called that one.
    with pytest.raises(IndexError, match=f"^portedtest::crop: by: nothing has seven {PRIVATE}"):
        ops.crop_twice(torch.ones(7), torch.ones(7))
    with pytest.raises(RuntimeError, match=f"^portedtest::crop: .* 'y', got None, .* {PRIVATE}"):
        ops.crop(X, X, 6)


def test_other_errors_are_left_alone(ops) -> None:
    with pytest.raises(RuntimeError) as error:
        ops.crop(X, X, 8)
    assert _message(error) == "eight, said without a name"
    with pytest.raises(RuntimeError, match="^portedtest::_no_such_operator: eleven"):
        ops.crop(X, X, 11)  # no operator of the library
    with pytest.raises(ValueError) as error:
        ops.crop(X, X, 99)
    assert _message(error) == "portedtest::crop: by is not 99"


def test_a_kernel_that_is_given_its_results_speaks_too(ops) -> None:
    with pytest.raises(IndexError, match=f"^portedtest::crop_given: by: nothing .* {PRIVATE}"):
        ops.crop_given(X, X, 7)
    with pytest.raises(IndexError, match=f"^portedtest::crop_given.out: by: nothing .* {PRIVATE}"):
        ops.crop_given(X, X, 7, out=torch.empty(3))
    assert ops.crop_given(X, X * 3, 1).tolist() == [3, 3, 3]


def test_an_error_that_is_thrown_again_names_each_caller(ops) -> None:
    said = "ten: once for all"
    for _ in range(2):
        with pytest.raises(ValueError, match=f"^portedtest::crop: {said} {PRIVATE}"):
            ops.crop(X, X, 10)
        with pytest.raises(ValueError, match=f"^portedtest::crop_other: {said} {PRIVATE}"):
            ops.crop_other(X, X)
        with pytest.raises(ValueError, match=f"^portedtest::_crop_forward: {said}"):
            ops._crop_forward(X, X, 10)


def test_a_context_stands_behind(ops) -> None:
    with pytest.raises(RuntimeError) as error:
        ops.crop(X, X, 12)
    said = "portedtest::crop: twelve (in portedtest::_crop_forward) (found at noon)"
    assert _message(error) == said


def test_arguments_may_be_called_as_the_handler_calls_things(ops) -> None:
    assert ops.crop_named(X, X * 3).tolist() == [3, 3, 3]
    rows = torch.vmap(ops.crop_named, in_dims=(0, None))(X.expand(2, 3), X)
    assert rows.tolist() == [[1, 1, 1]] * 2


def test_transforms_see_the_same(ops) -> None:
    rows = X.expand(2, 3)
    with pytest.raises(RuntimeError, match=f"portedtest::crop: by must be > 0, got -1 {PRIVATE}"):
        torch.vmap(lambda x: ops.crop(x, X, -1))(rows)
    with pytest.raises(RuntimeError, match=f"portedtest::crop: by must be > 0, got -1 {PRIVATE}"):
        torch.func.grad(lambda x: ops.crop(x, X, -1).sum())(X)
    with pytest.raises(RuntimeError, match=f"portedtest::crop: by must be > 0, got -1 {PRIVATE}"):
        ops.crop(X.to("meta"), X.to("meta"), -1)


def test_what_is_right_is_what_it_was(ops) -> None:
    x, y = torch.arange(3.0, requires_grad=True), X * 3
    assert ops.crop(x, y).tolist() == [0, 3, 6]
    assert ops.crop_twice(x, y).tolist() == [0, 9, 18]
    assert torch.autograd.grad(ops.crop(x, y).sum(), x)[0].tolist() == [3, 3, 3]
