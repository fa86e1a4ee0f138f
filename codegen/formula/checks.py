# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes in formulas that can be told without a C++ compiler.

The rules are upstream's (load_derivatives.py), each with a place in the spec.
"""

from __future__ import annotations

import re

from ..cpp.names import KEYWORDS
from ..errors import Location, did_you_mean
from ..spec.model import NON_DIFFERENTIABLE, Formula
from .expression import mistake, value_count
from .reading import Name, read
from .scope import DIFFERENTIABLE_TYPES, FormulaScope
from .tangents import words

GRADS = ("grad", "grads", "grad_input_mask", "retain_variables")
AUTO_LINEAR, AUTO_ELEMENT_WISE = "auto_linear", "auto_element_wise"
# Names of C++ and ATen that formulas use as values.
_CPP_NAMES = KEYWORDS | frozenset(
    "at c10 std int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t "
    "Tensor TensorList TensorOptions IntArrayRef SymIntArrayRef Scalar ScalarType SymInt".split()
)
_CONSTANT = re.compile(r"k[A-Z]\w*|[A-Z][A-Z0-9_]+")  # kLong, M_PI


class FormulaChecks:
    """The formulas of one operator and autograd key."""

    def __init__(self, scope: FormulaScope) -> None:
        self.scope, self.errors = scope, scope.errors
        self.targets: set[str] = set()
        self.tangents: set[str] = set()

    def check_conditions(self) -> None:
        """The conditions of output_differentiability: expressions over arguments."""
        flags = self.scope.derivative.output_differentiability or ()
        for flag in (flag for flag in flags if flag.is_condition):
            where = f"'{flag.text}' in 'output_differentiability'"
            if (found := mistake(flag.text)) is not None:
                self.errors.add(flag.location, f"{where} is no C++ expression: {found.why}")
            for word in _unknown(flag.text, set(self.scope.arguments)):
                hint = did_you_mean(word.text, self.scope.arguments)
                self.errors.add(flag.location, f"{where} names no '{word.text}'", hint)

    def check_targets(self, formula: Formula) -> bool:
        """Whether the names that a formula is for are arguments only, or results only."""
        scope, places = self.scope, dict(zip(formula.names, formula.name_locations))
        if formula.names and all(scope.is_result(name) for name in formula.names):
            for name in formula.names:
                if name in self.tangents:
                    place = places.get(name, formula.location)
                    self.errors.add(place, f"tangent of '{name}' stands twice")
                self.tangents.add(name)
            return True
        for name in formula.names:
            self._check_target(name, formula, places.get(name, formula.location))
        return all(name in scope.arguments for name in formula.names)

    def _check_target(self, name: str, formula: Formula, place: Location) -> None:
        scope = self.scope
        arg = scope.arguments.get(name)
        if arg is None:
            known = [*scope.arguments, *scope.by_result]
            hint = did_you_mean(name, known, "arguments and results")
            what = f"'{name}' is neither an argument nor a result of '{scope.operator.name}'"
            if name in known:
                what, hint = "one formula cannot give gradients and tangents", "split the entry"
            self.errors.add(place, what, hint)
        elif formula.text != NON_DIFFERENTIABLE and arg.type.plain not in DIFFERENTIABLE_TYPES:
            what = f"gradient for '{name}', which is of type '{arg.type.bare()}', not a tensor"
            self.errors.add(place, what)
        elif name in self.targets:
            self.errors.add(place, f"gradient for '{name}' stands twice")
        self.targets.add(name)

    def check_gradient(self, formula: Formula) -> None:
        """A formula that gives gradients."""
        if formula.text == NON_DIFFERENTIABLE:
            return
        if not self._is_expression(formula):
            return
        for index, offset in read(formula.text).masks:
            if _is_outside(index, len(formula.names)):
                what = f"'grad_input_mask[{index}]' in a formula for {len(formula.names)} gradients"
                self.errors.add(formula.at(offset), what, "it counts from 0")
        if any(r.is_list for r in self.scope.flow):
            self._check_list_grads(formula)
        else:
            self._check_indices(formula)
        for name in read(formula.text).free:
            is_grad = name.text in GRADS or name.text in self.scope.named_grads
            if is_grad and name.text in self.scope.arguments:
                what = f"'{name.text}' is an argument and the incoming gradient"
                self.errors.add(formula.at(name.offset), what, "give the argument another name")
        known = {*self.scope.arguments, *self.scope.by_result, *self.scope.named_grads, *GRADS}
        index = {"i"} if self.scope.is_elementwise(formula.text) else set()
        if index:
            self._check_each(formula)
        self._check_names(formula, known | index)

    def _check_each(self, formula: Formula) -> None:
        """A formula for the i-th element: of the one list of gradients, for that of another."""
        what, hint = None, "give the gradients of all of a list at once, of 'grads'"
        flow, name = len(self.scope.flow), formula.names[0]
        if len(formula.names) > 1 or "grad_input_mask" in formula.text:
            what = "a formula for the i-th element of lists gives the gradient of one argument"
            hint = None
        elif flow != 1:
            what = f"'i' counts one list, and '{self.scope.operator.name}' has {flow} results"
            what += " with gradients"
        elif name in self.scope.arguments and self.scope.types[name].name != "List":
            what, hint = f"'i' counts a list, and '{name}' is none", "give its gradient of 'grads'"
        if what:
            self.errors.add(formula.location, what, hint)

    def check_tangent(self, formula: Formula, with_gradient: set[str], each: bool) -> None:
        """A formula that gives tangents, `each` of an element of its lists.

        The arguments with_gradient have `_p` and `_t`, lists only where it is for an element.
        """
        if formula.text in (AUTO_LINEAR, AUTO_ELEMENT_WISE):
            return
        if not self._is_expression(formula):
            return
        scope = self.scope
        lists = {n for n in with_gradient if scope.arguments[n].type.name == "List"}
        plain = set() if each else lists
        known = {n for n in scope.arguments if n not in with_gradient or n in plain}
        tangents = {word for name in with_gradient - plain for word in words(name)}
        known |= {f"{name}_p" for name in with_gradient - plain}
        returned = {result.written for result in scope.results}
        for arg in scope.func.mutated:
            if scope.parameter(arg.name) in returned:
                known.add(f"original_{arg.name}_p")
                tangents |= {*words(f"original_{arg.name}")}
        known |= tangents
        for name in read(formula.text).free:
            if name.text in with_gradient - plain and name.text not in known:
                what = f"'{name.text}' is ambiguous in the formula of a tangent"
                hint = f"'{name.text}_p' is its value and '{name.text}_t' its tangent"
                self.errors.add(formula.at(name.offset), what, hint)
                return
        known |= {*scope.by_result, *({"i"} if each else ())}
        if not self._check_names(formula, known):
            return
        if not read(formula.text).names & (plain | tangents):
            what = "the formula of a tangent uses no tangent"
            self.errors.add(formula.location, what, "the tangent of an argument 'x' is 'x_t'")

    def _is_expression(self, formula: Formula) -> bool:
        if (found := mistake(formula.text)) is not None:
            what = f"the formula is no C++ expression: {found.why}"
            self.errors.add(formula.at(found.offset), what)
            return False
        wanted, given = len(formula.names), value_count(formula.text)
        if given is not None and given != wanted:
            plural = "s" * (given != 1)
            what = f"the formula gives {given} value{plural} for {', '.join(formula.names)}"
            self.errors.add(formula.at(0), what, "several values are a std::tuple")
        return True

    def _check_names(self, formula: Formula, known: set[str]) -> bool:
        """Whether a formula names nothing but what it may."""
        unknown = _unknown(formula.text, known)
        for name in unknown:
            word = name.text
            hint = did_you_mean(word, known)
            if word[-2:] in ("_p", "_t") and word[:-2] in self.scope.arguments:
                hint = f"'{word[:-2]}' has no gradient formula, so it has no tangent"
                if self.scope.arguments[word[:-2]].type.name == "List":
                    hint = f"the tensors of the list '{word[:-2]}' have their tangents with them"
            if word.startswith("result") and "result" not in "".join(self.scope.by_result):
                count = len(self.scope.by_result)
                hint = f"'{self.scope.operator.name}' has {count or 'no'} results"
                hint += f": {', '.join(self.scope.by_result)}" if count else ""
            self.errors.add(formula.at(name.offset), f"formula names no '{word}'", hint)
        return not unknown

    def _check_indices(self, formula: Formula) -> None:
        flow = len(self.scope.flow)
        for index, offset in read(formula.text).grads:
            if _is_outside(index, flow):
                what = f"'grads[{index}]' but the operator has {flow} differentiable results"
                self.errors.add(formula.at(offset), what)

    def _check_list_grads(self, formula: Formula) -> None:
        """A list result has one gradient per element, so that only all of them have a name."""
        reading = read(formula.text)
        names = reading.names - {"grads"}
        indices = [index for index, _ in reading.grads if index.isdigit()]
        if indices or names & {"grad", *self.scope.named_grads}:
            what = f"'{self.scope.operator.name}' returns a list: its gradients are 'grads'"
            self.errors.add(formula.location, what, "grads[i] is that of the i-th element")

    def check_usage(self, gradients: list[Formula]) -> bool:
        """Whether all formulas of an entry name gradients in one way."""
        uses: dict[str, Formula] = {}
        indices: list[str] = []
        whole = 0
        for formula in gradients:
            reading = read(formula.text)
            for kind in ("grad", "grads"):
                if kind in reading.names:
                    uses.setdefault(kind, formula)
            if reading.names & self.scope.named_grads.keys():
                uses.setdefault("grad_<result>", formula)
            found = [index for index, _ in reading.grads if index.isdigit()]
            indices += found
            whole += reading.count("grads") - len(found)
        if len(uses) > 1:
            first, second = [f"'{kind}'" for kind in list(uses)[:2]]
            what = f"the formulas mix {first} and {second}"
            hint = "name gradients in one way: grad, grads[i] or grad_<result>"
            self.errors.add(list(uses.values())[1].location, what, hint)
        elif indices and not whole and set(indices) == {"0"}:
            what = "only 'grads[0]' is used: write 'grad' where there is one differentiable result"
            self.errors.add(uses["grads"].location, what)
        else:
            return True
        return False

    def check_differentiable(self, gradients: list[Formula]) -> None:
        """No result may require grad whose gradient would be dropped by all formulas."""
        scope = self.scope
        used = set().union(*(scope.grads_in(formula.text) for formula in gradients))
        given = scope.derivative.output_differentiability
        dropped = [i for i in range(len(scope.flow)) if i not in used]
        if not used or not dropped:
            return
        result = scope.flow[dropped[0]]
        place = given[scope.results.index(result)].location if given else None
        names = {scope.flow[i].name for i in dropped}
        flags = ", ".join(
            "False" if r.name in names or not r.is_differentiable else "True" for r in scope.results
        )
        what = f"'{result.name}' requires grad, and no formula uses its gradient"
        hint = f"use 'grad_{result.name}', or say output_differentiability: [{flags}]"
        self.errors.add(place or scope.derivative.location, what, hint)


def _unknown(text: str, known: set[str]) -> list[Name]:
    """The names in an expression that are neither known nor its own, C++'s or ATen's."""
    reading = read(text)
    known = known | _CPP_NAMES | reading.local
    return [n for n in reading.free if n.text not in known and not _CONSTANT.fullmatch(n.text)]


def _is_outside(index: str, count: int) -> bool:
    """Whether what stands in brackets is a number that is no index of `count` values."""
    is_number = index.lstrip("-")[:1].isdigit()
    return is_number and not (index.isdigit() and int(index) < count)
