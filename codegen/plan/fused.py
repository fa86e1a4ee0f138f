# SPDX-License-Identifier: BSD-3-Clause
"""The part of the Plan that is about operators whose kernels are expressions."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from ..cpp.signatures import Signature
from ..fused.dtypes import Dtype
from ..fused.tree import Tree
from .fused_rows import RowsPlan


@dataclass(frozen=True)
class FusedInput:
    """A tensor that an expression reads."""

    name: str  # of the argument
    tree: Tree  # what it is in the expressions: the argument, or a slice of it
    parameter: str
    is_optional: bool
    default: int | float  # what is computed with where it is missing


@dataclass(frozen=True)
class Place:
    """Where what is computed stands: in which result of the operator, as which of equal parts."""

    result: int
    index: int
    count: int


@dataclass(frozen=True)
class Shared:
    """A part of an expression that is the same for all elements."""

    tree: Tree
    is_integer: bool  # it is computed of integers alone, and exactly
    may_be_complex: bool = False  # by a Scalar


@dataclass(frozen=True)
class Step:
    """A part of an expression that has a statement; result: the only one that has it, of several
    that may not be wanted."""

    tree: Tree
    result: int | None


@dataclass(frozen=True)
class IsReal:
    """When a part is real: where these tensors, and numbers that are computed before any element,
    are, and of choices that are known once a call what is chosen: a condition, and when what it
    holds for is real, and the other."""

    leaves: frozenset[Tree] = frozenset()
    choices: tuple[tuple[Tree, IsReal, IsReal], ...] = ()


class Runs(enum.Enum):
    """What a function that is generated for a dispatch key does with an expression."""

    META = "gives the results' sizes, strides and dtypes"
    LOOP = "runs the loop of a device"
    COMPOSITE = "calls ATen's operators"
    AUTOGRAD = "does that where somebody differentiates, and calls below otherwise"
    STRUCTURED_META = "sets up the iterator"
    STRUCTURED_LOOP = "runs the loop of a device over the iterator"


@dataclass(frozen=True)
class FusedFunction:
    """A function that is defined for an expression."""

    name: str  # qualified
    key: str
    runs: Runs
    signature: Signature


@dataclass(frozen=True)
class FusedPlan:
    """An expression for each result of an operator, and the functions that compute them."""

    struct: str
    inputs: tuple[FusedInput, ...]
    scalars: tuple[tuple[str, str], ...]  # numbers: names in the expressions, and parameters
    numbers: tuple[Shared, ...]  # what is computed of these alone, once a call
    conditions: tuple[Shared, ...]
    results: tuple[Tree, ...]  # what is computed
    places: tuple[Place, ...]  # of these
    steps: tuple[Step, ...]  # each behind those that it needs
    known: frozenset[Tree]  # the conditions that are the same for all elements
    dtypes: tuple[Dtype, ...]  # of these
    common: Dtype  # in which all are computed
    compared: tuple[Dtype, ...]  # in which numbers are compared, where that is another
    range: tuple[int, int]  # the least and the largest integer that is written out
    exponents: tuple[int, ...]  # which of the numbers are those of powers
    has_negative_power: bool  # by an exponent that is written out
    computes_numbers: bool  # a result is computed of numbers that tensors only choose
    types: tuple[str, ...]  # the dtypes that it is computed in, names of c10
    real_parts: Mapping[Tree, IsReal]  # calls that may be of real numbers where others are complex
    mask: str | None  # the parameter that says which results are wanted
    functions: tuple[FusedFunction, ...]
    may_be_numbers: frozenset[Tree]  # rows that are one number where a tensor is missing
    row: int | None  # an input that is there, and a row, such as these are made
    rows: RowsPlan | None  # None: elements are computed one by one

    @property
    def takes_complex(self) -> bool:
        """Whether numbers may be complex."""
        return any(name.startswith("Complex") for name in self.types)
