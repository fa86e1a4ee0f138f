# SPDX-License-Identifier: BSD-3-Clause
"""Expressions of elements in C++: one statement for each different part, of values of any type.

What they call stands in torchext/fused/functions.h.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...fused.functions import functions, is_condition, joins_conditions
from ...fused.tree import Call, Choice, IsMissing, Name, Number, Tree, in_order, parts
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
        self.known = {c.tree: f"given.has[{count + i}]" for i, c in enumerate(plan.conditions)}
        self.shared = {number.tree for number in plan.numbers}
        # what is only a part of those is computed before
        outside = _parts_outside(plan.results, {*self.shared, *self.known})
        self.inside = set(in_order(*plan.results)) - outside
        self.lines: list[str] = []
        own = _of_one(plan.results) if plan.mask else {}
        for part in in_order(*plan.results):
            if part not in own:
                self._add(part, "")
        for index, result in enumerate(plan.results):
            indent = "  " if plan.mask else ""
            if plan.mask:
                self.lines.append(f"if (given.wanted[{index}]) {{")
            for part in in_order(result):
                if own.get(part) == index:
                    self._add(part, indent)
            self.lines.append(f"{indent}results[{index}] = {self._number(result)};")
            if plan.mask:
                self.lines.append("}")

    def _add(self, part: Tree, indent: str) -> None:
        """A statement for a part, which has a name from then on."""
        is_named = part in self.words or isinstance(part, (Name, Number, IsMissing))
        if is_named or self._is_known_before(part) or part in self.inside:
            return
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
        if self._is_known_before(part.condition):
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
        if self._is_known_before(part):
            return f"F::always({self._known(part)})"
        if is_condition(part):
            return self.words[part]
        return f"F::not_equal({self._number(part)}, F::number(0))"

    def _is_known_before(self, part: Tree) -> bool:
        """Whether it is a condition on what is given, which is the same for all elements."""
        if isinstance(part, Number):
            return isinstance(part.value, bool)
        if part not in self.known and isinstance(part, Call) and joins_conditions(part):
            return all(map(self._is_known_before, parts(part)))
        return part in self.known or isinstance(part, IsMissing)

    def _known(self, part: Tree) -> str:
        if part in self.known:
            return self.known[part]
        if isinstance(part, Number):
            return "true" if part.value else "false"
        if isinstance(part, IsMissing):
            return f"!{self.has[part.name]}"
        assert isinstance(part, Call)
        words = [self._known(argument) for argument in part.arguments]
        if part.function == "not":
            return f"!({words[0]})"
        return "(" + (" && " if part.function == "and" else " || ").join(words) + ")"


def _of_one(results: tuple[Tree, ...]) -> Mapping[Tree, int]:
    """The parts that only one result has, by that one."""
    found: dict[Tree, int] = {}
    several: set[Tree] = set()
    for index, result in enumerate(results):
        for part in in_order(result):
            if found.setdefault(part, index) != index:
                several.add(part)
    return {part: index for part, index in found.items() if part not in several}


def _literal(number: Number) -> str:
    value = number.value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"int64_t({value})"
    return repr(value)


def _parts_outside(results: tuple[Tree, ...], shared: set[Tree]) -> set[Tree]:
    """The parts of expressions, but for what these are made of."""
    found: set[Tree] = set()
    waiting = list(results)
    while waiting:
        part = waiting.pop()
        if part not in found:
            found.add(part)
            waiting += () if part in shared else parts(part)
    return found


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
