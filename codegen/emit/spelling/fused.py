# SPDX-License-Identifier: BSD-3-Clause
"""Expressions of elements in C++: one statement for each different part, of values of any type.

What they call stands in torchext/fused/functions.h.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...fused.functions import functions, is_condition, joins_conditions, positions
from ...fused.tree import (
    LENGTH,
    Call,
    Choice,
    IsMissing,
    Name,
    Number,
    Tree,
    in_order,
)
from ...plan.fused import FusedPlan, IsReal, Shared

# Powers as ATen computes them.
_POWERS = {
    2: "F::square({})", 3: "F::cube({})", 0.5: "F::sqrt({})", -0.5: "F::rsqrt({})",
    -1: "F::reciprocal({})", -2: "F::reciprocal(F::square({}))",
}  # fmt: skip


class Statements:
    """Parts of the expressions of a plan, each with a name from its statement on."""

    def __init__(self, plan: FusedPlan) -> None:
        self.words: dict[Tree, str] = {}
        self.has = {item.name: f"given.has[{i}]" for i, item in enumerate(plan.inputs)}
        for index, item in enumerate(plan.inputs):
            self.words[item.tree] = f"given.inputs[{index}]"
        if plan.rows:
            self.words |= {Name(LENGTH): "given.length", positions(): "given.position"}
        for index, number in enumerate(plan.numbers):
            self.words[number.tree] = f"given.numbers[{index}]"
        count = len(plan.inputs)
        self.conditions = {c.tree: f"given.has[{count + i}]" for i, c in enumerate(plan.conditions)}
        self.known = plan.known
        self.shared = {number.tree for number in plan.numbers}
        self.plan = plan
        asked = (*(item.tree for item in plan.inputs), *(number.tree for number in plan.numbers))
        before = count + len(plan.conditions)
        self.reals = {leaf: f"given.has[{before + i}]" for i, leaf in enumerate(asked)}
        self.lines: list[str] = []
        self.count = 0

    def of_all(self) -> list[str]:
        """The body of the function that computes the results."""
        plan = self.plan
        self.add(step.tree for step in plan.steps if step.result is None)
        for index, result in enumerate(plan.results):
            own = (step.tree for step in plan.steps if step.result == index)
            if plan.mask is None:
                self.lines.append(f"results[{index}] = {self.number(result)};")
                continue
            self.lines.append(f"if (given.wanted[{index}]) {{")
            self.add(own, "  ")
            self.lines += [f"  results[{index}] = {self.number(result)};", "}"]
        return self.lines

    def add(self, trees: Iterable[Tree], indent: str = "") -> None:
        """A statement for each part, which has a name from then on."""
        for part in trees:
            if part in self.words:
                continue
            name = f"v{self.count}"
            self.count += 1
            type_ = "auto" if is_condition(part) else "V"
            self.lines.append(f"{indent}const {type_} {name} = {self.computed(part)};")
            self.words[part] = name

    def computed(self, part: Tree) -> str:
        if isinstance(part, Choice):
            return self._choice(part)
        assert isinstance(part, Call)
        name, given = part.function, part.arguments
        if name == "**" and isinstance(given[1], Number) and given[1].value in _POWERS:
            return self._called(part, _POWERS[given[1].value], [self.number(given[0])])
        if name == "**" and given[1] in self.shared:
            return self._called(part, "F::pow_by_number({})", [self.number(one) for one in given])
        of = self.condition if joins_conditions(part) else self.number
        words = [of(argument) for argument in given]
        if functions()[name].is_reduction and given[0] in self.plan.may_be_numbers:
            words[0] = self.row(words[0])
        elif functions()[name].kind == "given":
            words[-1] = self.row(words[-1])
        return self._called(part, f"F::{functions()[name].cpp}({{}})", words)

    def _called(self, part: Call, call: str, words: list[str]) -> str:
        """A call, which is one of real numbers where a part may be real beside complex ones."""
        when = self.plan.real_parts.get(part)
        takes_part = functions()[part.function].takes_part
        if takes_part:
            words = ["false" if when is None else self._real(when), *words]
        given = ", ".join(words)
        if when is None or takes_part:
            return call.format(given)
        function = call.replace("F::", "decltype(of)::").format("x...")
        as_function = f"[](auto of, const auto&... x) {{ return {function}; }}"
        return f"::torchext::fused::computed<V>({self._real(when)}, {as_function}, {given})"

    def _real(self, when: IsReal) -> str:
        """Whether what a part is computed of is real."""
        words = [word for leaf, word in self.reals.items() if leaf in when.leaves]
        for condition, *both in when.choices:
            then, other = map(self._real, both)
            words.append(f"({self._known(condition)} ? {then} : {other})")
        return " && ".join(words) or "true"

    def row(self, word: str) -> str:
        """A row of what may be one number, for functions that are computed of whole ones."""
        return f"F::row({word}, given.inputs[{self.plan.row}])"

    def _choice(self, part: Choice) -> str:
        of = self.condition if is_condition(part) else self.number
        then, other = of(part.then), of(part.other)
        if part.condition in self.known:
            return f"{self._known(part.condition)} ? {then} : {other}"
        function = "choose_condition" if is_condition(part) else "choose"
        return f"F::{function}({self.condition(part.condition)}, {then}, {other})"

    def number(self, part: Tree) -> str:
        if isinstance(part, Number):
            return f"F::number({_literal(part)})"
        if is_condition(part) and part not in self.shared:
            return f"F::as_number({self.condition(part)})"
        return self.words[part]

    def condition(self, part: Tree) -> str:
        if part in self.known:
            return f"F::always({self._known(part)})"
        if is_condition(part):
            return self.words[part]
        return f"F::not_equal({self.number(part)}, F::number(0))"

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
    """What is computed of numbers alone, once a call: of doubles, of integers exactly, and of
    numbers that may be complex."""
    tree = shared.tree
    if isinstance(tree, Name):
        return parameters[tree.name]
    type_ = "fused::Numeric" if shared.may_be_complex else "double"
    type_ = "fused::Integer" if shared.is_integer else type_
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
        of = "" if is_condition(part) else type_
        return f"({made[part.condition]} ? {of}({made[part.then]}) : {of}({made[part.other]}))"
    assert isinstance(part, Call)
    words = ", ".join(made[argument] for argument in part.arguments)
    return f"{space}::{functions()[part.function].cpp}({words})"
