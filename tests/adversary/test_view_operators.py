# SPDX-License-Identifier: BSD-3-Clause
"""Operators that return views, beside ATen's that their kernels call, in every situation that makes
a difference to a view: what it shares, gradients of both modes, writes to base and view, modes,
transforms, compiled code."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.autograd.forward_ad as forward_ad
from library_build import build_and_load
from torch.func import functionalize, grad, hessian, jacrev, jvp, vmap
from torch.testing import assert_close

Function = Callable[[torch.Tensor], Any]
aten = torch.ops.aten


@pytest.fixture(scope="session")
def ops():
    """The operators of viewtest/."""
    return build_and_load(Path(__file__).parent / "viewtest", "viewtest_library.so")


@dataclass(frozen=True)
class Pair:
    """An operator of ours and ATen's, on one argument."""

    ours: Callable[[Any, torch.Tensor], Any]
    aten: Function
    shape: tuple[int, ...] = (3, 4)
    dtype: torch.dtype = torch.float64

    def argument(self) -> torch.Tensor:
        generator = torch.Generator().manual_seed(0)
        return torch.randn(self.shape, dtype=self.dtype, generator=generator)


PAIRS = {
    "turn": Pair(lambda ops, x: ops.turn(x, 0, 1), lambda x: x.transpose(0, 1)),
    "part": Pair(lambda ops, x: ops.part(x, 1, 1, 2), lambda x: x.narrow(1, 1, 2)),
    "deepen": Pair(lambda ops, x: ops.deepen(x, 1), lambda x: x.unsqueeze(1)),
    "pieces": Pair(lambda ops, x: ops.pieces(x, 2), lambda x: x.split(2)),
    "pairs": Pair(lambda ops, x: ops.pairs(x), torch.view_as_real, dtype=torch.complex128),
    "numbers": Pair(lambda ops, x: ops.numbers(x), torch.view_as_complex, (3, 2)),
    "minus": Pair(lambda ops, x: ops.minus(x), torch._neg_view),
    "mirrored": Pair(lambda ops, x: ops.mirrored(x), torch._conj, dtype=torch.complex128),
    "wide": Pair(lambda ops, x: ops.wide(x, [4, 3]), lambda x: x.expand(4, 3), (3,)),
    "shaped": Pair(lambda ops, x: ops.shaped(x, [2, 6]), lambda x: x.view(2, 6)),
    "diagonal_of": Pair(lambda ops, x: ops.diagonal_of(1, x), lambda x: x.diagonal(1)),
    "itself": Pair(lambda ops, x: ops.itself(x), aten.alias),
    "row": Pair(lambda ops, x: ops.row(x, 1), lambda x: x.select(0, 1)),
    "rows": Pair(lambda ops, x: ops.rows(x), lambda x: x.unbind()),
    "turn_": Pair(lambda ops, x: ops.turn_(x, 0, 1), lambda x: aten.transpose_(x, 0, 1)),
    "turn_ of a square": Pair(
        lambda ops, x: ops.turn_(x, 0, 1), lambda x: aten.transpose_(x, 0, 1), (3, 3)
    ),
    "deepen_": Pair(lambda ops, x: ops.deepen_(x, 1), lambda x: aten.unsqueeze_(x, 1)),
    "flipped_": Pair(lambda ops, x: ops.flipped_(x), lambda x: aten.t_(x)),
}
# What ours refuses and ATen's does not. Eagerly nobody writes to what shares memory with itself; a
# batch of views as real numbers is a strided view of one, to which functionalization cannot write.
REFUSED = {
    **dict.fromkeys(
        [
            ("wide", "functionalized"),
            ("wide", "functionalized without views"),
            ("wide", "functionalized input"),
            ("wide", "gradient of functionalized"),
            ("wide", "functionalized batched"),
        ],
        "single memory location",
    ),
    ("pairs", "functionalized batched"): "as_strided",
}


def flat(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [item for part in value for item in flat(part)]
    return [value]


def first(value: Any) -> torch.Tensor:
    return flat(value)[0]


def weighed(value: Any) -> torch.Tensor:
    """A real number of which every element has another gradient."""
    total = torch.zeros((), dtype=torch.float64)
    for tensor in flat(value):
        weight = torch.arange(tensor.numel(), dtype=torch.float64).reshape(tensor.shape).cos()
        product = (tensor * weight).sum()
        total = total + (product.real if product.is_complex() else product)
    return total


def of_base(view: torch.Tensor, base: torch.Tensor) -> tuple:
    return (
        view._is_view(), view._base is base, view is base, view._version, view.shape, view.stride(),
        view.storage_offset(), view.data_ptr() - base.data_ptr(), view.is_conj(), view.is_neg(),
        view.is_leaf, view.requires_grad, view.grad_fn is None,
    )  # fmt: skip


# What a view shares with its base


def flags(f: Function, x: torch.Tensor) -> list:
    base = x.clone()
    return [*(of_base(view, base) for view in flat(f(base))), base._version, base.shape]


def flags_recorded(f: Function, x: torch.Tensor) -> list:
    base = x.requires_grad_() * 2
    return [*(of_base(view, base) for view in flat(f(base))), base._version, base.shape]


def of_a_leaf(f: Function, x: torch.Tensor) -> list:
    return [view.requires_grad for view in flat(f(x.requires_grad_()))]


def of_a_view(f: Function, x: torch.Tensor) -> list:
    base = x.requires_grad_() * 2
    middle = base.view_as(base)
    view = first(f(middle))
    view.mul_(5)
    return [view, base, middle, view._base is base, *gradient(x, base, view, middle)]


def of_an_expanded_one(f: Function, x: torch.Tensor) -> list:
    base = x.requires_grad_() * 2
    middle = base.unsqueeze(0).expand(2, *base.shape)[0]
    view = first(f(middle))
    view.mul_(5)
    return [view, base, *gradient(x, base, view)]


def of_a_conjugate(f: Function, x: torch.Tensor) -> list:
    base = x if x.is_complex() else torch.complex(x, x + 1)
    return _lazily_read(f, base, base.conj())


def of_a_negative(f: Function, x: torch.Tensor) -> list:
    return _lazily_read(f, x, torch._neg_view(x))


def of_an_imaginary_part(f: Function, x: torch.Tensor) -> list:
    base = torch.complex(x, x + 1) if not x.is_complex() else x
    return _lazily_read(f, base, base.conj().imag)


def of_zeros_without_memory(f: Function, x: torch.Tensor) -> list:
    zeros = torch._efficientzerotensor(x.shape, dtype=x.dtype)
    return [(view.shape, view.stride(), view._is_zerotensor()) for view in flat(f(zeros))]


def _lazily_read(f: Function, base: torch.Tensor, x: torch.Tensor) -> list:
    """What is seen of a view of values that are conjugated or negated when they are read."""
    views = flat(f(x))
    return [*views, *(of_base(view, base) for view in views), base, x._version, x.stride()]


def detached(f: Function, x: torch.Tensor) -> list:
    view = first(f(x.requires_grad_().clone())).detach()
    view.mul_(2)
    return [view, view._version]


def view_function(f: Function, x: torch.Tensor) -> list:
    view = first(f(x.clone()))
    return [] if view._base is None else [view._view_func(x + 1), view._view_func_unsafe(x + 2)]


# Gradients


def gradient(x: torch.Tensor, *values: Any) -> tuple[torch.Tensor, ...]:
    return torch.autograd.grad(weighed(values), x)


def reverse(f: Function, x: torch.Tensor) -> list:
    views = flat(f(x.requires_grad_().clone()))
    return [*views, *gradient(x, views)]


def reverse_of_the_first(f: Function, x: torch.Tensor) -> list:
    view = first(f(x.requires_grad_().clone()))
    return [view, *gradient(x, view * view)]


def double(f: Function, x: torch.Tensor) -> list:
    views = flat(f(x.requires_grad_().clone()))
    (once,) = torch.autograd.grad(weighed([v * v * v for v in views]), x, create_graph=True)
    return [once, *gradient(x, once)]


def hooked(f: Function, x: torch.Tensor) -> list:
    seen = []
    view = first(f(x.requires_grad_() * 2))
    view.register_hook(lambda g: seen.append(g.clone()))
    view.retain_grad()
    weighed(view * view).backward()
    return [x.grad, view.grad, *seen]


def dual(x: torch.Tensor) -> torch.Tensor:
    return forward_ad.make_dual(x.clone(), x * 3 + 1)


def forward(f: Function, x: torch.Tensor) -> list:
    with forward_ad.dual_level():
        return [t for view in flat(f(dual(x))) for t in forward_ad.unpack_dual(view)]


def forward_written(f: Function, x: torch.Tensor) -> list:
    with forward_ad.dual_level():
        base = dual(x)
        view = first(f(base))
        view.mul_(2)
        return [*forward_ad.unpack_dual(view), *forward_ad.unpack_dual(base * 1)]


def forward_of_a_written_base(f: Function, x: torch.Tensor) -> list:
    with forward_ad.dual_level():
        base = dual(x)
        view = first(f(base))
        base.mul_(2)
        return [*forward_ad.unpack_dual(view), *forward_ad.unpack_dual(base)]


def forward_from_the_view(f: Function, x: torch.Tensor) -> list:
    with forward_ad.dual_level():
        base = x.clone()
        view = first(f(base))
        view.copy_(forward_ad.make_dual(view.detach().clone(), torch.ones_like(view)))
        return [*forward_ad.unpack_dual(view), *forward_ad.unpack_dual(base)]


# Writes


def written(f: Function, x: torch.Tensor) -> list:
    base = x.requires_grad_() * 2
    view = first(f(base))
    view.mul_(3)
    return [view, base, *gradient(x, base * base, view)]


def written_leaf(f: Function, x: torch.Tensor) -> list:
    view = first(f(x.requires_grad_()))
    view.mul_(2)
    return [view]


def written_base(f: Function, x: torch.Tensor) -> list:
    base = x.requires_grad_() * 2
    views = flat(f(base))
    base.mul_(3)
    return [*views, base, *gradient(x, views)]


def written_both(f: Function, x: torch.Tensor) -> list:
    base = x.requires_grad_() * 2
    view = first(f(base))
    base.mul_(3)
    view.add_(1)
    view.mul_(view.detach())
    base.sin_()
    return [view, base, *gradient(x, view, base)]


def written_twice_differentiated(f: Function, x: torch.Tensor) -> list:
    base = x.requires_grad_() * 2
    view = first(f(base))
    view.mul_(view.clone())
    loss = weighed([view * base.sum(), base * base])
    (once,) = torch.autograd.grad(loss, x, create_graph=True)
    return [view, base, once, *gradient(x, once)]


def written_view_of_view(f: Function, x: torch.Tensor) -> list:
    base = x.requires_grad_() * 2
    view = first(f(base))
    inner = view[..., 0]
    inner.mul_(5)
    return [view, base, inner, inner._base is base, *gradient(x, base, view, inner)]


def two_views(f: Function, x: torch.Tensor) -> list:
    base = x.requires_grad_() * 2
    one, other = first(f(base)), first(f(base))
    one.mul_(3)
    other.add_(1)
    return [one, other, base, *gradient(x, one, other, base)]


# Modes


def made_without_grad(f: Function, x: torch.Tensor) -> list:
    base = x.requires_grad_() * 2
    with torch.no_grad():
        view = first(f(base))
    view.mul_(2)
    return [view]


def written_without_grad(f: Function, x: torch.Tensor) -> list:
    base = x.requires_grad_() * 2
    with torch.no_grad():
        view = first(f(base))
        view.mul_(2)
    return [view, base, view.requires_grad, base._version]


def leaf_written_without_grad(f: Function, x: torch.Tensor) -> list:
    view = first(f(x.requires_grad_()))
    with torch.no_grad():
        x.mul_(2)
    return [view, x, view._version, view.requires_grad]


def inference(f: Function, x: torch.Tensor) -> list:
    with torch.inference_mode():
        view = first(f(x))
        view.mul_(2)
    return [view, x, view.is_inference(), x._version]


def of_an_inference_tensor(f: Function, x: torch.Tensor) -> list:
    with torch.inference_mode():
        base = x.clone()
    view = first(f(base))
    return [view, view.is_inference(), view._is_view()]


def inference_view_written_outside(f: Function, x: torch.Tensor) -> list:
    with torch.inference_mode():
        view = first(f(x))
    view.mul_(2)
    return [view, x]


def replayed(f: Function, x: torch.Tensor) -> list:
    base = x.requires_grad_() * 2
    with torch.autograd._force_original_view_tracking(True):
        view = first(f(base))
    again = [] if view._base is None else [view._view_func_unsafe(x.detach() + 1)]
    view.mul_(3)
    base.add_(1)
    return [view, base, *again, *gradient(x, view, base)]


def replayed_backwards(f: Function, x: torch.Tensor) -> list:
    with torch.autograd._force_original_view_tracking(True):
        view = first(f(x.clone()))
    if view._base is None or view.numel() < x.numel():
        return []  # ATen's tells what is not there by the base that the view was made of
    return [view._rev_view_func_unsafe(view.detach())]


# Transforms


def _program(f: Function) -> Callable:
    def program(x):
        base = x * 2
        view = first(f(base))
        view.mul_(3)
        return view, base + 1, base

    return program


def _loss(f: Function) -> Function:
    def loss(x):
        base = x * 2
        view = first(f(base))
        view.mul_(3)
        return weighed([base * base, view])

    return loss


def functionalized(f: Function, x: torch.Tensor) -> list:
    return flat(functionalize(_program(f))(x))


def functionalized_without_views(f: Function, x: torch.Tensor) -> list:
    return flat(functionalize(_program(f), remove="mutations_and_views")(x))


def functionalized_input(f: Function, x: torch.Tensor) -> list:
    def program(x):
        view = first(f(x))
        view.mul_(3)
        return view * 1

    return [functionalize(program)(x), x]


def gradient_of_functionalized(f: Function, x: torch.Tensor) -> list:
    return [grad(functionalize(_loss(f)))(x)]


def functionalized_gradient(f: Function, x: torch.Tensor) -> list:
    return [functionalize(grad(_loss(f)))(x)]


def transformed_gradient(f: Function, x: torch.Tensor) -> list:
    return [grad(_loss(f))(x)]


def second_derivatives(f: Function, x: torch.Tensor) -> list:
    def loss(x):
        return weighed([view * view * view for view in flat(f(x * 2))])

    return [hessian(loss)(x), jacrev(jacrev(loss))(x)]


def tangents(f: Function, x: torch.Tensor) -> list:
    return flat(jvp(_program(f), (x,), (x * 2 + 1,)))


def _batch_of(x: torch.Tensor, dim: int = 1) -> torch.Tensor:
    return torch.stack([x, x * 3 - 1, x * x], dim)


def batched(f: Function, x: torch.Tensor) -> list:
    batch = _batch_of(x)
    views = flat(vmap(f, in_dims=1)(batch))
    return [*views, *(view.data_ptr() - batch.data_ptr() for view in views)]


def batched_writes(f: Function, x: torch.Tensor) -> list:
    return flat(vmap(_program(f), in_dims=1, out_dims=-1)(_batch_of(x)))


def batched_gradient(f: Function, x: torch.Tensor) -> list:
    return [vmap(grad(_loss(f)), in_dims=1)(_batch_of(x))]


def gradient_of_batched(f: Function, x: torch.Tensor) -> list:
    return [grad(lambda x: weighed(vmap(f, in_dims=1)(_batch_of(x) * 2)))(x)]


def batched_tangents(f: Function, x: torch.Tensor) -> list:
    batch = _batch_of(x)
    return flat(jvp(vmap(_program(f), in_dims=1), (batch,), (batch * 2 + 1,)))


def batched_in_front(f: Function, x: torch.Tensor) -> list:
    """Where a view of each example needs memory without gaps."""
    loss = grad(lambda x: weighed(vmap(f)(_batch_of(x, 0) * 2)))
    return [*flat(vmap(f)(_batch_of(x, 0))), *flat(vmap(_program(f))(_batch_of(x, 0))), loss(x)]


def functionalized_batched(f: Function, x: torch.Tensor) -> list:
    return flat(functionalize(vmap(_program(f), in_dims=1))(_batch_of(x)))


def vectorized_jacobians(f: Function, x: torch.Tensor) -> list:
    """By torch.autograd's own batches of gradients and tangents."""

    def squared(x):
        view = first(f(x * 2))
        return view * view

    return [
        torch.autograd.functional.jacobian(squared, x, vectorize=True, strategy=strategy)
        for strategy in ("reverse-mode", "forward-mode")
    ]


SITUATIONS = {
    function.__name__.replace("_", " "): function
    for function in (
        flags, flags_recorded, of_a_leaf, of_a_view, of_an_expanded_one, of_a_conjugate,
        of_a_negative, of_an_imaginary_part, of_zeros_without_memory, detached, view_function,
        reverse, reverse_of_the_first, double, hooked, forward, forward_written,
        forward_of_a_written_base, forward_from_the_view, written, written_leaf, written_base,
        written_both, written_twice_differentiated, written_view_of_view, two_views,
        made_without_grad, written_without_grad, leaf_written_without_grad, inference,
        of_an_inference_tensor, inference_view_written_outside, replayed, replayed_backwards,
        functionalized, functionalized_without_views, functionalized_input,
        gradient_of_functionalized, functionalized_gradient, transformed_gradient,
        second_derivatives, tangents, batched, batched_writes, batched_gradient,
        gradient_of_batched, batched_tangents, batched_in_front,
        functionalized_batched, vectorized_jacobians,
    )
}  # fmt: skip


BATCHED_BY_VMAP = {name for name in SITUATIONS if "batched" in name} | {"second derivatives"}


def outcome(situation: Callable, function: Function, x: torch.Tensor) -> list | Exception:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = situation(function, x)
        except Exception as error:
            return error
        with torch.no_grad():
            return [v.detach().clone() if isinstance(v, torch.Tensor) else v for v in found]


def assert_same(actual: list | Exception, expected: list | Exception) -> None:
    if isinstance(expected, Exception):
        assert type(actual) is type(expected), (actual, expected)
        return
    if isinstance(actual, Exception):
        raise actual
    assert len(actual) == len(expected)
    for one, other in zip(actual, expected):
        if isinstance(other, torch.Tensor):
            assert_close(one, other)
        else:
            assert one == other


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("name", PAIRS)
def test_a_view_is_what_atens_is(ops, name: str, situation: str) -> None:
    pair, run = PAIRS[name], SITUATIONS[situation]
    actual = outcome(run, lambda x: pair.ours(ops, x), pair.argument())
    expected = outcome(run, pair.aten, pair.argument())
    if (name, situation) in REFUSED:
        assert isinstance(actual, RuntimeError) and not isinstance(expected, Exception)
        assert REFUSED[name, situation] in str(actual)
    elif name == "minus" and situation in BATCHED_BY_VMAP and isinstance(expected, Exception):
        # ATen has no rule for the batch; what ours gives is compared in test_vmap_served.py
        assert "Batching rule not implemented for aten::_neg_view" in str(expected)
        assert not isinstance(actual, Exception)
    elif isinstance(expected, Exception) and "INTERNAL ASSERT" in str(expected):
        assert not isinstance(actual, Exception) or "INTERNAL ASSERT" in str(actual)
    else:
        assert_same(actual, expected)


# Compiled


def computed(f: Function, x: torch.Tensor) -> list:
    base = x.sin()
    view = first(f(base))
    view.mul_(3)
    return [view, base + 1, base]


def of_the_input(f: Function, x: torch.Tensor) -> list:
    view = first(f(x))
    view.mul_(3)
    return [view, view * 2]


def all_of_them(f: Function, x: torch.Tensor) -> list:
    base = x.sin()
    views = flat(f(base))
    return [*(view * 2 for view in views), *views, base]


def _compiled(program: Callable, f: Function, options: dict) -> Function:
    torch._dynamo.reset()
    return torch.compile(lambda x: program(f, x), fullgraph=True, **options)


BACKENDS = {
    "aot_eager": {"backend": "aot_eager"},
    "inductor, dynamic": {"backend": "inductor", "dynamic": True},
}
# Of a list torch loses what shares memory, and of an argument it makes no view: where it does as
# much to ATen's, it may do so to ours.
LIKE_COMPILED_ATEN = ("pieces", "rows", "turn_", "turn_ of a square", "deepen_", "flipped_")


def _called(program: Callable, options: dict | None, trains: bool) -> Callable:
    def situation(f: Function, x: torch.Tensor) -> list:
        x.requires_grad_(trains)
        found = program(f, x) if options is None else _compiled(program, f, options)(x)
        if trains:
            return [*found, *gradient(x, [value * value for value in found])]
        found[0].add_(1)  # what shares memory outside as well
        return [*found, x]

    return situation


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", [n for n in PAIRS if n != "minus"])
def test_compiled_it_is_what_it_is_eagerly(ops, name: str, backend: str) -> None:
    pair, options = PAIRS[name], BACKENDS[backend]
    for program, trains in ((computed, False), (of_the_input, False), (all_of_them, True)):
        called = _called(program, options if name in LIKE_COMPILED_ATEN else None, trains)
        expected = outcome(called, pair.aten, pair.argument())
        called = _called(program, options, trains)
        actual = outcome(called, lambda x: pair.ours(ops, x), pair.argument())
        if name == "wide" and isinstance(expected, Exception):
            assert "memory location" in str(actual)
        else:
            assert_same(actual, expected)


@pytest.mark.parametrize("backend", ("aot_eager", "inductor"))
def test_compiled_code_has_no_view_of_other_sign(ops, backend: str) -> None:
    compiled = _compiled(computed, ops.minus, {"backend": backend})
    with pytest.raises(Exception, match="viewtest::minus returns a view of other sign"):
        compiled(torch.ones(3))


def test_a_batch_of_gradients_is_not_differentiated_past_the_formula(ops) -> None:
    class Turned(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            return x.t().clone()

        @staticmethod
        def backward(context, grad):
            return ops.turn(grad, 0, 1)

    x = torch.rand(3, 4, requires_grad=True)
    grads = torch.rand(2, 4, 3, requires_grad=True)
    y = Turned.apply(x)
    (found,) = torch.autograd.grad(y, x, grads.detach(), is_grads_batched=True, retain_graph=True)
    assert_close(found, grads.detach().mT)
    with pytest.raises(RuntimeError, match="cannot be differentiated again through an operator"):
        torch.autograd.grad(y, x, grads, is_grads_batched=True, create_graph=True)


def test_a_place_that_does_not_move_with_the_example_is_refused(ops) -> None:
    """ATen's as_strided counts the offset from the example."""
    xs = torch.arange(6.0).view(2, 3)
    assert ops.placed(xs, 1).tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="vmap: viewtest::placed views places of the memory"):
        torch.vmap(lambda x: ops.placed(x, 1))(xs)
    assert torch.vmap(lambda x: ops.placed(x, 1))(xs[:1]).tolist() == [[1, 2]]


def test_an_operator_may_be_called_view(ops) -> None:
    x = torch.arange(6.0)
    assert ops.view(x, [2, 3])._is_view() and ops.view(x, [2, 3]).equal(x.view(2, 3))
    xs = torch.arange(12.0).view(2, 6)
    assert torch.vmap(lambda x: ops.view(x, [2, 3]))(xs).equal(xs.view(2, 2, 3))
