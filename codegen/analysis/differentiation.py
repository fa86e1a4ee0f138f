# SPDX-License-Identifier: BSD-3-Clause
"""How each operator differentiates: by a node, through its parts, or not at all.

Matches derivatives to operators and names the nodes, as upstream does (load_derivatives.py). An
in-place form without an entry of its own differentiates by its functional form's.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable
from functools import cached_property

from ..cpp import types as cpp_types
from ..errors import Errors, did_you_mean
from ..plan.autograd import AUTOGRAD, Autograd, Recording, Unrecorded, Views
from ..plan.calls import DeclaredForm
from ..schema.schema import Argument, OperatorName, Return, Schema
from ..spec.model import NON_DIFFERENTIABLE, Beside, Derivative, Formula, Operator
from .functional_forms import FunctionalForms
from .nodes import NodeAnalysis
from .recording import kernel_plan

_COMPOSITE_IMPLICIT = {"CompositeImplicitAutograd", "CompositeImplicitAutogradNestedTensor"}
_DEFAULT = "Default"
# how autograd sees the views of what these kernels run
_VIEWS = {Unrecorded.NOT_IMPLEMENTED: Views.REFUSED, Unrecorded.IGNORED: Views.IGNORED}


class AutogradAnalysis:
    """The derivatives of a library, matched to its operators."""

    def __init__(
        self,
        namespace: str,
        operators: list[Operator],
        derivatives: Iterable[Derivative],
        forms: FunctionalForms,
        errors: Errors,
    ) -> None:
        self.namespace, self.forms, self.errors = namespace, forms, errors
        self.by_name = {op.name: op for op in operators}
        self.derivatives: dict[OperatorName, Derivative] = {}
        self.nodes: dict[tuple[OperatorName, str], str] = {}
        self.entries: dict[tuple[OperatorName, str], NodeAnalysis] = {}
        counter: Counter[str] = Counter()
        for derivative in derivatives:
            name = OperatorName(derivative.name.name.base, derivative.name.name.overload)
            with errors.about(str(name)):
                operator = self.by_name.get(name)
                if operator is None:
                    if errors.misses_operators or errors.concern(str(name)):
                        continue  # its entry could not be read
                    hint = did_you_mean(str(name), map(str, self.by_name))
                    errors.add(
                        derivative.location, f"derivative for unknown operator '{name}'", hint
                    )
                elif self._is_right_kind(derivative, operator):
                    self._take(derivative, operator, counter)

    def _take(self, derivative: Derivative, operator: Operator, counter: Counter[str]) -> None:
        """Note an entry, and name its nodes: upstream counts those that compute something."""
        name = operator.name
        self.derivatives[name] = derivative
        for key, formulas in derivative.dispatch:
            if _has_gradient(operator, formulas):
                prefix = node_prefix(name.base) + ("" if key == _DEFAULT else key)
                self.nodes[name, key] = f"{prefix}{counter[prefix]}"
                counter[prefix] += 1

    def _is_right_kind(self, derivative: Derivative, operator: Operator) -> bool:
        """Whether the operator can have formulas and the entry names its very schema."""
        message = hint = None
        func = operator.func
        keys = _keys(operator)
        given = dataclasses.replace(derivative.name, name=func.name)
        if str(given) != str(func):
            message, hint = "the schema differs from the operator's", f"it is {func}"
        elif (
            is_composite_implicit(operator)
            and not operator.manual_kernel_registration
            and any(_has_gradient(operator, formulas) for _, formulas in derivative.dispatch)
        ):
            message = f"'{operator.name}' is CompositeImplicitAutograd: its parts differentiate it"
            hint = (
                "give it a kernel for a device or CompositeExplicitAutograd, or drop the formulas"
            )
        elif own := [k for k, _ in derivative.dispatch if _autograd_key(k) in keys]:
            message = f"'{operator.name}' has a kernel on {_autograd_key(own[0])} and formulas"
        elif operator.manual_kernel_registration:
            message = f"'{operator.name}' has 'manual_kernel_registration' and formulas"
        elif func.is_out:
            message = f"'{operator.name}' is an out= form, which never differentiates"
            hint = "give the formulas to its functional form"
        elif func.is_view and func.mutated:
            message = f"'{operator.name}' writes to arguments and returns a view: it has no formula"
        elif operator.origin is not None and operator.origin.func.is_view:
            message = f"'{operator.name}' copies what '{operator.origin.name}' returns"
            hint = "give the formulas to that one, by which this one differentiates"
        elif not operator.differentiable:
            message = f"'{operator.name}' has 'differentiable: False' and formulas"
        elif twice := _returned_twice(func):
            message = f"two results are '{twice}'; only one of them could have its gradient"
            hint = "return it once"
        elif odd := [r for r in func.returns if _is_odd_result(r)]:
            message = f"a result of type '{odd[0].type}' cannot have a formula"
        elif not cpp_types.has_signature(func):
            message = f"'{operator.name}' has no C++ signature, so it cannot have formulas"
        if message:
            self.errors.add(derivative.location, message, hint)
        return message is None

    def kernels(self, operator: Operator) -> tuple[tuple[str, Autograd], ...]:
        """What stands on the operator's autograd keys, first on that of all devices."""
        kernel = self._kernel(operator)
        return ((AUTOGRAD, kernel), *self._by_key(operator)) if kernel else self._by_key(operator)

    def tracked(
        self, operator: Operator, kernels: tuple[tuple[str, Autograd], ...]
    ) -> Views | None:
        """How autograd sees what an operator with these kernels writes to or returns a view of;
        None where nothing is tracked, or what the operator is made of is."""
        kernel = dict(kernels).get(AUTOGRAD)
        is_by_others = _is_left_alone(operator) or isinstance(kernel, DeclaredForm)
        func = operator.func
        if is_by_others or not func.has_aliases or "ADInplaceOrView" in _keys(operator):
            return None
        if not func.is_view:
            return Views.NONE
        if isinstance(kernel, Unrecorded) and not is_recorded(kernels):
            return _VIEWS[kernel]
        return Views.DIFFERENTIABLE

    def _kernel(self, operator: Operator) -> Autograd | None:
        """What stands on the key Autograd; None: nothing, or the author's own kernel."""
        if _is_left_alone(operator) or AUTOGRAD in _keys(operator):
            return None
        if _is_made_of_others(operator):
            form = "scatter" if operator.beside is Beside.SCATTER else "view_copy"
            return DeclaredForm(f"{form}_by_parts", operator.origin.name, "view_forms")
        if self._differentiates_on_copies(operator):
            return DeclaredForm("functional_form_of", operator.origin.name)
        return self._by_formulas(operator, _DEFAULT) or _without_formulas(operator)

    def _by_key(self, operator: Operator) -> tuple[tuple[str, Autograd], ...]:
        """What stands on other autograd keys that have formulas of their own."""
        source = self._source(operator)
        if source is None:
            return ()
        keys = [key for key, _ in self.derivatives[source].dispatch if key != _DEFAULT]
        plans = ((key, self._by_formulas(operator, key)) for key in keys)
        return tuple((key, plan) for key, plan in plans if plan is not None)

    def saves_written(self, operator: Operator) -> bool:
        """Whether a node saves what an argument that is not returned holds after the call."""
        source = self._source(operator)
        aside = [a.name for a in operator.func.mutated if a not in operator.func.written_results]
        if source is None or not aside:
            return False
        with self.errors.about(str(operator.name)):
            entries = [self._entry(source, key) for key, _ in self.derivatives[source].dispatch]
        return any(entry.saves(name) for entry in entries for name in aside)

    def _differentiates_on_copies(self, operator: Operator) -> bool:
        """Whether it is a functional form without formulas, by one that writes and has some: what
        that records on copies is its derivative."""
        origin = operator.origin
        is_form = origin is not None and bool(origin.func.mutated) and not operator.func.mutated
        if not is_form or self._source(operator) is not None or not origin.differentiable:
            return False
        return self._source(origin) is not None or is_composite_implicit(origin)

    def _source(self, operator: Operator) -> OperatorName | None:
        """Whose entry differentiates an operator: its own, or that of its functional form."""
        if operator.name in self.derivatives:
            return operator.name
        func = operator.func
        if not func.name.is_inplace or func.is_out or not operator.differentiable:
            return None
        written = [r for r in func.returns if r.type.is_write]
        if is_composite_implicit(operator) or not written or written[0].type.name != "Tensor":
            return None
        found = self.forms.replacing(operator)
        return found.name if found and found.name in self.derivatives else None

    def _by_formulas(self, operator: Operator, key: str) -> Recording | Unrecorded | None:
        """The plan that the formulas of a key give; None where there are none for it."""
        source = self._source(operator)
        if source is None or key not in dict(self.derivatives[source].dispatch):
            return None
        return kernel_plan(
            self.namespace, operator, self._entry(source, key), self.nodes.get((source, key))
        )

    def _written_results(self, name: OperatorName) -> tuple[Argument | None, ...]:
        """The arguments that the results are of the operator or of an in-place form of it."""
        form = self._inplace_forms.get(name, self.by_name[name])
        return form.func.written_results

    @cached_property
    def _inplace_forms(self) -> dict[OperatorName, Operator]:
        """The in-place forms that have no entry, by those that differentiate them."""
        sources = ((op, self._source(op)) for op in self.by_name.values())
        return {source: op for op, source in sources if source is not None and source != op.name}

    def _entry(self, name: OperatorName, key: str) -> NodeAnalysis:
        """The analysis of an entry's formulas, made once: in-place forms share it."""
        if (name, key) not in self.entries:
            derivative = self.derivatives[name]
            formulas = dict(derivative.dispatch)[key]
            self.entries[name, key] = NodeAnalysis(
                self.namespace,
                self.by_name[name],
                derivative,
                formulas,
                self.errors,
                self._written_results(name),
            )
        return self.entries[name, key]


def is_recorded(kernels: tuple[tuple[str, Autograd], ...]) -> bool:
    """Whether one of the kernels on autograd keys records: a formula may be one device's."""
    return any(isinstance(kernel, Recording) for _, kernel in kernels)


def is_ignored(kernels: tuple[tuple[str, Autograd], ...]) -> bool:
    """Whether the results require no grad, whatever the arguments do, on any device."""
    return (AUTOGRAD, Unrecorded.IGNORED) in kernels and not is_recorded(kernels)


def is_composite_implicit(operator: Operator) -> bool:
    """Whether the operator differentiates through its parts, as upstream decides it."""
    if operator.structured or operator.structured_delegate or operator.origin:
        return False
    if operator.dispatch is None:
        return True
    keys = _keys(operator)
    return "CompositeImplicitAutograd" in keys and keys <= _COMPOSITE_IMPLICIT


def _without_formulas(operator: Operator) -> Unrecorded | None:
    """The kernel of an operator that no entry differentiates."""
    func = operator.func
    takes = any(a.type.is_tensor_like for a in func.arguments)
    gives = bool(func.mutated) or any(r.type.is_tensor_like for r in func.returns)
    if not takes:
        return None
    return Unrecorded.NOT_IMPLEMENTED if gives and operator.differentiable else Unrecorded.IGNORED


def _is_made_of_others(operator: Operator) -> bool:
    """Whether it copies a view, or writes to one: by operators that differentiate."""
    origin, func = operator.origin, operator.func
    return origin is not None and origin.func.is_view and not func.mutated


def _keys(operator: Operator) -> set[str]:
    """The dispatch keys that the entry has kernels for."""
    return {entry.key for entry in operator.dispatch or ()}


def _is_left_alone(operator: Operator) -> bool:
    """Whether nothing is to stand on its autograd keys."""
    return is_composite_implicit(operator) or operator.manual_kernel_registration


def _autograd_key(key: str) -> str:
    """The dispatch key that the formulas of a block stand on."""
    return AUTOGRAD if key == _DEFAULT else key


def _has_gradient(operator: Operator, formulas: tuple[Formula, ...]) -> bool:
    arguments = {a.name for a in operator.func.arguments}
    return any(arguments & set(f.names) and f.text != NON_DIFFERENTIABLE for f in formulas)


def _returned_twice(func: Schema) -> str | None:
    """The argument that is written to and is more than one result."""
    results = func.written_results
    return next((a.name for a in func.mutated if results.count(a) > 1), None)


def _is_odd_result(result: Return) -> bool:
    is_written = result.type.is_write and result.type.name != "Tensor"
    is_odd = is_written or result.type.plain not in ("Tensor", "Tensor[]")
    return result.type.is_tensor_like and is_odd


def node_prefix(base: str) -> str:
    """`mul` is MulBackward, `rms_norm_backward` is RmsNormBackwardBackward."""
    camel = "".join(part.title() for part in base.split("_"))
    return f"{camel}Backward".replace("ForwardBackward", "Backward")
