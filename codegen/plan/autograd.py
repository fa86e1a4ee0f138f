# SPDX-License-Identifier: BSD-3-Clause
"""The part of the Plan that is about derivatives: nodes, and the kernels on autograd keys."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from .calls import DeclaredForm


@dataclass(frozen=True)
class Tensors:
    """One argument that holds tensors."""

    name: str  # in the schema and in messages
    parameter: str  # in C++


@dataclass(frozen=True)
class SourceLine:
    """A line of a spec, where a formula stands."""

    file: str
    line: int


class SavedKind(enum.Enum):
    """How a backward node holds one value that its formulas use."""

    VALUE = "a copy"
    TENSOR = "a SavedVariable; a missing optional tensor is an undefined one"
    TENSORS = "a vector of them"
    OPTIONAL_TENSORS = "a vector of them, unpacked to optional tensors"


@dataclass(frozen=True)
class SavedPlan:
    """One member of a backward node."""

    member: str  # of the node
    local: str  # what the formulas call it
    kind: SavedKind
    source: str  # the argument or result that it is saved from
    edges: tuple[int, ...]  # saved only if one of these gradients is needed; empty: always
    is_output: bool  # saved after the kernel has run
    name: str  # what its property in Python is called, after `_saved_`
    type: str = ""  # of a VALUE
    value: str = ""  # what a formula takes of the source as a VALUE; {} stands for the source


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
    line: SourceLine  # where it stands
    grads: tuple[tuple[str, int], ...]  # local name of an incoming gradient, and its index
    needs_mask: bool  # uses grad_input_mask
    is_elementwise: bool = False  # gives the gradient of the i-th element of each list
    lists: tuple[tuple[str, str], ...] = ()  # of which it reads that: argument or result, and local
    is_missing: bool = False  # says that there is none
    is_lost: bool = False  # no formula: zeros, of the value that the operator overwrote


@dataclass(frozen=True)
class NodePlan:
    """A backward node: its class, what it saves, what it computes."""

    name: str
    edges: tuple[EdgePlan, ...]
    saved: tuple[SavedPlan, ...]
    gradients: tuple[GradientPlan, ...]
    calls: tuple[str, ...]  # functions of the library's own C++ API that its formulas call
    retains: bool  # formulas ask for retain_variables
    spec_line: str  # where its formulas stand
    zeros: tuple[str | None, ...] = ()  # per differentiable result what zeros are made of, or None
    undefined: tuple[tuple[str, int | None], ...] = ()  # results with gradients that may be so


@dataclass(frozen=True)
class Condition:
    """A condition of output_differentiability."""

    expression: str  # C++ over the kernel's parameters
    line: SourceLine  # where it stands


@dataclass(frozen=True)
class ResultPlan:
    """One result of an operator in its autograd kernel."""

    name: str  # in formulas
    local: str  # in the kernel; of a result that always is an argument, the parameter
    type: str
    is_differentiable: bool
    is_list: bool
    written: str | None  # the parameter that this result is
    is_optional: bool  # it is new where the parameter is a missing tensor
    is_out: bool  # the parameter is a keyword-only one, as those of out= forms
    is_view: bool  # of an argument that is not written to
    is_inplace_view: bool  # it is the argument, with other sizes and strides
    condition: Condition | None  # it is differentiable only if this holds
    is_tensor: bool  # or a list of tensors

    @property
    def flag(self) -> str:
        """The variable that holds the value of the condition."""
        return f"{self.local}_is_differentiable"

    @property
    def is_argument(self) -> bool:
        """Whether the result is an argument in every call."""
        return self.written is not None and not self.is_optional

    @property
    def is_new(self) -> bool:
        """Whether it is a tensor, or several, that shares memory with an argument in no call or not
        in every one."""
        return self.is_tensor and not (self.is_argument or self.is_view)


class SavedFrom(enum.Enum):
    """What a member of a new node is saved from."""

    VALUE = "what a formula takes of an argument or result"
    ARGUMENT = "an argument"
    ORIGINAL = "an argument as it was before the operator wrote to it"
    ASIDE = "what the operator wrote to beside its results"
    RESULT = "a new result"
    WRITTEN = "a result that is an argument"


@dataclass(frozen=True)
class SaveStep:
    """One assignment to a member of a new node."""

    member: str
    origin: SavedFrom
    source: str  # the parameter, or the variable of the result
    edges: tuple[int, ...]  # only if one of these gradients is needed; empty: always
    value: str = ""  # of a VALUE; {} stands for the source
    given: str | None = None  # the parameter that the result is where that is there


class EdgeTo(enum.Enum):
    """Where a gradient of a node goes."""

    ARGUMENT = "to the argument"
    VIEW = "to the argument where it is a view, whose base has another part"
    NOWHERE = "nowhere: the node has it for another form"


@dataclass(frozen=True)
class TangentInput:
    """What a tangent formula reads of one argument."""

    name: str  # in the formula: `name`_t and `name`_p
    parameter: str
    needs_tangent: bool
    needs_primal: bool
    needs_raw: bool  # `name`_t_raw, the tangent or an undefined tensor
    is_written: bool = False  # the operator writes to it: zeros that can be written to
    is_original: bool = False  # the value that it had before the operator wrote to it
    is_copied: bool = False  # its tangent is overwritten before the formula's value is used


@dataclass(frozen=True)
class TangentPlan:
    """One `result:` formula: the tangents of some results."""

    results: tuple[ResultPlan, ...]
    looked_at: tuple[str, ...]  # parameters; computed only if one of them has a tangent
    inputs: tuple[TangentInput, ...]
    expression: str
    line: SourceLine  # where it stands
    is_elementwise: bool = False  # gives the tangent of the i-th element of a list
    lists: tuple[tuple[str, str], ...] = ()  # of which it reads that: argument and parameter
    clones: tuple[str, ...] = ()  # variables of the tangent that must not be written to
    apart: tuple[str, ...] = ()  # parameters with which the tangents share no memory

    @property
    def name(self) -> str:
        """The variable that holds the tangents."""
        return f"{'_'.join(r.local for r in self.results)}_tangent"


class Views(enum.Enum):
    """How autograd sees results that are views: a value of torchext::Views."""

    NONE = "kNone"
    DIFFERENTIABLE = "kDifferentiable"
    REFUSED = "kRefused"
    IGNORED = "kIgnored"


@dataclass(frozen=True)
class Refused:
    """Arguments and results with which a call that records is refused."""

    without_formula: tuple[Tensors, ...]  # arguments that must not require grad
    without_tangent: tuple[Tensors, ...]  # those that must not have a tangent
    views: tuple[str, ...]  # written parameters that must not be views of others
    shared: tuple[str, ...]  # several written parameters, which must share no memory
    complex: tuple[str, ...]  # results that must not be complex and require grad


@dataclass(frozen=True)
class Overwritten:
    """What of the written parameters is kept, from before the call or beside it."""

    parameters: tuple[str, ...]  # all of them
    originals: tuple[str, ...]  # those whose value before is kept
    asides: tuple[str, ...]  # those that backward reads and no gradient flows to
    read: tuple[str, ...]  # parameters of which tangents read what they were before the call


@dataclass(frozen=True)
class Recording:
    """The kernel that records a node of the operator's own and computes its tangents."""

    node: NodePlan
    owns_node: bool  # its class is generated with this operator
    tensors: tuple[str, ...]  # parameters that hold tensors; no new result may be one of them
    may_share: bool  # new results may share memory with arguments, as a tag says
    has_aliases: bool  # the operator writes to arguments, or returns views of them
    results: tuple[ResultPlan, ...]
    edges: tuple[tuple[str, EdgeTo], ...]  # parameters that the node's gradients are of
    watched: tuple[str, ...]  # recorded only if one of these parameters requires grad
    saves: tuple[SaveStep, ...]  # before the kernel runs
    saves_after: tuple[SaveStep, ...]
    tangents: tuple[TangentPlan, ...]
    refused: Refused
    overwritten: Overwritten
    calls: tuple[str, ...]  # functions of the library's own C++ API that it calls

    @property
    def evaluates(self) -> bool:
        """Whether the kernel holds expressions of derivatives.yaml."""
        return bool(self.tangents) or any(result.condition for result in self.results)


class Unrecorded(enum.Enum):
    """A kernel that is there once for all operators."""

    NOT_IMPLEMENTED = "names the operator on backward"
    IGNORED = "runs the operator without recording anything"


# What stands on an autograd key: a form differentiates through the operators that it is made of.
Autograd = Recording | Unrecorded | DeclaredForm
AUTOGRAD = "Autograd"  # the key of all devices
