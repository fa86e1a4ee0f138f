# SPDX-License-Identifier: BSD-3-Clause
"""The Plan: every decision about the code to generate, as plain values. Emitters spell it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

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
class Tensors:
    """One argument that holds tensors."""

    name: str  # in the schema and in messages
    parameter: str  # in C++


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
class SavedPlan:
    """One member of a backward node."""

    member: str  # of the node
    local: str  # what the formula calls it
    type: str
    save: str  # C++ expression of its value when the node is made
    unpack: str | None  # C++ expression of the local, where it is not the member itself
    edges: tuple[int, ...]  # saved only if one of these gradients is needed; empty: always
    is_output: bool = False  # saved after the kernel has run
    releases: str | None = None  # how release_variables frees it


@dataclass(frozen=True)
class EdgePlan:
    """One argument that gradients flow to."""

    argument: str
    parameter: str  # of the kernel
    is_list: bool
    is_optional: bool


@dataclass(frozen=True)
class GradientPlan:
    """One formula: the edges it computes, and its C++ text with locals in place of names."""

    edges: tuple[int, ...]
    expression: str
    grads: tuple[tuple[str, int], ...]  # local name of an incoming gradient, and its index
    needs_mask: bool  # uses grad_input_mask


@dataclass(frozen=True)
class NodePlan:
    """A backward node: its class, what it saves, what it computes."""

    name: str
    edges: tuple[EdgePlan, ...]
    saved: tuple[SavedPlan, ...]
    gradients: tuple[GradientPlan, ...]
    calls: tuple[str, ...]  # functions of the library's own C++ API that its formulas call
    spec_line: str  # where its formulas stand


@dataclass(frozen=True)
class ResultPlan:
    """One result of an operator in its autograd kernel."""

    name: str  # in formulas
    local: str  # in the kernel
    type: str
    is_differentiable: bool
    condition: str | None = None  # C++ condition of output_differentiability


@dataclass(frozen=True)
class AutogradPlan:
    """What stands on the autograd keys of one operator."""

    node: NodePlan | None = None  # the generated kernel records this node
    is_not_implemented: bool = False  # the kernel that names the operator on backward
    is_ignored: bool = False  # the kernel that runs the operator without recording anything
    tracks_aliases: bool = False  # version counters and views, on ADInplaceOrView
    differentiable: tuple[Tensors, ...] = ()  # arguments that can carry gradients
    without_formula: tuple[Tensors, ...] = ()  # those of them that must not require grad
    tensors: tuple[str, ...] = ()  # parameters that hold tensors; no result may be one of them
    results: tuple[ResultPlan, ...] = ()


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

    @cached_property
    def schema(self) -> str:
        """The schema as registered."""
        func = self.operator.func
        return (
            str(func).removeprefix(f"{func.name.namespace}::") if func.name.namespace else str(func)
        )

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
