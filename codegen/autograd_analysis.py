# SPDX-License-Identifier: BSD-3-Clause
"""How each operator differentiates: by a node, through its parts, or not at all.

Matches derivatives to operators and names the nodes, as upstream does (load_derivatives.py).
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable

from . import type_table
from .errors import Errors, did_you_mean
from .model import Derivative, Operator
from .node_analysis import NodeAnalysis
from .plan import AutogradPlan
from .schema import OperatorName, Return

_COMPOSITE_IMPLICIT = {"CompositeImplicitAutograd", "CompositeImplicitAutogradNestedTensor"}


class AutogradAnalysis:
    """The derivatives of a library, matched to its operators."""

    def __init__(
        self,
        namespace: str,
        operators: list[Operator],
        derivatives: Iterable[Derivative],
        errors: Errors,
    ) -> None:
        self.namespace, self.errors = namespace, errors
        by_name = {op.name: op for op in operators}
        self.derivatives: dict[OperatorName, Derivative] = {}
        self.nodes: dict[OperatorName, str] = {}
        counter: Counter[str] = Counter()
        for derivative in derivatives:
            name = OperatorName(derivative.name.name.base, derivative.name.name.overload)
            with errors.about(str(name)):
                operator = by_name.get(name)
                if operator is None:
                    if errors.concern(str(name)):
                        continue  # its entry could not be read
                    hint = did_you_mean(str(name), map(str, by_name))
                    errors.add(
                        derivative.location, f"derivative for unknown operator '{name}'", hint
                    )
                elif self._is_right_kind(derivative, operator):
                    self.derivatives[name] = derivative
                    prefix = node_prefix(name.base)
                    self.nodes[name] = f"{prefix}{counter[prefix]}"
                    counter[prefix] += 1

    def _is_right_kind(self, derivative: Derivative, operator: Operator) -> bool:
        """Whether the operator can have formulas and the entry names its very schema."""
        message = hint = None
        given = dataclasses.replace(derivative.name, name=operator.func.name)
        if str(given) != str(operator.func):
            message, hint = "the schema differs from the operator's", f"it is {operator.func}"
        elif is_composite_implicit(operator):
            message = f"'{operator.name}' is CompositeImplicitAutograd: its parts differentiate it"
            hint = (
                "give it a kernel for a device or CompositeExplicitAutograd, or drop the formulas"
            )
        elif operator.func.mutated or operator.func.is_view:
            what = "writes to its arguments" if operator.func.mutated else "returns a view"
            message = f"'{operator.name}' {what}; formulas are for functional operators"
        elif not operator.differentiable:
            message = f"'{operator.name}' has 'differentiable: False' and formulas"
        elif odd := [r for r in operator.func.returns if _is_odd_result(r)]:
            message = f"a result of type '{odd[0].type}' cannot have a formula"
        elif not type_table.has_signature(operator.func):
            message = f"'{operator.name}' has no C++ signature, so it cannot have formulas"
        elif others := [key for key, _ in derivative.dispatch if key != "Default"]:
            message = f"formulas for {others[0]} are not supported yet, only 'Default'"
        if message:
            self.errors.add(derivative.location, message, hint)
        return message is None

    def plan(self, operator: Operator) -> AutogradPlan:
        """What stands on the operator's autograd keys."""
        keys = {entry.key for entry in operator.dispatch or ()}
        if is_composite_implicit(operator) or operator.manual_kernel_registration:
            return AutogradPlan()
        tracks = bool(operator.func.mutated or operator.func.is_view)
        tracks = tracks and "ADInplaceOrView" not in keys
        if "Autograd" in keys:
            return AutogradPlan(tracks_aliases=tracks)
        derivative = self.derivatives.get(operator.name)
        if derivative is not None:
            name = self.nodes[operator.name]
            return NodeAnalysis(name, self.namespace, operator, derivative, self.errors).plan()
        takes = any(a.type.is_tensor_like for a in operator.func.arguments)
        gives = operator.func.mutated or any(r.type.is_tensor_like for r in operator.func.returns)
        loses = bool(gives and operator.differentiable)
        return AutogradPlan(
            is_not_implemented=takes and loses,
            is_ignored=takes and not loses,
            tracks_aliases=tracks,
        )


def is_composite_implicit(operator: Operator) -> bool:
    """Whether the operator differentiates through its parts, as upstream decides it."""
    if operator.structured or operator.structured_delegate or operator.origin:
        return False
    if operator.dispatch is None:
        return True
    keys = {entry.key for entry in operator.dispatch}
    return "CompositeImplicitAutograd" in keys and keys <= _COMPOSITE_IMPLICIT


def _is_odd_result(result: Return) -> bool:
    return result.type.is_tensor_like and result.type.plain not in ("Tensor", "Tensor[]")


def node_prefix(base: str) -> str:
    """`mul` is MulBackward, `rms_norm_backward` is RmsNormBackwardBackward."""
    camel = "".join(part.title() for part in base.split("_"))
    return f"{camel}Backward".replace("ForwardBackward", "Backward")
