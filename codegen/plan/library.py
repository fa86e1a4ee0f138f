# SPDX-License-Identifier: BSD-3-Clause
"""The Plan: every decision about the code to generate, as plain values. Emitters spell it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..cpp.signatures import Signature
from ..schema.schema import OperatorName, Return, Schema
from ..spec.model import Operator
from .autograd import AUTOGRAD, Autograd, NodePlan, Recording, SourceLine, Views
from .calls import ON_COPIES, DeclaredForm, LengthCheck, TracedView
from .expressions import Expression
from .fused import FusedPlan
from .kernels import KernelPlan, RulePlan, StructuredPlan, WrapperPlan


@dataclass(frozen=True)
class BoxedArgument:
    """An argument that is taken from among the values of a call."""

    name: str
    type: str  # of the value in C++
    index: int


@dataclass(frozen=True)
class BatchingExpression:
    """What a batching rule asks of the arguments of a call."""

    operator: str  # in errors
    arguments: tuple[BoxedArgument, ...]  # that it names
    value: Expression


# A member of BatchedOperator: a bool, arguments, or arguments and a number of each.
BatchingFact = tuple[str, bool | tuple[str, ...] | tuple[tuple[str, int], ...]]


@dataclass(frozen=True)
class BatchingRule:
    """How a batch is served: a function of torchext/generated/batching.h, and what it is given."""

    function: str
    rows: tuple[str, ...] = ()  # the arguments that have the leading dimension
    rows_of_row: BatchingExpression | None = None  # that the results have; one where it is None
    condition: BatchingExpression | None = None  # what must hold for it to serve a call
    form: OperatorName | None = None  # the functional one, which an out= form calls
    keys: tuple[str, ...] = ("FuncTorchBatched",)
    facts: tuple[BatchingFact, ...] = ()  # those that are not as usual


@dataclass(frozen=True)
class OverridePlan:
    """What the library asks of an operator that it gives kernels to and does not define."""

    namespace: str
    covers: tuple[str, ...]  # keys whose kernels must not hide a gradient through the parts


@dataclass(frozen=True)
class ApiPlan:
    """The function of the library's C++ API that calls an operator."""

    name: str
    symint_name: str | None  # ATen's second name of a function that takes SymInt
    signature: Signature

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that it is called by."""
        return (self.name, self.symint_name) if self.symint_name else (self.name,)


def _as_view(result: Return) -> Return:
    is_list = result.type.name == "List" and result.type.is_alias and not result.type.is_write
    if not is_list:
        return result
    alias = next(t.alias for t in result.type.walk() if t.alias)
    return dataclasses.replace(result, type=dataclasses.replace(result.type, alias=alias))


@dataclass(frozen=True)
class OperatorPlan:
    """Everything decided about one operator."""

    operator: Operator
    group: str  # operators of one group share headers and a shard: mul, mul_, mul.out
    shard: int
    tags: tuple[str, ...]
    handle: str  # name of the typed handle
    signature: Signature | None  # of its typed handle; None: it has none
    kernels: tuple[KernelPlan, ...]
    api: ApiPlan | None = None
    autograd: tuple[tuple[str, Autograd], ...] = ()  # the kernels on autograd keys
    tracked: Views | None = None  # version counters and views, on ADInplaceOrView
    structured: StructuredPlan | None = None  # of an out= form
    rule: RulePlan | None = None
    fused: FusedPlan | None = None
    traced: DeclaredForm | None = None  # what a traced call of an operator that writes becomes
    traced_view: TracedView | None = None  # how a call that makes a view is traced
    batching: BatchingRule | None = None
    override: OverridePlan | None = None  # None: the operator is the library's own
    form_of: OperatorName | None = None  # the functional form of an in-place or out= form
    samples: tuple[dict[str, Any], ...] = ()  # arguments for the generated tests, as in JSON
    wrappers: tuple[WrapperPlan, ...] = ()  # the functions in the places of kernels
    repeated: tuple[LengthCheck, ...] = ()  # lists for all of which one number of C++ stands

    @cached_property
    def schema(self) -> str:
        """The schema, with a namespace that is not the library's."""
        return self._text(self.operator.func)

    @property
    def registered_schema(self) -> str:
        """The schema as it is registered: a list of views is a view itself, by which torch's Python
        knows that its tensors share memory."""
        func = self.operator.func
        return self._text(dataclasses.replace(func, returns=tuple(map(_as_view, func.returns))))

    def _text(self, func: Schema) -> str:
        own = func.name.namespace and not self.override
        return str(func).removeprefix(f"{func.name.namespace}::") if own else str(func)

    def wrapper_of(self, kernel: KernelPlan) -> WrapperPlan | None:
        """The function that is registered in a kernel's place; None where it is the kernel's own
        or one for all operators."""
        keys = ((wrapper, k.key) for wrapper in self.wrappers for k in wrapper.kernels)
        return next((wrapper for wrapper, key in keys if key == kernel.key), None)

    @property
    def is_traced_on_copies(self) -> bool:
        """Whether what traced calls become runs the operator itself, on copies."""
        is_aside = self.traced is not None and self.traced.function == ON_COPIES
        return is_aside and self.traced.target != self.operator.name

    @property
    def nodes(self) -> list[NodePlan]:
        """The nodes whose classes are generated with this operator."""
        return [recording.node for _, recording in self.recordings if recording.owns_node]

    @property
    def recordings(self) -> list[tuple[str, Recording]]:
        """The keys on which the operator records a node, and how."""
        return [(key, found) for key, found in self.autograd if isinstance(found, Recording)]

    @property
    def on_autograd(self) -> Autograd | None:
        """What stands on the autograd key of all devices."""
        return dict(self.autograd).get(AUTOGRAD)

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
    fused_parts: int  # over how many files expressions are spread, some shards in each
    operators: tuple[OperatorPlan, ...]
    # headers of the library's own that formulas need, each with the line that names it
    formula_headers: tuple[tuple[str, SourceLine], ...] = ()
    helper_topics: tuple[str, ...] = ()  # derivative helpers to compile

    def formulas(self) -> Iterator[str]:
        """The C++ text of every formula."""
        for op in self.operators:
            for node in op.nodes:
                yield from (gradient.expression for gradient in node.gradients)
            for _, recording in op.recordings:
                yield from (tangent.expression for tangent in recording.tangents)

    def fused_part(self, index: int) -> list[OperatorPlan]:
        """The operators of one of these files."""
        shards = range(index, self.shards, self.fused_parts)
        return [op for shard in shards for op in self.shard(shard) if op.fused]

    def groups(self) -> dict[str, list[OperatorPlan]]:
        """The operators of each group, in YAML order."""
        found: dict[str, list[OperatorPlan]] = {}
        for op in self.operators:
            found.setdefault(op.group, []).append(op)
        return found

    @cached_property
    def group_of_api(self) -> dict[str, str]:
        """The group of each operator that formulas can call, by the name they call it by."""
        return {
            name: op.group for op in self.operators for name in (op.api.names if op.api else ())
        }

    def shard(self, index: int) -> list[OperatorPlan]:
        """The operators of one shard, in YAML order."""
        return self._by_shard.get(index, [])

    @cached_property
    def _by_shard(self) -> dict[int, list[OperatorPlan]]:
        found: dict[int, list[OperatorPlan]] = {}
        for op in self.operators:
            found.setdefault(op.shard, []).append(op)
        return found
