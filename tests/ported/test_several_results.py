# SPDX-License-Identifier: BSD-3-Clause
"""Formulas of several results, of which a loss uses one: as torch.autograd.Function has it."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch._dynamo import compiled_autograd

USES = [uses for count in (1, 2) for uses in itertools.combinations(range(2), count)]


class Two(torch.autograd.Function):
    """What `two_or_zeros` is, by hand."""

    @staticmethod
    def forward(ctx, x):
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, a, b):
        return a * 2 + b * 3


def loss(results, uses) -> torch.Tensor:
    return sum((index + 1) * results[index].sum() for index in uses)


def gradient(f, uses) -> torch.Tensor:
    x = torch.ones(3, requires_grad=True)
    loss(f(x), uses).backward()
    return x.grad


@pytest.mark.parametrize("uses", USES)
def test_zeros_stand_in_for_gradients_that_nobody_gave(uses, ops) -> None:
    assert gradient(ops.two_or_zeros, uses).equal(gradient(Two.apply, uses))


class Nothing(torch.autograd.Function):
    """Gives no gradient at all."""

    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        return None


@pytest.mark.parametrize("uses", USES)
def test_zeros_stand_in_where_nobody_gave_any(uses, ops) -> None:
    def nothing(f):
        return lambda x: [Nothing.apply(result) for result in f(x)]

    found, expected = (gradient(nothing(f), uses) for f in (ops.two_or_zeros, Two.apply))
    assert found.equal(expected) and found.equal(torch.zeros(3))
    assert gradient(nothing(ops.two), uses) is None
    x = torch.ones(3, requires_grad=True)
    assert torch.autograd.grad(Nothing.apply(ops.two_or_zeros(x)[0]).sum(), x)[0].equal(found)


@pytest.mark.parametrize("uses", USES)
def test_zeros_are_of_the_results_sizes_in_a_compiled_backward(uses, ops) -> None:
    torch._dynamo.reset()
    with compiled_autograd._enable(torch.compile(backend="eager", fullgraph=True)):
        found = gradient(ops.two_or_zeros, uses)
    assert found.equal(gradient(Two.apply, uses))


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("uses", USES)
def test_compiled_calls_do_the_same(uses, backend, ops) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: ops.two_or_zeros(x), backend=backend, fullgraph=True)
    assert gradient(compiled, uses).equal(gradient(Two.apply, uses))


@pytest.mark.parametrize("uses", USES)
def test_transforms_do_the_same(uses, ops) -> None:
    xs = torch.rand(2, 3)
    per_example = torch.vmap(torch.func.grad(lambda x: loss(ops.two_or_zeros(x), uses)))(xs)
    assert per_example.equal(gradient(Two.apply, uses).expand(2, 3))
    x = torch.rand(3, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: loss(ops.two_or_zeros(x), uses), x)


@pytest.mark.parametrize(("uses", "missing"), [((0,), "b"), ((1,), "a")])
def test_without_the_key_the_error_says_what_it_lacks(uses, missing, ops) -> None:
    assert gradient(ops.two, (0, 1)).equal(gradient(Two.apply, (0, 1)))
    words = f"portedtest::two: a formula was given an undefined gradient of the result '{missing}'"
    with pytest.raises(RuntimeError, match="materialize_grads: True") as error:
        gradient(ops.two, uses)
    assert words in str(error.value)


def test_a_formula_may_ask_for_what_is_defined(ops) -> None:
    """grads count the differentiable results; the first of three is none."""
    assert not ops.one_of_three(torch.ones(3, requires_grad=True))[0].requires_grad
    assert gradient(lambda x: ops.one_of_three(x)[1:], (0,)).tolist() == [2, 2, 2]
    assert gradient(lambda x: ops.one_of_three(x)[1:], (0, 1)).tolist() == [8, 8, 8]


@pytest.mark.parametrize("used", [0, 1, 2])
def test_lists_have_zeros_for_each_tensor(used, ops) -> None:
    x = torch.ones(3, requires_grad=True)
    ops.parts_or_zeros(x, 3)[used].sum().backward()
    assert x.grad.tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match="portedtest::parts: .*materialize_grads"):
        ops.parts(x, 3)[used].sum().backward()


def test_nothing_is_saved_for_gradients_that_no_formula_names(ops) -> None:
    node = ops.two_or_zeros(torch.ones(3, requires_grad=True))[0].grad_fn
    assert not [name for name in dir(node) if name.startswith("_saved")]
