# SPDX-License-Identifier: BSD-3-Clause
"""Samples of operators that the spec has none for: the arguments that formulas, and the parts of
other operators, call them with."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch
from torch.autograd import forward_ad
from torch.utils._python_dispatch import TorchDispatchMode

from .calls import cotangents, out_arguments
from .facts import Facts
from .samples import Sample
from .subject import Subject

_MOST_CALLS = 3  # that are kept of an operator
_MOST_ELEMENTS = 4096  # of a tensor whose values are kept

Recorded = dict[str, list[Sample]]  # by operator
_Function = Callable[..., tuple[torch.Tensor, ...]]


class _Unsaid(Exception):
    """A value that no sample can give."""


def recorded_samples(sources: Sequence[Subject], wanted: Collection[str]) -> Recorded:
    """Run the operators of `sources`, and their derivatives, on their samples; return what those
    among `wanted` were called with. Whatever a source raises is for its own checks to find.

    On the CPU as well: a device for which an expression has no kernel runs ATen's operators, and
    calls none of its derivatives."""
    found: Recorded = {}
    on_cpu = (Subject(s.facts) for s in sources if s.device.type != "cpu")
    for subject in (*sources, *on_cpu):
        dtype = subject.wide_dtype
        with contextlib.suppress(Exception):  # as the operator likes
            calls = subject.calls(dtype)
            with _Recorder(subject.facts.namespace, set(wanted), dtype, found):
                for call, differentiate in itertools.product(calls, _MODES):
                    with contextlib.suppress(Exception):
                        flags = subject.differentiable(call)
                        differentiate(subject.function(call), call.tensors, flags)
    return found


def _reverse_mode(function: _Function, tensors: list[torch.Tensor], flags: list[bool]) -> None:
    """Compute gradients, and the gradients of these."""
    leaves = [t.detach().requires_grad_(flag) for t, flag in zip(tensors, flags)]
    found, given = _gradients(function, leaves, create_graph=True)
    found = [gradient for gradient in found if gradient.requires_grad]
    wanted = [tensor for tensor in (*leaves, *given) if tensor.requires_grad]
    torch.autograd.grad(found, wanted, cotangents(found), allow_unused=True)


def _forward_mode(function: _Function, tensors: list[torch.Tensor], flags: list[bool]) -> None:
    """Compute tangents of the results."""
    with forward_ad.dual_level():
        function(*_duals(tensors, flags))


def _forward_over_reverse(
    function: _Function, tensors: list[torch.Tensor], flags: list[bool]
) -> None:
    """Compute tangents of the gradients."""
    with forward_ad.dual_level():
        leaves = [t.detach().requires_grad_(flag) for t, flag in zip(tensors, flags)]
        _gradients(function, _duals(leaves, flags), create_graph=False)


def _duals(tensors: list[torch.Tensor], flags: list[bool]) -> list[torch.Tensor]:
    return [
        forward_ad.make_dual(t, tangent) if flag else t
        for t, flag, tangent in zip(tensors, flags, cotangents(tensors))
    ]


def _gradients(
    function: _Function, tensors: list[torch.Tensor], create_graph: bool
) -> tuple[Sequence[torch.Tensor], list[torch.Tensor]]:
    """The gradients of those that require some, and the gradients of results that they are of.

    Those of results are differentiated too: in reverse mode with a graph, else in forward mode.
    """
    wanted = [tensor for tensor in tensors if tensor.requires_grad]
    results = [result for result in function(*tensors) if result.requires_grad]
    given = [c.requires_grad_(create_graph) for c in cotangents(results)]
    if not create_graph:
        given = _duals(given, [True] * len(given))
    found = torch.autograd.grad(
        results, wanted, given, create_graph=create_graph, materialize_grads=True
    )
    return found, given


_MODES = (_reverse_mode, _forward_mode, _forward_over_reverse)


def may_call_others(facts: Facts) -> bool:
    """Whether an operator has samples to run, and formulas or parts that call others."""
    return bool(facts.samples and (facts.gradients or facts.composite))


class _Recorder(TorchDispatchMode):
    def __init__(
        self, namespace: str, wanted: set[str], dtype: torch.dtype, found: Recorded
    ) -> None:
        super().__init__()
        self._prefix, self._wanted = f"{namespace}::", wanted
        self._dtype, self._found = dtype, found

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.name().removeprefix(self._prefix) if isinstance(func, _OVERLOAD) else ""
        calls = self._found.setdefault(name, []) if name in self._wanted else None
        if calls is not None and len(calls) < _MOST_CALLS and not out_arguments(func):
            try:
                sample = self._sample(func, args, kwargs or {})
            except _Unsaid:
                pass
            else:
                if sample not in calls:
                    calls.append(sample)
        return func(*args, **(kwargs or {}))

    def _sample(self, func: torch._ops.OpOverload, args: tuple, kwargs: dict) -> Sample:
        names = [argument.name for argument in func._schema.arguments]
        return {
            name: self._value(value) for name, value in {**dict(zip(names, args)), **kwargs}.items()
        }

    def _value(self, value: Any) -> Any:
        """A value as the table of operators has it."""
        if isinstance(value, (list, tuple)):
            return [self._value(item) for item in value]
        if isinstance(value, torch.Tensor):
            return {"tensor": self._tensor(value)}
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool, dict)):
            raise _Unsaid
        for kind, (types, content) in _CONSTANTS.items():
            if isinstance(value, types):
                return {kind: content(value)}
        return _number(value)

    def _tensor(self, tensor: torch.Tensor) -> dict[str, Any]:
        """Its values, which belong to those of the other arguments; what has the dtype under test
        is given in any."""
        if tensor.layout != torch.strided or tensor.numel() > _MOST_ELEMENTS:
            raise _Unsaid
        has_values = tensor.numel() and not tensor.is_complex() and tensor.dtype.itemsize > 1
        said: dict[str, Any] = {"size": list(tensor.shape)}
        if has_values or tensor.dtype in (torch.bool, torch.uint8, torch.int8):
            said = {"values": _numbers(tensor.tolist())} if tensor.numel() else said
        if tensor.dtype != self._dtype:
            said["dtype"] = str(tensor.dtype).removeprefix("torch.")
        if not tensor.is_floating_point() and not tensor.is_complex():
            said["fixed"] = True  # places, counts and choices, that no other number may stand for
        return said


_OVERLOAD = torch._ops.OpOverload
_CONSTANTS = {
    "dtype": (torch.dtype, lambda value: str(value).removeprefix("torch.")),
    "enum": ((torch.layout, torch.memory_format), lambda value: str(value).removeprefix("torch.")),
    "device": (torch.device, lambda value: value.type),
    "generator": (torch.Generator, lambda value: value.initial_seed()),
    "complex": (complex, lambda value: [value.real, value.imag]),
}


def _numbers(value: Any) -> Any:
    return [_numbers(item) for item in value] if isinstance(value, list) else _number(value)


def _number(value: Any) -> Any:
    """A number; infinities are maps in the table."""
    is_special = isinstance(value, float) and not math.isfinite(value)
    return {"float": str(value)} if is_special else value
