# SPDX-License-Identifier: BSD-3-Clause
"""The backward node of one operator: checks its formulas, decides what is saved for each gradient.

Rules are upstream's (load_derivatives.py).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from . import type_table
from .errors import Errors, Location, did_you_mean
from .formula import (
    calls_of,
    free_names,
    grad_indices,
    rename,
    root_namespace,
    take_attributes,
    why_no_expression,
)
from .model import Derivative, Formula, Operator
from .plan import AutogradPlan, EdgePlan, GradientPlan, NodePlan, ResultPlan, SavedPlan, Tensors
from .schema import Argument

NON_DIFFERENTIABLE = "non_differentiable"
_DIFFERENTIABLE_TYPES = ("Tensor", "Tensor?", "Tensor[]", "Tensor?[]")
_GRADS = ("grad", "grads", "grad_input_mask", "retain_variables")
# Names that a node uses itself.
_USED = frozenset(
    "GradRanges any_defined apply check_not_released computed grad_inputs lock mutex mutex_ name "
    "needs ranges release_variables released released_ store unpack unpack_optional".split()
)


class NodeAnalysis:
    """The node called `name` of one operator: checks every formula, then decides what is saved."""

    def __init__(
        self, name: str, namespace: str, operator: Operator, derivative: Derivative, errors: Errors
    ) -> None:
        self.node_name, self.namespace, self.errors = name, namespace, errors
        self.operator, self.derivative = operator, derivative
        self.func = operator.func
        self.arguments = {a.name: a for a in self.func.arguments}
        self.results = self._results()
        self.result_names = {r.name for r in self.results}
        self.named_grads = self._named_grads()
        self.gradients: dict[str, Formula] = {}  # argument -> its formula
        self.backward: list[Formula] = []
        self._sort_formulas()

    def plan(self) -> AutogradPlan:
        """The plan; meaningful only where no error was noted."""
        tensors = [a for a in self.func.arguments if a.type.is_tensor_like]
        order = [a for a in tensors if self._has_gradient(a.name)]
        declared = {n for n, f in self.gradients.items() if f.text == NON_DIFFERENTIABLE}
        undeclared = [a for a in tensors if a.name not in self.gradients]
        differentiable = [a for a in tensors if a.name not in declared]
        results = self.results
        if not order or not any(r.is_differentiable for r in results):
            loses = bool(undeclared and any(r.is_differentiable for r in results))
            return AutogradPlan(is_not_implemented=loses, is_ignored=not loses)
        return AutogradPlan(
            node=self._node(order),
            tensors=tuple(type_table.parameter_name(a.name) for a in tensors),
            differentiable=_tensors(differentiable),
            without_formula=_tensors(undeclared),
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
            condition = None if flag in ("True", "False") else self._in_kernel(flag)
            differentiable = flag != "False" and result.type.is_tensor_like
            type_ = type_table.return_type([result]) or "at::Tensor"
            local = type_table.parameter_name(name)
            found.append(ResultPlan(name, local, type_, differentiable, condition))
        return tuple(found)

    def _in_kernel(self, text: str) -> str:
        """An expression over arguments, as the autograd kernel spells them."""
        return rename(text, {name: type_table.parameter_name(name) for name in self.arguments})

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
            if name in known:
                what, hint = "one formula cannot give gradients and tangents", "split the entry"
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
        if (why := why_no_expression(formula.text)) is not None:
            self.errors.add(formula.location, f"the formula is no C++ expression: {why}")
        flow = len(self.named_grads)
        if any(r.is_differentiable and "vector" in r.type for r in self.results):
            self._check_list_grads(formula)
            return
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

    def _check_list_grads(self, formula: Formula) -> None:
        """A list result has one gradient per element, so that only all of them have a name."""
        names = {n.text for n in free_names(formula.text)} - {"grads"}
        if grad_indices(formula.text) or names & {"grad", *self.named_grads}:
            what = f"'{self.operator.name}' returns a list: a formula gets its gradients as 'grads'"
            self.errors.add(formula.location, what, "grads[i] is that of the i-th element")

    def _node(self, order: list[Argument]) -> NodePlan:
        edges = tuple(
            EdgePlan(
                a.name,
                type_table.parameter_name(a.name),
                a.type.name == "List",
                a.type.plain == "Tensor?",
            )
            for a in order
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
        used = [calls_of(formula.text, self.namespace) for formula in self.backward]
        calls = tuple(sorted(set().union(*used)))
        lines = self.derivative.location.file_line
        return NodePlan(self.node_name, edges, plans, tuple(gradients), calls, lines)

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
            parameter = type_table.parameter_name(name)
            local = f"{name}_value" if name in _USED or name != parameter else name
            if plain in ("Tensor", "at::Tensor"):
                text, attributes = take_attributes(text, name, parameter)
                for item in attributes:
                    if item.member in self.arguments:
                        what = f"the argument '{item.member}' has the name of a saved {item.value}"
                        self.errors.add(self.derivative.location, what)
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
        suffix = "_saved_" if f"{local}_" in self.arguments else "_"  # a local hides a member
        member, parameter = local + suffix, type_table.parameter_name(name)
        if is_output:
            kind = "Tensor[]" if "vector" in plain else "Tensor"
            type_ = "torch::autograd::SavedVariable"
            if kind == "Tensor[]":
                type_ = f"::std::vector<{type_}>"
            return SavedPlan(
                member, local, type_, f"torchext::save({parameter}, /*is_output=*/true)",
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
            value = f"torchext::save_value<{type_}>({parameter})"
            return SavedPlan(local, local, type_, value, None, ())
        return SavedPlan(
            member, local, type_, f"torchext::save({parameter})",
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


def _tensors(arguments: Iterable[Argument]) -> tuple[Tensors, ...]:
    return tuple(Tensors(a.name, type_table.parameter_name(a.name)) for a in arguments)


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
