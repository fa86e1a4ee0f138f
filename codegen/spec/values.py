# SPDX-License-Identifier: BSD-3-Clause
"""The values of an operator's keys that are more than text, each with its place in the file."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from ..errors import Location


@dataclass(frozen=True)
class DispatchEntry:
    """One dispatch key of a `dispatch:` map and the kernel named for it."""

    key: str
    kernel: str  # a function name, maybe with its namespace, or "cpu_fallback"
    location: Location

    @property
    def takes_symint(self) -> bool:
        """Whether the kernel's name says that sizes are SymInt to it."""
        return "_symint" in self.kernel.rpartition(":")[2]


@dataclass(frozen=True)
class Line:
    """Text of a spec that analysis reads further."""

    text: str
    location: Location
    # of text that is quoted, or stands on several lines: where a character of it does
    column_of: Any = dataclasses.field(default=None, compare=False, repr=False)

    def at(self, offset: int) -> Location:
        """Where the character with this offset stands."""
        if self.column_of is None:
            return self.location.after(offset)
        place: Location = self.column_of(offset)
        return place


@dataclass(frozen=True)
class Expression(Line):
    """An expression of elements."""


@dataclass(frozen=True)
class Check(Line):
    """A condition of `meta:`, and what is said where it does not hold; None for the usual words."""

    message: str | None = None


@dataclass(frozen=True)
class Loop:
    """`for x in inputs`: of which value there is a tensor of a list for each of these."""

    name: str
    values: Line


@dataclass(frozen=True)
class ResultRule:
    """What `meta:` says of one result, or of each tensor of a list."""

    location: Location
    name: str | None  # None: the only one
    like: Line | None = None
    size: Line | None = None
    dtype: Line | None = None
    strides: Line | None = None
    when: Line | None = None
    loop: Loop | None = None
    is_whole: bool = True  # all that stands there could be read


# The functions of TensorIterator that set up the result of an operator, and of how many tensors.
ITERATOR_RULES = {
    "unary": 1, "unary_float": 1, "unary_force_boolean": 1, "binary": 2, "binary_float": 2,
    "comparison": 2, "ternary": 3,
}  # fmt: skip


@dataclass(frozen=True)
class MetaRule:
    """`meta:`, the shape rule of an operator."""

    location: Location
    results: tuple[ResultRule, ...]  # none: it only checks
    checks: tuple[Check, ...] = ()
    iterator: str | None = None  # one of ITERATOR_RULES, of a structured operator


@dataclass(frozen=True)
class DtypeRule:
    """Which dtypes `dtypes:` allows, for one argument or all, on one dispatch key or all."""

    location: Location
    dtypes: tuple[str, ...]  # names of c10
    key: str | None = None
    argument: str | None = None


@dataclass(frozen=True)
class Value:
    """A value of a sample: a text, a list, or a map."""

    location: Location
    text: str | None = None
    is_quoted: bool = False
    items: tuple[Value, ...] | None = None
    entries: tuple[tuple[str, Value], ...] | None = None


@dataclass(frozen=True)
class Sample:
    """One set of arguments of `samples:`."""

    location: Location
    arguments: tuple[tuple[Line, Value], ...]
