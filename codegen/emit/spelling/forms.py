# SPDX-License-Identifier: BSD-3-Clause
"""The text of a kernel that calls other forms of its operator: a function of one of torchext's
headers, and the names that it is given."""

from __future__ import annotations

from ...plan.calls import DeclaredForm, TracedView
from ...schema.schema import OperatorName


def form_text(namespace: str, form: DeclaredForm) -> str:
    """A kernel that calls one other form."""
    return f"{form.function}({_names(namespace, form.target)})"


def traced_view_text(namespace: str, view: TracedView) -> str:
    """A kernel that traces a view, by the operators that stand beside it."""
    names = ", ".join(_names(namespace, n) for n in (view.view, view.scatter, view.copy))
    return f"{view.function}({{{names}}})"


def _names(namespace: str, name: OperatorName) -> str:
    return f'"{namespace}::{name.base}", "{name.overload}"'
