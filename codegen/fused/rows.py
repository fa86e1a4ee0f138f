# SPDX-License-Identifier: BSD-3-Clause
"""Expressions of rows by functions that equal no others, and by elements of arguments alone."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping

from .extents import Extent, extents
from .functions import computed_as, functions, positions
from .reading import read
from .tree import (
    ELEMENT,
    LENGTH,
    Call,
    Choice,
    Name,
    Number,
    Slice,
    Tree,
    exchanged,
    in_order,
    replaced,
    with_parts,
)


def of_primitives(tree: Tree, kinds: Mapping[str, str]) -> Tree:
    """The expression without functions that equal an expression of others."""
    tree = _cheaper(tree)
    made: dict[Tree, Tree] = {}
    for part in in_order(tree):
        found = with_parts(part, made)
        if isinstance(found, Call):
            equal = _in_its_place(found)
            if equal is not None:
                found = of_primitives(equal, kinds)
            elif found.function == ELEMENT:
                found = _element(*found.arguments, kinds)
            elif functions()[found.function].reduces:
                found = _reduced(found, kinds)
        made[part] = found
    return made[tree]


def _cheaper(tree: Tree) -> Tree:
    """The expression with other parts in the place of those that would take longer."""
    made: dict[Tree, Tree] = {}
    for part in in_order(tree):
        made[part] = with_parts(part, made)
        for pattern, equal in _computed_as():
            found = _matched(pattern, made[part])
            made[part] = made[part] if found is None else replaced(equal, found)
    return made[tree]


@functools.cache
def _computed_as() -> tuple[tuple[Tree, Tree], ...]:
    known = {"x": "tensor"}
    return tuple(
        (read(one, known, of_rows=frozenset()), read(other, known, of_rows=frozenset()))
        for one, other in computed_as().items()
    )


def _matched(pattern: Tree, tree: Tree) -> dict[str, Tree] | None:
    """What the names of a pattern stand for, where an expression is like that."""
    found: dict[str, Tree] = {}
    waiting = [(pattern, tree)]
    while waiting:
        one, other = waiting.pop()
        if isinstance(one, Name):
            if found.setdefault(one.name, other) != other:
                return None
        elif isinstance(one, Call) and isinstance(other, Call) and one.function == other.function:
            waiting += zip(one.arguments, other.arguments)
        elif one != other:
            return None
    return found


_ELSEWHERE = Number(0.5)


def with_guarded_elements(trees: Iterable[Tree], kinds: Mapping[str, str]) -> tuple[Tree, ...]:
    """Expressions in which an element that a condition on its index guards is a number without it:
    `0 if i < 0 else w[i] * x` has `(0.5 if i < 0 else w[i])`, so that what is derived of it has the
    element nowhere else, and there a number of which functions and their derivatives are finite."""
    results = tuple(trees)
    extent = extents(kinds, *results)
    made: dict[Tree, Tree] = {}
    for part in in_order(*results):
        made[part] = with_parts(part, made)
        if isinstance(part, Choice) and extent[part.condition] is not Extent.ELEMENT:
            choice = made[part]
            assert isinstance(choice, Choice)
            made[part] = _guarded(choice)
    return tuple(made[tree] for tree in results)


def _guarded(choice: Choice) -> Tree:
    condition, branches = _positive(choice.condition), []
    for branch in (choice.then, choice.other):
        # The value of a guard where the condition holds stands in `then`, that of its opposite not.
        is_then = (branch is choice.then) == (condition == choice.condition)
        values: dict[Tree, Tree] = {}
        for part in in_order(branch):
            if isinstance(part, Choice) and _positive(part.condition) == condition:
                values[part] = part  # in which it is guarded already
            elif isinstance(part, Call) and part.function == ELEMENT and part != branch:
                if _is_about(condition, part.arguments[1]):
                    both = (part, _ELSEWHERE) if is_then else (_ELSEWHERE, part)
                    values[part] = Choice(condition, *both)
        branches.append(exchanged(branch, values))
    return Choice(choice.condition, *branches)


def _positive(condition: Tree) -> Tree:
    """The condition, or that of which it is the opposite."""
    while isinstance(condition, Call) and condition.function == "not":
        (condition,) = condition.arguments
    return condition


def _is_about(condition: Tree, index: Tree) -> bool:
    """Whether a condition compares an index, and not only what that chooses."""
    calls = (part for part in in_order(condition) if isinstance(part, Call))
    return any(call.function != ELEMENT and index in call.arguments for call in calls)


def with_formulas_of_tangents(tree: Tree) -> Tree:
    """The expression without functions of rows whose formulas are those of gradients alone."""
    made: dict[Tree, Tree] = {}
    for part in in_order(tree):
        found = with_parts(part, made)
        function = functions()[found.function] if isinstance(found, Call) else None
        if function is not None and function.kind == "row" and not function.is_symmetric:
            found = _in_its_place(found) or found
        made[part] = found
    return made[tree]


def reduced(tree: Tree, kinds: Mapping[str, str]) -> Tree:
    """The expression without reductions of what a row has one number of."""
    made: dict[Tree, Tree] = {}
    for part in in_order(tree):
        found = with_parts(part, made)
        is_reduction = isinstance(found, Call) and functions()[found.function].reduces
        made[part] = _reduced(found, kinds) if is_reduction else found
    return made[tree]


def _in_its_place(call: Call) -> Tree | None:
    """What a call of a function equals, in other functions."""
    equal = _equal(call.function)
    values = dict(zip(functions()[call.function].arguments, call.arguments))
    return None if equal is None else replaced(equal, values)


@functools.cache
def _equal(name: str) -> Tree | None:
    """What a function equals, of the names of its arguments."""
    function = functions()[name]
    known = {**dict.fromkeys(function.arguments, "tensor"), LENGTH: "int"}
    for argument in function.arguments[1:] if function.is_reduction else ():
        known[argument] = "Scalar"
    return read(function.equals, known, of_rows=frozenset()) if function.equals else None


def _reduced(call: Call, kinds: Mapping[str, str]) -> Tree:
    """A reduction, of a row that may be one number for all of its elements."""
    (row,) = call.arguments
    if extents(kinds, row)[row] is Extent.ELEMENT:
        return call
    alike = _alike(call.function)
    return row if alike is None else replaced(alike, {"x": row})


@functools.cache
def _alike(name: str) -> Tree | None:
    text = functions()[name].alike
    return read(text, {"x": "tensor", LENGTH: "int"}) if text else None


def _element(row: Tree, index: Tree, kinds: Mapping[str, str]) -> Tree:
    """One element of an expression, by those of its arguments."""
    made: dict[Tree, Tree] = {}
    for part, extent in extents(kinds, row).items():
        if extent is not Extent.ELEMENT:
            made[part] = part
        elif isinstance(part, (Name, Slice)):
            made[part] = Call(ELEMENT, (part, index))
        else:
            made[part] = index if part == positions() else with_parts(part, made)
    return made[row]
