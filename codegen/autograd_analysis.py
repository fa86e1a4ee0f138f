# SPDX-License-Identifier: BSD-3-Clause
"""How each operator differentiates: its node, what the node saves, or the not-implemented kernel.

The part of analysis that reads formulas. Rules and names are upstream's (load_derivatives.py).
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable

from . import type_table
from .errors import Errors, Location, did_you_mean
from .formula import free_names, grad_indices, rename, root_namespace, take_attributes
from .model import Derivative, Formula, Operator
from .plan import AutogradPlan, EdgePlan, GradientPlan, NodePlan, ResultPlan, SavedPlan
from .schema import Argument, OperatorName

NON_DIFFERENTIABLE = "non_differentiable"
_COMPOSITE_IMPLICIT = {"CompositeImplicitAutograd", "CompositeImplicitAutogradNestedTensor"}
_DIFFERENTIABLE_TYPES = ("Tensor", "Tensor?", "Tensor[]", "Tensor?[]")
_GRADS = ("grad", "grads", "grad_input_mask", "retain_variables")
# Names that a generated `apply` or autograd kernel uses itself.
_LOCALS = {"computed", "grad_inputs", "guard", "keys", "lock", "node", "ranges", "released_"}


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
        wanted = [(str(a.type), a.name) for a in operator.func.arguments]
        given = [(str(a.type), a.name) for a in derivative.name.arguments]
        if given != wanted:
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
            return _NodeAnalysis(self, operator, derivative).plan()
        takes = any(a.type.is_tensor_like for a in operator.func.arguments)
        gives = operator.func.mutated or any(r.type.is_tensor_like for r in operator.func.returns)
        loses = bool(takes and gives and operator.differentiable)
        return AutogradPlan(is_not_implemented=loses, tracks_aliases=tracks)


def is_composite_implicit(operator: Operator) -> bool:
    """Whether the operator differentiates through its parts, as upstream decides it."""
    if operator.structured or operator.structured_delegate or operator.origin:
        return False
    if operator.dispatch is None:
        return True
    keys = {entry.key for entry in operator.dispatch}
    return "CompositeImplicitAutograd" in keys and keys <= _COMPOSITE_IMPLICIT


def node_prefix(base: str) -> str:
    """`mul` is MulBackward, `rms_norm_backward` is RmsNormBackwardBackward."""
    camel = "".join(part.title() for part in base.split("_"))
    return f"{camel}Backward".replace("ForwardBackward", "Backward")


class _NodeAnalysis:
    """The node of one operator: checks every formula, then decides what is saved."""

    def __init__(self, all_: AutogradAnalysis, operator: Operator, derivative: Derivative) -> None:
        self.errors, self.namespace = all_.errors, all_.namespace
        self.operator, self.derivative = operator, derivative
        self.func = operator.func
        self.node_name = all_.nodes[operator.name]
        self.arguments = {a.name: a for a in self.func.arguments}
        self.results = self._results()
        self.result_names = {r.name for r in self.results}
        self.named_grads = self._named_grads()
        self.gradients: dict[str, Formula] = {}  # argument -> its formula
        self.backward: list[Formula] = []
        self._sort_formulas()

    def plan(self) -> AutogradPlan:
        """The plan; meaningful only where no error was noted."""
        tensors = [a for a in self.func.arguments if a.type.plain in _DIFFERENTIABLE_TYPES]
        order = [a for a in tensors if self._has_gradient(a.name)]
        declared = {n for n, f in self.gradients.items() if f.text == NON_DIFFERENTIABLE}
        undeclared = [a for a in tensors if a.name not in self.gradients]
        differentiable = [a for a in tensors if a.name not in declared]
        results = self.results
        if not order or not any(r.is_differentiable for r in results):
            return AutogradPlan()
        return AutogradPlan(
            node=self._node(order),
            differentiable=_names(differentiable),
            without_formula=_names(undeclared),
            results=results,
        )

    def _has_gradient(self, name: str) -> bool:
        formula = self.gradients.get(name)
        return formula is not None and formula.text != NON_DIFFERENTIABLE

    def _results(self) -> tuple[ResultPlan, ...]:
        """Name, type and differentiability of each result; names as upstream gives them."""
        flags = self.derivative.output_differentiability
        returns = self.func.returns
        if flags is not None and len(flags) != len(returns):
            message = (
                f"'output_differentiability' has {len(flags)} items for {len(returns)} results"
            )
            self.errors.add(self.derivative.location, message)
            flags = None
        found = []
        for index, result in enumerate(returns):
            name = result.name or ("result" if len(returns) == 1 else f"result{index}")
            if name in self.arguments:
                name += "_return"
            flag = flags[index] if flags else "True"
            condition = None if flag in ("True", "False") else flag
            differentiable = flag != "False" and result.type.is_tensor_like
            type_ = type_table.return_type([result]) or "at::Tensor"
            found.append(ResultPlan(name, type_, differentiable, condition))
        return tuple(found)

    def _named_grads(self) -> dict[str, int]:
        """`grad_<result>` to the index of the incoming gradient."""
        flow = [r for r in self.results if r.is_differentiable]
        return {f"grad_{r.name}": i for i, r in enumerate(flow)}

    def _sort_formulas(self) -> None:
        """Gradients by argument; tangents (of results) are left for forward mode."""
        for formula in self.derivative.formulas:
            names = formula.names
            places = dict(zip(names, formula.name_locations))
            if names and all(self._is_result(n) for n in names):
                continue
            for name in names:
                self._check_target(name, places.get(name, formula.location))
            if all(n in self.arguments for n in names):
                self._check_text(formula)
                self.gradients.update({n: formula for n in names if n not in self.gradients})
                if formula.text != NON_DIFFERENTIABLE:
                    self.backward.append(formula)

    def _is_result(self, name: str) -> bool:
        return name in self.result_names and name not in self.arguments

    def _check_target(self, name: str, place: Location) -> None:
        arg = self.arguments.get(name)
        if arg is None:
            known = [*self.arguments, *(n for n in self.result_names)]
            hint = did_you_mean(name, known, "arguments and results")
            what = f"'{name}' is neither an argument nor a result of '{self.operator.name}'"
            self.errors.add(place, what, hint)
        elif arg.type.plain not in _DIFFERENTIABLE_TYPES:
            what = f"gradient for '{name}', which is of type '{arg.type.bare()}', not a tensor"
            self.errors.add(place, what)
        elif name in self.gradients:
            self.errors.add(place, f"gradient for '{name}' stands twice")
        elif name in _GRADS:
            self.errors.add(place, f"an argument with formulas cannot be called '{name}'")

    def _check_text(self, formula: Formula) -> None:
        """Identifiers that look like a misspelled argument, and gradients that do not exist."""
        flow = len(self.named_grads)
        for index, offset in grad_indices(formula.text):
            if index >= flow:
                what = f"'grads[{index}]' but the operator has {flow} differentiable results"
                self.errors.add(formula.at(offset), what)
        if formula.text == NON_DIFFERENTIABLE:
            return
        known = {*self.arguments, *self.result_names, *self.named_grads, *_GRADS}
        for name in free_names(formula.text):
            if name.text in known or name.text in _CPP_NAMES or len(name.text) < 3:
                continue
            hint = did_you_mean(name.text, known)
            if hint is not None:
                self.errors.add(formula.at(name.offset), f"formula names no '{name.text}'", hint)

    def _node(self, order: list[Argument]) -> NodePlan:
        edges = tuple(
            EdgePlan(a.name, a.type.name == "List", a.type.plain == "Tensor?") for a in order
        )
        index = {edge.argument: i for i, edge in enumerate(edges)}
        guarded = not any(edge.is_list for edge in edges)
        saved: dict[str, SavedPlan] = {}
        gradients = []
        for formula in self.backward:
            targets = tuple(index[n] for n in formula.names if n in index)
            text, used = self._saved_by(formula.text, targets if guarded else ())
            for item in used:
                before = saved.get(item.member)
                saved[item.member] = _joined(before, item) if before else item
            gradients.append(self._gradient(targets, text))
        plans = tuple(_guard_where_useful(s, len(edges)) for s in saved.values())
        lines = self.derivative.location.file_line
        return NodePlan(self.node_name, edges, plans, tuple(gradients), lines)

    def _gradient(self, targets: tuple[int, ...], text: str) -> GradientPlan:
        names = {n.text for n in free_names(text)}
        grads = {n: i for n, i in self.named_grads.items() if n in names}
        if "grad" in names:
            grads["grad"] = 0
        mask = "grad_input_mask" in names
        expression = root_namespace(text, self.namespace)
        return GradientPlan(targets, expression, tuple(sorted(grads.items())), mask)

    def _saved_by(self, text: str, targets: tuple[int, ...]) -> tuple[str, list[SavedPlan]]:
        """The formula over locals, and what has to be saved for it."""
        found: list[SavedPlan] = []
        outputs = {r.name: r for r in self.results}
        for name in [*self.arguments, *outputs]:
            is_output = name not in self.arguments
            plain = outputs[name].type if is_output else self.arguments[name].type.plain
            local = f"{name}_value" if name in _LOCALS else type_table.identifier(name)
            if plain in ("Tensor", "at::Tensor"):
                text, attributes = take_attributes(text, name)
                for item in attributes:
                    plan = SavedPlan(
                        item.member, item.member, item.type, item.value, None, targets, is_output
                    )
                    found.append(plan)
            if any(n.text == name for n in free_names(text)):
                found.append(self._saved_whole(name, local, plain, targets, is_output))
                text = rename(text, {name: local})
        return text, found

    def _saved_whole(
        self, name: str, local: str, plain: str, targets: tuple[int, ...], is_output: bool
    ) -> SavedPlan:
        """A tensor, list or plain value that the formula needs as it is."""
        member = f"{name}_"
        if is_output:
            kind = "Tensor[]" if "vector" in plain else "Tensor"
            type_ = "torch::autograd::SavedVariable"
            if kind == "Tensor[]":
                type_ = f"::std::vector<{type_}>"
            return SavedPlan(
                member, local, type_, f"torchext::save({local}, /*is_output=*/true)",
                f"torchext::unpack({member}, *this)", targets, True, _release(kind),
            )  # fmt: skip
        arg = self.arguments[name]
        type_ = type_table.saved_type(arg.type)
        if type_ is None:
            what = f"a formula cannot use '{name}': a value of type '{plain}' cannot be saved"
            self.errors.add(self.derivative.location, what)
            type_ = ""
        unpack = _UNPACK.get(plain)
        if unpack is None:
            value = f"torchext::save_value<{type_}>({type_table.identifier(name)})"
            return SavedPlan(local, local, type_, value, None, ())
        return SavedPlan(
            member, local, type_, f"torchext::save({type_table.identifier(name)})",
            f"torchext::{unpack}({member})", targets, False, _release(plain),
        )  # fmt: skip


_UNPACK = {
    "Tensor": "unpack",
    "Tensor?": "unpack_optional",
    "Tensor[]": "unpack",
    "Tensor?[]": "unpack_optional",
}
# Names of C++ and ATen that formulas use as values; never misspelled arguments.
_CPP_NAMES = frozenset(
    "true false nullptr at c10 std auto const if else return int64_t double bool Tensor "
    "TensorList Scalar M_PI INFINITY NAN".split()
)


def _release(plain: str) -> str:
    return "clear" if plain.endswith("[]") else "reset_data"


def _names(arguments: Iterable[Argument]) -> tuple[str, ...]:
    return tuple(type_table.identifier(a.name) for a in arguments)


def _joined(first: SavedPlan, second: SavedPlan) -> SavedPlan:
    """One member for two formulas: needed if the gradient of either is."""
    edges = tuple(sorted({*first.edges, *second.edges})) if first.edges and second.edges else ()
    return _with_edges(first, edges)


def _guard_where_useful(saved: SavedPlan, edge_count: int) -> SavedPlan:
    """No guard where every gradient needs the member, or where it is only a number."""
    useful = saved.unpack is not None and 0 < len(saved.edges) < edge_count
    return saved if useful else _with_edges(saved, ())


def _with_edges(saved: SavedPlan, edges: tuple[int, ...]) -> SavedPlan:
    return dataclasses.replace(saved, edges=edges)
