# SPDX-License-Identifier: BSD-3-Clause
"""The part of the Plan that is about calls: what kernels are given and return, and which form of an
operator calls another."""

from __future__ import annotations

from dataclasses import dataclass

from .schema import OperatorName


@dataclass(frozen=True)
class LaidOut:
    """An argument that a kernel is given in a layout of `layout:`."""

    parameter: str
    layout: str  # a value of torchext::StridesOf
    is_written: bool = False

    @property
    def name(self) -> str:
        """What the kernel is given."""
        return f"{self.parameter}_laid_out"


@dataclass(frozen=True)
class Returned:
    """What a wrapper returns after its kernel has run."""

    expression: str
    result: str | None  # what it calls the kernel's own result; None where it does not read it


ON_COPIES = "functionalized_on_copies_by"


@dataclass(frozen=True)
class DeclaredForm:
    """How a form of an operator calls another one: a function of a header of torchext's, and the
    other form's name."""

    function: str
    target: OperatorName
    header: str = "declared_forms"


@dataclass(frozen=True)
class TracedView:
    """How a call that makes a view is traced: a function of torchext/functional_views.h, and the
    names that it is given."""

    function: str
    view: OperatorName  # the operator that returns it
    scatter: OperatorName  # the operator that writes to it
    copy: OperatorName  # the operator that copies it
