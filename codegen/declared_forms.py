# SPDX-License-Identifier: BSD-3-Clause
"""Which form of an operator stands in for another: for those that `autogen:` declares, and for the
in-place and out= forms of a call that is traced or batched."""

from __future__ import annotations

from collections.abc import Iterable

from .model import Operator
from .plan import DeclaredForm
from .schema import OperatorName
from .variants import form_tag, functional_signature


class Forms:
    """The functional forms of a library, by what they have in common with the others."""

    def __init__(self, operators: Iterable[Operator]) -> None:
        self.functional: dict[str, OperatorName] = {}
        self._by_arguments: dict[str, OperatorName] = {}
        for operator in operators:
            if not operator.func.mutated:
                signature = functional_signature(operator.func)
                self.functional.setdefault(signature, operator.name)
                self._by_arguments.setdefault(signature.rpartition(" -> ")[0], operator.name)

    def declared(self, operator: Operator) -> DeclaredForm | None:
        """What runs a form that `autogen:` declares and no rule fills; None where nothing does."""
        origin = operator.origin
        if origin is None:
            return None
        if operator.func.is_out:
            # What an entry writes beside its results, its out= form writes too.
            is_inplace = form_tag(origin.func) == "inplace"
            found = self.functional_of(operator) if is_inplace else None
            return DeclaredForm("out_form_of", found or origin.name)
        if origin.func.is_out:
            return None  # nothing says which dtype a new result has
        return DeclaredForm("functional_form_of", origin.name)

    def traced(self, operator: Operator) -> OperatorName | None:
        """The functional form that a traced call of an in-place or out= form becomes."""
        return None if form_tag(operator.func) is None else self._unless(operator, "Functionalize")

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
        """The functional form of an operator, whose results are what this one writes; that of one
        that returns nothing too."""
        returns = operator.func.returns
        if any(not r.type.is_write for r in returns):
            return None
        found = self.functional_of(operator)
        if found or not operator.func.mutated or returns:
            return found
        return self._by_arguments.get(functional_signature(operator.func).rpartition(" -> ")[0])

    def functional_of(self, operator: Operator) -> OperatorName | None:
        """The functional form of an operator; None where it has none, or is it."""
        if not operator.func.mutated:
            return None
        origin = operator.origin
        if origin is not None and not origin.func.mutated:
            return origin.name
        return self.functional.get(functional_signature(operator.func))
