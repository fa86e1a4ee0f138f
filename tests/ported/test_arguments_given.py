# SPDX-License-Identifier: BSD-3-Clause
"""What the dispatcher takes and a schema does not mean: missing tensors, lists of other lengths."""

from __future__ import annotations

import contextlib

import pytest
import torch

MODES = {
    "recorded": contextlib.nullcontext,
    "no_grad": torch.no_grad,
    "inference": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("op", ["needs", "needs_by_parts", "needs_ruled"])
def test_a_missing_tensor_is_refused_by_name(op, mode, ops) -> None:
    f, x = getattr(ops, op), torch.ones(3)
    with MODES[mode]():
        assert f(x, x).tolist() == [2, 2, 2]
        with pytest.raises(RuntimeError, match=f"portedtest::{op}: .* argument 'y', got None"):
            f(x, None)
        with pytest.raises(RuntimeError, match=f"portedtest::{op}: .* argument 'x', got None"):
            f(None, x)


def test_a_tensor_that_may_be_missing_may(ops) -> None:
    x = torch.ones(3)
    assert ops.needs(x, x, None).equal(ops.needs(x, x))


@pytest.mark.parametrize("device", ["meta", "cpu"])
def test_it_is_refused_on_meta_and_under_transforms(device, ops) -> None:
    x = torch.ones(2, 3, device=device)
    with pytest.raises(RuntimeError, match="portedtest::needs_ruled: .* argument 'y', got None"):
        ops.needs_ruled(x, None)
    with pytest.raises(RuntimeError, match="portedtest::needs_ruled: .* argument 'y', got None"):
        torch.vmap(lambda x: ops.needs_ruled(x, None))(x)
    with pytest.raises(RuntimeError, match="portedtest::needs_ruled.out: .* argument 'y'"):
        ops.needs_ruled.out(x, None, out=torch.empty_like(x))


def test_a_compiled_call_refuses_it(ops) -> None:
    torch._dynamo.reset()
    with pytest.raises(Exception, match="portedtest::needs_ruled: .* argument 'y', got None"):
        torch.compile(lambda x: ops.needs_ruled(x, None), backend="eager")(torch.ones(3))


def test_one_number_stands_for_all(ops) -> None:
    x = torch.ones(1)
    assert ops.lengths(x, 3, 1.5).tolist() == [3, 3, 1.5, 1.5, 1.5, 1, 1, 0]
    assert ops.lengths(x, [3, 4], [1, 2, 3], 7).tolist() == [3, 4, 1, 2, 3, 7, 7, 1, 1, 0]


def test_a_list_of_one_number_stands_for_all_as_in_aten(ops) -> None:
    """As avg_pool2d takes kernel_size=[3]; in formulas too, which see the list that kernels see."""
    x = torch.ones(1, requires_grad=True)
    assert ops.lengths(x.detach(), [3], 1.5, [4], [5]).tolist()[:7] == [3, 3, 1.5, 1.5, 1.5, 4, 4]
    for size in ([3, 5], [4], 4):
        y = ops.times_second(x, size)
        y.sum().backward()
        assert y.item() == x.grad.item() == (5 if size == [3, 5] else 4)
        x.grad = None


def test_one_number_stands_for_all_in_cpp(ops) -> None:
    expected = ops.lengths(torch.ones(1), 3, [1.0, 2.0, 3.0], 4, [5, 5])
    assert ops.same_lengths(torch.ones(1)).equal(expected)


@pytest.mark.parametrize(
    ("arguments", "name", "expected", "given"),
    [
        (([1, 2, 3], 1.0), "s", 2, 3),
        (([], 1.0), "s", 2, 0),
        ((1, [1.0]), "f", 3, 1),
        ((1, [1.0] * 9), "f", 3, 9),
        ((1, 1.0, [1, 2, 3]), "o", 2, 3),
        ((1, 1.0, None, [1, 1, 1]), "q", 2, 3),
        ((1, 1.0, None, [1, 1], [1, 2, 3]), "e", 2, 3),
    ],
)
def test_other_lengths_are_refused(arguments, name, expected, given, ops) -> None:
    words = f"portedtest::lengths: expected a list of length {expected} for argument '{name}'"
    with pytest.raises(RuntimeError, match=f"{words}, got one of length {given}"):
        ops.lengths(torch.ones(1), *arguments)


def test_a_default_of_another_length_is_taken(ops) -> None:
    x = torch.ones(1)
    assert ops.lengths(x, 3, 1.0, e=[]).equal(ops.lengths(x, 3, 1.0))
    assert ops.lengths(x, 3, 1.0, e=[8, 9]).tolist()[-3:] == [8, 9, 0]


def test_a_list_of_one_has_any_length_as_in_aten(ops) -> None:
    assert ops.lengths(torch.ones(1), 3, 1.0, any=[7, 8, 9]).tolist()[-3:] == [7, 8, 9]
