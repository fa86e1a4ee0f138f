# SPDX-License-Identifier: BSD-3-Clause
"""Expressions of elements in C++: one statement for each different part, of values of any type.

What they call stands in torchext/fused/functions.h.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...fused.functions import functions, is_condition, joins_conditions
from ...fused.tree import Call, Choice, IsMissing, Name, Number, Tree, in_order
from ...plan.fused import FusedPlan, Shared

# Powers as ATen computes them.
_POWERS = {
    2: "F::square({})", 3: "F::cube({})", 0.5: "F::sqrt({})", -0.5: "F::rsqrt({})",
    -1: "F::reciprocal({})", -2: "F::reciprocal(F::square({}))",
}  # fmt: skip


class Statements:
    """The body of the function that computes the results of a plan."""

    def __init__(self, plan: FusedPlan) -> None:
        self.words: dict[Tree, str] = {}
        self.has = {item.name: f"given.has[{i}]" for i, item in enumerate(plan.inputs)}
        for index, item in enumerate(plan.inputs):
            self.words[Name(item.name)] = f"given.inputs[{index}]"
        for index, number in enumerate(plan.numbers):
            self.words[number.tree] = f"given.numbers[{index}]"
        count = len(plan.inputs)
        self.conditions = {c.tree: f"given.has[{count + i}]" for i, c in enumerate(plan.conditions)}
        self.known = plan.known
        self.shared = {number.tree for number in plan.numbers}
        self.lines: list[str] = []
        self._add(step.tree for step in plan.steps if step.result is None)
        for index, result in enumerate(plan.results):
            own = (step.tree for step in plan.steps if step.result == index)
            if plan.mask is None:
                self.lines.append(f"results[{index}] = {self._number(result)};")
                continue
            self.lines.append(f"if (given.wanted[{index}]) {{")
            self._add(own, "  ")
            self.lines += [f"  results[{index}] = {self._number(result)};", "}"]

    def _add(self, trees: Iterable[Tree], indent: str = "") -> None:
        """A statement for each part, which has a name from then on."""
        for part in trees:
            name = f"v{len(self.words)}"
            type_ = "auto" if is_condition(part) else "V"
            self.lines.append(f"{indent}const {type_} {name} = {self._computed(part)};")
            self.words[part] = name

    def _computed(self, part: Tree) -> str:
        if isinstance(part, Choice):
            return self._choice(part)
        assert isinstance(part, Call)
        name, given = part.function, part.arguments
        if name == "**" and isinstance(given[1], Number) and given[1].value in _POWERS:
            return _POWERS[given[1].value].format(self._number(given[0]))
        of = self._condition if joins_conditions(part) else self._number
        words = ", ".join(of(argument) for argument in given)
        return f"F::{functions()[name].cpp}({words})"

    def _choice(self, part: Choice) -> str:
        of = self._condition if is_condition(part) else self._number
        then, other = of(part.then), of(part.other)
        if part.condition in self.known:
            return f"{self._known(part.condition)} ? {then} : {other}"
        function = "choose_condition" if is_condition(part) else "choose"
        return f"F::{function}({self._condition(part.condition)}, {then}, {other})"

    def _number(self, part: Tree) -> str:
        if isinstance(part, Number):
            return f"F::number({_literal(part)})"
        if is_condition(part) and part not in self.shared:
            return f"F::as_number({self._condition(part)})"
        return self.words[part]

    def _condition(self, part: Tree) -> str:
        if part in self.known:
            return f"F::always({self._known(part)})"
        if is_condition(part):
            return self.words[part]
        return f"F::not_equal({self._number(part)}, F::number(0))"

    def _known(self, part: Tree) -> str:
        if part in self.conditions:
            return self.conditions[part]
        if isinstance(part, Number):
            return "true" if part.value else "false"
        if isinstance(part, IsMissing):
            return f"!{self.has[part.name]}"
        assert isinstance(part, Call)
        words = [self._known(argument) for argument in part.arguments]
        if part.function == "not":
            return f"!({words[0]})"
        return "(" + (" && " if part.function == "and" else " || ").join(words) + ")"


def _literal(number: Number) -> str:
    value = number.value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"int64_t({value})"
    return repr(value)


def shared_value(shared: Shared, parameters: Mapping[str, str]) -> str:
    """What is computed of numbers alone, once a call: of doubles, or of integers exactly."""
    tree = shared.tree
    if isinstance(tree, Name):
        return parameters[tree.name]
    type_ = "int64_t" if shared.is_integer else "double"
    made: dict[Tree, str] = {}
    for part in in_order(tree):
        made[part] = _shared_part(part, type_, made, parameters)
    return made[tree]


def _shared_part(
    part: Tree, type_: str, made: Mapping[Tree, str], parameters: Mapping[str, str]
) -> str:
    space = f"fused::Functions<{type_}>"
    if isinstance(part, Name):
        return f"fused::number<{type_}>({parameters[part.name]})"
    if isinstance(part, Number):
        return f"{space}::number({_literal(part)})"
    if isinstance(part, Choice):
        return f"({made[part.condition]} ? {made[part.then]} : {made[part.other]})"
    assert isinstance(part, Call)
    words = ", ".join(made[argument] for argument in part.arguments)
    return f"{space}::{functions()[part.function].cpp}({words})"
