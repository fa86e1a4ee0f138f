# SPDX-License-Identifier: BSD-3-Clause
"""One call of the mirror against the same call of aten: value, flags, gradients, tangents.

What aten refuses, the mirror must refuse as well; the call then counts for nothing else. Missing
gradients and tangents are compared as missing: zeros in place of them are a mismatch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch.testing import assert_close

from .calls import (
    REFUSED,
    SEED,
    Overload,
    Raised,
    differentiable,
    is_float,
    raising,
    random_like,
    with_tangents,
)
from .samples import Call

COLUMNS = ("value", "flags", "reverse", "forward", "double", "writes")
_ALONE = 6  # inputs that are made to require grad one at a time


class Mismatch(Exception):
    """What differs."""


class NotApplicable(Exception):
    """Why there is nothing to compare."""


class Pair:
    """An overload of aten and its mirror, on one call."""

    def __init__(self, aten: Overload, ours: Overload, call: Call):
        self.aten, self.ours, self.call = aten, ours, call
        self.inputs = differentiable(call)

    def both(self, function: Callable[[Overload], Any], what: str) -> tuple[Any, Any]:
        """What a function gives for aten and for the mirror; where aten raises, both must."""
        expected, actual = _outcome(function, self.aten), _outcome(function, self.ours)
        if isinstance(actual, Raised) and "expected a list of length" in str(actual):
            if not self.ours.takes_lists(self.call):
                raise NotApplicable(REFUSED)
        if isinstance(expected, Raised):
            if not isinstance(actual, Raised):
                raise Mismatch(f"{what}: aten raises {expected}; the mirror does not")
            raise NotApplicable(f"aten raises {expected}")
        if isinstance(actual, Raised):
            raise Mismatch(f"{what}: the mirror raises {actual}")
        return expected, actual

    def accepted(self) -> list[int]:
        """The inputs that may require grad, as aten has it."""
        return [p for p in self.inputs if not isinstance(_outcome(self.run(p), self.aten), Raised)]

    def run(self, position: int) -> Callable[[Overload], list]:
        """A function that calls an overload with the input at this position requiring grad."""
        return lambda overload: overload.run(overload.prepare(self.call, [position]))


def _outcome(function: Callable[[Overload], Any], overload: Overload) -> Any:
    try:
        return function(overload)
    except Raised as error:
        return error


def _same(expected: list, actual: list, what: str) -> None:
    if len(expected) != len(actual):
        raise Mismatch(f"{what}: {len(actual)} values, expected {len(expected)}")
    for number, (one, other) in enumerate(zip(expected, actual)):
        if isinstance(one, torch.Tensor) != isinstance(other, torch.Tensor):
            kinds = ["a tensor" if isinstance(v, torch.Tensor) else str(v) for v in (other, one)]
            raise Mismatch(f"{what} {number}: {kinds[0]}, expected {kinds[1]}")
        try:
            if isinstance(one, torch.Tensor):
                assert_close(other, one, equal_nan=True)
            elif one != other and not (one != one and other != other):
                raise Mismatch(f"{what} {number}: {other}, expected {one}")
        except AssertionError as error:
            text = " ".join(str(error).split())[:160]
            raise Mismatch(f"{what} {number}: {text}") from None


def value(pair: Pair) -> None:
    """Results and mutated arguments, without autograd."""

    def run(overload: Overload) -> list:
        with torch.no_grad():
            prepared = overload.prepare(pair.call)
            results = overload.run(prepared)
        return [*results, *(prepared.values[p] for p in sorted(overload.written(pair.call)))]

    _same(*pair.both(run, "value"), "value")


def flags(pair: Pair) -> None:
    """Version counters, aliases, and what requires grad when each input alone does."""
    refusals = []
    sets = [[], *([position] for position in pair.inputs[:_ALONE])]
    for positions in sets:

        def run(overload: Overload, positions: list[int] = positions) -> list:
            prepared = overload.prepare(pair.call, positions)
            tensors = [v for v in prepared.values if isinstance(v, torch.Tensor)]
            before = [t._version for t in tensors]
            results = overload.run(prepared)
            versions = [t._version - old for t, old in zip(tensors, before)]
            return [versions, *map(lambda r: _flags(r, tensors), results), *map(_leaf, tensors)]

        try:
            expected, actual = pair.both(run, f"call with {positions} requiring grad")
        except NotApplicable as error:
            refusals.append(error)
            continue
        if expected != actual:
            raise Mismatch(f"flags with {positions} requiring grad: {actual} not {expected}")
    if len(refusals) == len(sets):
        raise refusals[0]


def _leaf(tensor: torch.Tensor) -> tuple:
    return tensor.requires_grad, tensor.is_leaf


def _flags(result: Any, inputs: list[torch.Tensor]) -> object:
    if not isinstance(result, torch.Tensor):
        return type(result).__name__
    same = [number for number, tensor in enumerate(inputs) if tensor is result]
    bases = [number for number, tensor in enumerate(inputs) if tensor is result._base]
    return (result.requires_grad, result.is_leaf, result._is_view(), result._version, same, bases,
            [_place(result, tensor) for tensor in inputs], result.stride())  # fmt: skip


def _place(result: torch.Tensor, tensor: torch.Tensor) -> int | None:
    """Where a result begins in the memory of an argument; None where it has none of it."""
    if tensor.layout != torch.strided or result.layout != torch.strided:
        return None
    storages = [t.untyped_storage().data_ptr() for t in (result, tensor)]
    return result.storage_offset() if storages[0] == storages[1] and result.numel() else None


def _recorded(pair: Pair, overload: Overload, positions: list[int]) -> tuple[list, list, list]:
    """Leaves, the results that require grad, and cotangents for them."""
    prepared = overload.prepare(pair.call, positions)
    results = overload.run(prepared)
    flat = [*results, *(prepared.values[p] for p in sorted(overload.written(pair.call)))]
    outputs = [r for r in flat if is_float(r) and r.requires_grad]
    weights = [random_like(output, SEED + n) for n, output in enumerate(outputs)]
    return prepared.leaves, outputs, weights


def reverse(pair: Pair) -> None:
    """Gradients: of each input alone, then of all together."""

    def grads(overload: Overload, positions: list[int]) -> list:
        leaves, outputs, weights = _recorded(pair, overload, positions)
        if not outputs:
            return []
        torch.manual_seed(SEED)
        with raising():
            return list(torch.autograd.grad(outputs, leaves, weights, allow_unused=True))

    _each(pair, grads, "gradient", "no result requires grad")


def writes(pair: Pair) -> None:
    """Views after writes to them, to what they are views of, and to both: values and gradients."""
    reasons, compared = ["no result is a view"], False
    for position in pair.accepted()[:_ALONE]:
        for targets in (("view",), ("base",), ("base", "view")):
            what = f"{' and '.join(targets)} [{position}] written"
            try:
                run = partial(_written, call=pair.call, position=position, targets=targets)
                outcome = pair.both(run, what)
                _same(*outcome, what)
                compared = compared or bool(outcome[0])
            except NotApplicable as error:
                reasons.append(str(error))
    if not compared:
        raise NotApplicable(reasons[-1])


def _written(overload: Overload, call: Call, position: int, targets: tuple[str, ...]) -> list:
    """The results that are views of an argument, or the argument, its value and its gradient."""
    prepared = overload.prepare(call, [position])
    base = prepared.leaves[0] * 1
    values = [base if n == position else value for n, value in enumerate(prepared.values)]
    results = overload.run(prepared.with_values(values))
    views = [r for r in results if is_float(r) and (r is base or r._base is base)]
    if not views:
        return []
    with raising():
        for target in targets:
            (base if target == "base" else views[0]).mul_(3)
        outputs = [*views, base]
        weights = [random_like(output, SEED + n) for n, output in enumerate(outputs)]
        grads = torch.autograd.grad(outputs, prepared.leaves, weights)
    return [*(output.detach().clone() for output in outputs), *grads]


def double(pair: Pair) -> None:
    """Gradients of the gradients, with respect to the inputs and the cotangents."""

    def grads(overload: Overload, positions: list[int]) -> list:
        leaves, outputs, weights = _recorded(pair, overload, positions)
        if not outputs:
            return []
        weights = [weight.requires_grad_() for weight in weights]
        torch.manual_seed(SEED)
        with raising():
            first = torch.autograd.grad(
                outputs, leaves, weights, create_graph=True, allow_unused=True
            )
            outputs = [g for g in first if g is not None and g.requires_grad]
            if not outputs:
                return []
            again = [random_like(output, SEED - 1 - n) for n, output in enumerate(outputs)]
            second = torch.autograd.grad(outputs, [*leaves, *weights], again, allow_unused=True)
        return [*(g if g is None else g.requires_grad for g in first), *second]

    _each(pair, grads, "second gradient", "no gradient requires grad")


def forward(pair: Pair) -> None:
    """Tangents: of each input alone, then of all together."""

    def tangents(overload: Overload, positions: list[int]) -> list:
        return with_tangents(overload, pair.call, positions)

    _each(pair, tangents, "tangent", "no input takes a tangent")


def _each(pair: Pair, function: Callable[[Overload, list[int]], list], what: str, no: str) -> None:
    """Compare for each input alone and for all that aten takes; some set must be applicable."""
    reasons = []
    accepted = pair.accepted()
    together = [accepted] if len(accepted) > 1 else []
    compared = False
    for positions in [*([p] for p in accepted[:_ALONE]), *together]:
        try:
            outcome = pair.both(lambda o, at=positions: function(o, at), f"{what} {positions}")
            _same(*outcome, f"{what} for {positions}")
            compared = compared or bool(outcome[0])
        except NotApplicable as error:
            reasons.append(str(error))
    if not compared:
        raise NotApplicable([*reasons, no if accepted else "no differentiable input"][0])


@contextlib.contextmanager
def filled_memory() -> Iterator[None]:
    """Uninitialised memory is filled, so that what reads it can be compared."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)


_COMPARISONS = {"value": value, "flags": flags, "reverse": reverse, "forward": forward,
                "double": double, "writes": writes}  # fmt: skip


def compare(pair: Pair, column: str) -> tuple[str, str]:
    """`match`, `mismatch` or `not applicable` of one call in one column, and why."""
    try:
        _COMPARISONS[column](pair)
    except NotApplicable as error:
        return "not applicable", str(error)
    except Mismatch as error:
        try:
            with filled_memory():
                _COMPARISONS[column](pair)
        except NotApplicable as again:
            return "not applicable", str(again)
        except Mismatch:
            return "mismatch", str(error)
    return "match", ""
