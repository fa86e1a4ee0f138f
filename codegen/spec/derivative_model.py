# SPDX-License-Identifier: BSD-3-Clause
"""One frozen record per entry of derivatives.yaml: that part of the language."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from ..errors import Location
from ..schema.schema import Schema
from .keys import key
from .values import Line

NON_DIFFERENTIABLE = "non_differentiable"  # a formula that says that there is no gradient


@dataclass(frozen=True)
class Formula:
    """One line of a derivatives entry: `names: text`."""

    names: tuple[str, ...]  # arguments whose gradient it is, or results whose tangent it is
    text: str
    location: Location
    name_locations: tuple[Location, ...] = ()
    column_of: Any = dataclasses.field(default=None, compare=False, repr=False)

    def at(self, offset: int) -> Location:
        """Where the character with this offset of `text` stands."""
        return self.column_of(offset) if self.column_of else self.location


@dataclass(frozen=True)
class Flag:
    """Whether one result can require grad: `True`, `False`, or a condition in C++."""

    text: str
    location: Location

    @property
    def is_condition(self) -> bool:
        """Whether it depends on the arguments."""
        return self.text not in ("True", "False")


@dataclass(frozen=True)
class Derivative:
    """One entry of derivatives.yaml."""

    location: Location
    name: Schema = key(
        "The schema of the operator that the formulas belong to, as in native_functions.yaml.",
        "schema",
    )
    output_differentiability: tuple[Flag, ...] | None = key(
        "For each result whether it can require grad: True, False, or a condition in C++.",
        "list",
        None,
    )
    materialize_grads: bool = key(
        "True: a gradient that nobody gave, since no use of a result led to what was "
        "differentiated, is zeros of that result's sizes, as for torch.autograd.Function. Without "
        "the key it is an undefined tensor.",
        "flag", False, is_extension=True,
    )  # fmt: skip
    dispatch: tuple[tuple[str, tuple[Formula, ...]], ...] = key(
        "Formulas per autograd key: `Default:` and others, each with formulas of its own. An entry "
        "without the key has Default formulas only.",
        "map",
        (),
    )
    headers: tuple[Line, ...] = key(
        "Headers on the include path, whose C++ functions the formulas of the file may call; in an "
        "entry of its own: `- headers: NS/formulas.h`.",
        "list", (), is_extension=True,
    )  # fmt: skip

    @property
    def formulas(self) -> tuple[Formula, ...]:
        """The formulas of the Autograd key."""
        return dict(self.dispatch).get("Default", ())
