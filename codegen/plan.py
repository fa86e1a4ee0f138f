# SPDX-License-Identifier: BSD-3-Clause
"""The Plan: every decision about the code to generate, as plain values. Emitters spell it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from .autograd_plan import AutogradPlan, NodePlan, Tensors
from .model import Operator


@dataclass(frozen=True)
class Parameter:
    """One parameter of a C++ function."""

    type: str
    name: str
    default: str | None = None

    @property
    def declaration(self) -> str:
        """`type name`, without the default."""
        return f"{self.type} {self.name}"


@dataclass(frozen=True)
class Signature:
    """A C++ function type with parameter names."""

    result: str
    parameters: tuple[Parameter, ...]

    @property
    def type(self) -> str:
        """The function type: `at::Tensor(const at::Tensor&, int64_t)`."""
        return f"{self.result}({', '.join(p.type for p in self.parameters)})"

    def prototype(self, name: str, defaults: bool = False) -> str:
        """A declaration without semicolon."""
        parts = [
            p.declaration + (f" = {p.default}" if defaults and p.default is not None else "")
            for p in self.parameters
        ]
        return f"{self.result} {name}({', '.join(parts)})"

    @property
    def names(self) -> str:
        """The parameter names, to pass them on."""
        return ", ".join(p.name for p in self.parameters)


@dataclass(frozen=True)
class KernelPlan:
    """What is registered for one operator and one dispatch key."""

    key: str
    function: str  # qualified C++ name; empty for cpu_fallback
    signature: Signature | None  # None: a boxed kernel
    device_checks: tuple[Tensors, ...] = ()  # those that must be on one device
    device_guard: str | None = None  # the expression whose device the guard selects
    needs_cuda: bool = False  # compiled only where CUDA is
    is_overloaded: bool = False  # other kernels of this name take other arguments

    @property
    def is_fallback(self) -> bool:
        """Whether the key runs the CPU kernel on copies."""
        return not self.function

    @property
    def is_wrapped(self) -> bool:
        """Whether a generated function checks devices or sets the guard before the kernel runs."""
        return bool(self.device_checks) or self.device_guard is not None


@dataclass(frozen=True)
class OperatorPlan:
    """Everything decided about one operator."""

    operator: Operator
    group: str  # operators of one group share headers and a shard: mul, mul_, mul.out
    shard: int
    tags: tuple[str, ...]
    handle: str  # name of the typed handle
    signature: Signature | None  # of the dispatcher's call; None: there is no C++ spelling
    api_name: str | None  # function of the C++ API; None: there is none
    api: Signature | None
    kernels: tuple[KernelPlan, ...]
    autograd: AutogradPlan
    autograd_by_key: tuple[tuple[str, AutogradPlan], ...] = ()  # keys with formulas of their own

    @cached_property
    def schema(self) -> str:
        """The schema as registered."""
        func = self.operator.func
        return (
            str(func).removeprefix(f"{func.name.namespace}::") if func.name.namespace else str(func)
        )

    @property
    def nodes(self) -> list[NodePlan]:
        """The nodes whose classes are generated with this operator."""
        plans = [self.autograd, *(plan for _, plan in self.autograd_by_key)]
        return [plan.node for plan in plans if plan.node and plan.owns_node]

    @property
    def spec_line(self) -> str:
        """FILE:LINE of the entry."""
        return self.operator.location.file_line


@dataclass(frozen=True)
class Plan:
    """The plan of one library."""

    namespace: str
    specs: tuple[str, ...]  # names of the spec files
    shards: int
    operators: tuple[OperatorPlan, ...]
    helper_topics: tuple[str, ...] = ()  # derivative helpers to compile

    def formulas(self) -> Iterator[str]:
        """The C++ text of every formula."""
        for op in self.operators:
            for node in op.nodes:
                yield from (gradient.expression for gradient in node.gradients)
            for plan in (op.autograd, *(plan for _, plan in op.autograd_by_key)):
                yield from (tangent.expression for tangent in plan.tangents)

    def groups(self) -> dict[str, list[OperatorPlan]]:
        """The operators of each group, in YAML order."""
        found: dict[str, list[OperatorPlan]] = {}
        for op in self.operators:
            found.setdefault(op.group, []).append(op)
        return found

    def shard(self, index: int) -> list[OperatorPlan]:
        """The operators of one shard, in YAML order."""
        return self._by_shard.get(index, [])

    @cached_property
    def _by_shard(self) -> dict[int, list[OperatorPlan]]:
        found: dict[int, list[OperatorPlan]] = {}
        for op in self.operators:
            found.setdefault(op.shard, []).append(op)
        return found
