# SPDX-License-Identifier: BSD-3-Clause
"""Which form of an operator stands in for another: for those that `autogen:` declares, and for the
in-place and out= forms and views of a call that is traced or batched."""

from __future__ import annotations

from collections.abc import Iterable

from ..plan.calls import ON_COPIES, DeclaredForm, TracedView
from ..schema.forms import form_tag
from ..schema.schema import OperatorName
from ..spec.model import Beside, Operator
from .functional_forms import FunctionalForms, view_copies


class Forms:
    """What is called in place of the in-place and out= forms of a library."""

    def __init__(self, functional: FunctionalForms, operators: Iterable[Operator]) -> None:
        self._functional = functional
        operators = list(operators)
        self._beside = {(op.origin.name, op.beside): op.name for op in operators if op.beside}
        self._copies = view_copies(operators)

    def declared(self, operator: Operator) -> DeclaredForm | None:
        """What runs a form that `autogen:` declares and no rule fills; None where nothing does."""
        origin = operator.origin
        if origin is None:
            return None
        if operator.beside is Beside.SCATTER:
            return DeclaredForm("scatter_form_of", origin.name, "view_forms")
        if self._copies.get(origin.name) == operator.name:
            return DeclaredForm("view_copy_of", origin.name, "view_forms")
        if operator.func.is_out:
            # What an entry writes beside its results, its out= form writes too.
            is_inplace = form_tag(origin.func) == "inplace"
            found = self.functional_of(operator) if is_inplace else None
            return DeclaredForm("out_form_of", found or origin.name)
        if operator.func.mutated:
            return DeclaredForm("inplace_form_of", origin.name)
        if origin.func.is_out and operator.beside is not Beside.ON_COPIES:
            return None  # nothing says which dtype a new result has
        return DeclaredForm("functional_form_of", origin.name)

    def traced(self, operator: Operator) -> DeclaredForm | None:
        """What a traced call of an operator that writes to arguments becomes; None where torch
        traces it by itself. A form on copies stands for itself: it is asked whether its arguments
        share memory."""
        is_copied = operator.beside is Beside.ON_COPIES
        copied = operator.name if is_copied else self._beside.get((operator.name, Beside.ON_COPIES))
        if copied is not None:
            return DeclaredForm(ON_COPIES, copied, "functionalization")
        if form_tag(operator.func) is None or operator.is_inplace_view:
            return None
        form = self._unless(operator, "Functionalize")
        return DeclaredForm("functionalized_by", form, "functionalization") if form else None

    def traced_view(self, operator: Operator) -> TracedView | None:
        """How a call that returns a view, or makes one of its argument, is traced."""
        function, view = "functionalized_view", operator
        if operator.is_inplace_view:
            function, found = "functionalized_inplace_view", self._functional.replacing(operator)
            if found is None or self._unless(operator, "Functionalize") is None:
                return None
            view = found
        scatter = self._beside.get((view.name, Beside.SCATTER))
        if scatter is None:
            return None
        return TracedView(function, view.name, scatter, self._copies[view.name])

    def batched(self, operator: Operator) -> OperatorName | None:
        """The functional form that an out= form calls under vmap, whose fallback takes none."""
        keys = "FuncTorchBatched", "FuncTorchBatchedDecomposition"
        return self._unless(operator, *keys) if form_tag(operator.func) == "out" else None

    def _unless(self, operator: Operator, *keys: str) -> OperatorName | None:
        """The functional form, unless the entry itself says what a key runs."""
        has_own = any(entry.key in keys for entry in operator.dispatch or ())
        if has_own or operator.manual_kernel_registration:
            return None
        return self.functional_of(operator)

    def compared_with(self, operator: Operator) -> OperatorName | None:
        """The functional form of an operator, whose results are what this one writes."""
        if any(not result.type.is_write for result in operator.func.returns):
            return None
        return self.functional_of(operator)

    def functional_of(self, operator: Operator) -> OperatorName | None:
        """The functional form that returns what an operator writes; None where it has none."""
        found = self._functional.replacing(operator)
        return None if found is None else found.name
