# SPDX-License-Identifier: BSD-3-Clause
"""The backward node of one derivatives entry: what it computes, and what it saves for that.

Rules are upstream's (load_derivatives.py, gen_autograd_functions.py).
"""

from __future__ import annotations

import dataclasses
from functools import cached_property

from ..cpp import names as cpp_names
from ..cpp import types as cpp_types
from ..errors import Errors
from ..formula.attributes import take_attributes
from ..formula.checks import GRADS, FormulaChecks
from ..formula.reading import read
from ..formula.scope import FormulaScope
from ..plan.autograd import EdgePlan, GradientPlan, NodePlan, SavedKind, SavedPlan, SourceLine
from ..schema.schema import Argument
from ..spec.model import NON_DIFFERENTIABLE, Derivative, Formula, Operator

# Names that a node and its function use themselves.
_USED = frozenset(
    "Gradients MaterializedGrads apply apply_with_saved check_elements compiled_args computed "
    "error explain_undefined i incoming is_list_of_gradients kept materialized mutex_ name needs "
    "outputs read_saved release_variables variable_list".split()
)
_KINDS = {
    "Tensor": SavedKind.TENSOR,
    "Tensor?": SavedKind.TENSOR,
    "Tensor[]": SavedKind.TENSORS,
    "Tensor?[]": SavedKind.OPTIONAL_TENSORS,
}


class NodeAnalysis:
    """Sorts and checks the formulas of one autograd key, then decides what is saved."""

    def __init__(
        self,
        namespace: str,
        operator: Operator,
        derivative: Derivative,
        formulas: tuple[Formula, ...],
        errors: Errors,
        written: tuple[Argument | None, ...],
    ) -> None:
        """written: for each result the argument that it is, of the operator or an in-place form."""
        self.namespace, self.errors, self.derivative = namespace, errors, derivative
        self.scope = FormulaScope(namespace, operator, derivative, formulas, errors)
        self.written = self._only_written(written)
        self.gradients: dict[str, Formula] = {}  # argument -> its formula
        self.backward: list[Formula] = []
        self.forward: list[Formula] = []
        checks = FormulaChecks(self.scope)
        checks.check_conditions()
        for formula in formulas:
            if not checks.check_targets(formula):
                continue
            if all(self.scope.is_result(name) for name in formula.names):
                self.forward.append(formula)
                continue
            checks.check_gradient(formula)
            self.gradients.update({n: formula for n in formula.names if n not in self.gradients})
            if formula.text != NON_DIFFERENTIABLE:
                self.backward.append(formula)
        if checks.check_usage(self.backward):
            checks.check_differentiable(self.backward)
        for formula in self.forward:
            each = self.scope.is_elementwise(formula.text) or self.is_foreach(formula)
            checks.check_tangent(formula, set(self.with_gradient), each)

    def _only_written(self, written: tuple[Argument | None, ...]) -> str | None:
        """The argument that the only differentiable result is, whose history the node becomes."""
        flow = [index for index, r in enumerate(self.scope.results) if r.is_differentiable]
        arg = written[flow[0]] if len(flow) == 1 else None
        is_tensor = arg is not None and arg.type.plain in ("Tensor", "Tensor?")
        return arg.name if is_tensor and arg.name in self.scope.arguments else None

    def is_foreach(self, formula: Formula) -> bool:
        """Whether a tangent is given per element of its lists because the gradients are."""
        each = any(self.scope.is_elementwise(gradient.text) for gradient in self.backward)
        return each and all(self.scope.by_result[name].is_list for name in formula.names)

    @cached_property
    def with_gradient(self) -> list[str]:
        """The arguments that have a gradient formula, in the order of the schema."""
        return [
            name
            for name in self.scope.arguments
            if name in self.gradients and self.gradients[name].text != NON_DIFFERENTIABLE
        ]

    @cached_property
    def _order(self) -> dict[str, int]:
        """The place of each argument and result among all."""
        return {name: index for index, name in enumerate(self.scope.types)}

    @cached_property
    def parameters(self) -> dict[str, str]:
        """What the kernel calls each argument."""
        return {name: cpp_names.parameter_name(name) for name in self.scope.arguments}

    @cached_property
    def non_differentiable(self) -> set[str]:
        """The arguments that are declared to have no gradient."""
        return {n for n, f in self.gradients.items() if f.text == NON_DIFFERENTIABLE}

    def saves(self, name: str) -> bool:
        """Whether a gradient needs an argument as it is, and not an attribute of it alone."""
        texts = [take_attributes(f.text, name, self.scope.types[name].plain, self.parameters)[0]
                 for f in self.backward]  # fmt: skip
        return any(name in read(text).names for text in texts)

    def node(self, name: str) -> NodePlan:
        """The node; meaningful only where no error was noted."""
        edges = self._edges()
        index = {edge.argument: i for i, edge in enumerate(edges)}
        guarded = not any(edge.is_list for edge in edges)
        saved: dict[str, SavedPlan] = {}
        gradients = []
        for formula in self.backward:
            targets = tuple(index[n] for n in formula.names if n in index)
            text, used = self._saved_by(formula.text, targets if guarded else ())
            for item in used:
                before = saved.setdefault(item.member, item)
                saved[item.member] = _joined(before, item)
                if (before.source, before.value) != (item.source, item.value):
                    what = f"two saved values would be called '{item.member}'"
                    hint = f"of '{before.source}' and of '{item.source}': rename an argument"
                    self.errors.add(formula.location, what, hint)
            gradients.append(self._gradient(targets, text, formula, used))
        if self.written is not None and self.written not in self.with_gradient:
            gradients.append(self._lost())
        zeros = self._zeros(saved) if self.derivative.materialize_grads else ()
        texts = [formula.text for formula in self.backward]
        return NodePlan(
            name,
            edges,
            tuple(_guard_where_useful(s, len(edges)) for s in saved.values()),
            tuple(gradients),
            tuple(sorted(set().union(*(read(text).members_of(self.namespace) for text in texts)))),
            any("retain_variables" in read(text).names for text in texts),
            self.derivative.location.file_line,
            zeros,
            () if zeros else self._undefined(texts),
        )

    def _zeros(self, saved: dict[str, SavedPlan]) -> tuple[str | None, ...]:
        """What is saved for zeros of each differentiable result; None where no formula needs it."""
        used = set().union(*(self.scope.grads_in(formula.text) for formula in self.backward))
        found: list[str | None] = []
        for index, result in enumerate(self.scope.flow):
            _, (item,) = self._saved_by(f"zeros_like({result.name})", ())
            found.append(item.member if index in used else None)
            if index in used:
                saved[item.member] = item
        return tuple(found)

    def _undefined(self, texts: list[str]) -> tuple[tuple[str, int | None], ...]:
        """The results whose gradients formulas name and may not be given; of a list, any of it."""
        flow = self.scope.flow
        if len(flow) < 2 and not any(result.is_list for result in flow):
            return ()
        used = set().union(*(self.scope.grads_in(text) for text in texts))
        if any(result.is_list for result in flow):
            return ((flow[0].name, None),) if used and len(flow) == 1 else ()
        return tuple((flow[index].name, index) for index in sorted(used))

    def _edges(self) -> tuple[EdgePlan, ...]:
        """Where the gradients go. What is written to comes first, with a gradient or without: where
        it is a view, torch takes the first one for that of the part of its base."""
        order = sorted(self.with_gradient, key=lambda name: name != self.written)
        if self.written is not None and self.written not in order:
            order.insert(0, self.written)
        return tuple(
            EdgePlan(
                a.name,
                cpp_names.parameter_name(a.name),
                a.type.name == "List",
                a.type.plain == "Tensor?",
            )
            for a in map(self.scope.arguments.__getitem__, order)
        )

    def _lost(self) -> GradientPlan:
        """Of the value that was there before: zeros, since for none the base would lose its own."""
        line = SourceLine(self.derivative.location.source.name, self.derivative.location.line)
        grads = (("grad", 0),)
        return GradientPlan((0,), "", line, grads, False, is_missing=True, is_lost=True)

    def _gradient(
        self, targets: tuple[int, ...], text: str, formula: Formula, saved: list[SavedPlan]
    ) -> GradientPlan:
        reading = read(text)
        lists = [item for item in saved if self.scope.types[item.source].name == "List"]
        names = reading.names
        grads = {n: i for n, i in self.scope.named_grads.items() if n in names}
        if "grad" in names:
            grads["grad"] = 0
        return GradientPlan(
            targets,
            reading.rooted(self.namespace),
            SourceLine(formula.location.source.name, formula.at(0).line),
            tuple(sorted(grads.items())),
            "grad_input_mask" in names,
            self.scope.is_elementwise(text),
            tuple((item.source, item.local) for item in lists if item.local in reading.by_element),
            text.startswith("not_implemented("),
        )

    def _saved_by(self, text: str, targets: tuple[int, ...]) -> tuple[str, list[SavedPlan]]:
        """The formula over locals, and what has to be saved for it."""
        found: list[SavedPlan] = []
        types = self.scope.types
        for name in sorted(types.keys() & set(read(text).words), key=self._order.__getitem__):
            plain = types[name].plain
            is_output = name not in self.scope.arguments
            text, attributes = take_attributes(text, name, plain, self.parameters)
            for item in attributes:
                if item.member in types:
                    what = f"the argument '{item.member}' has the name of a saved {item.value}"
                    self.errors.add(self.derivative.location, what.format(name))
                found.append(
                    SavedPlan(
                        item.member,
                        item.member,
                        SavedKind.VALUE,
                        name,
                        targets,
                        is_output,
                        item.member,
                        item.type,
                        item.value,
                    )
                )
            if name not in GRADS and name in read(text).names:
                local = f"{name}_value" if name in _USED else cpp_names.identifier(name)
                found.append(self._saved_whole(name, local, plain, _needed(text, name, targets)))
                text = read(text).renamed({name: local})
        return text, found

    def _saved_whole(
        self, name: str, local: str, plain: str, targets: tuple[int, ...]
    ) -> SavedPlan:
        """A tensor, list or plain value that the formula needs as it is."""
        is_output = name not in self.scope.arguments
        if plain in _KINDS:
            # A local must not hide a member.
            member = local + ("_saved_" if f"{local}_" in self.scope.arguments else "_")
            return SavedPlan(member, local, _KINDS[plain], name, targets, is_output, name)
        type_ = cpp_types.saved_type(self.scope.types[name]) or ""
        if not type_:
            what = f"a formula cannot use '{name}': a value of type '{plain}' cannot be saved"
            self.errors.add(self.derivative.location, what)
        value = cpp_types.SAVED_VALUE.format(type_)
        return SavedPlan(local, local, SavedKind.VALUE, name, (), is_output, name, type_, value)


def _needed(text: str, name: str, targets: tuple[int, ...]) -> tuple[int, ...]:
    """The gradients that a value is needed for: fewer than all of a formula's where each use is
    wrap_opt_if(name, grad_input_mask[i] || ...)."""
    wrapped = read(text).wrapped(name)
    if not targets or len(wrapped) < read(text).count(name):
        return targets
    indices = set().union(*wrapped)
    return tuple(targets[i] for i in sorted(indices) if i < len(targets))


def _joined(first: SavedPlan, second: SavedPlan) -> SavedPlan:
    """One member for two formulas: needed if the gradient of either is."""
    edges = tuple(sorted({*first.edges, *second.edges})) if first.edges and second.edges else ()
    return dataclasses.replace(first, edges=edges)


def _guard_where_useful(saved: SavedPlan, edge_count: int) -> SavedPlan:
    """No guard where every gradient needs the member, or where it is no tensor."""
    useful = saved.kind is not SavedKind.VALUE and 0 < len(saved.edges) < edge_count
    return saved if useful else dataclasses.replace(saved, edges=())
