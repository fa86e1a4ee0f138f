# SPDX-License-Identifier: BSD-3-Clause
"""What is made of numbers and conditions that are written out."""

from __future__ import annotations

import math

from .tree import Call, Choice, Number, Tree

_LARGEST_POWER = 1024
_COMPUTED = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "%": lambda a, b: a % b,
    "**": lambda a, b: a**b if abs(b) < _LARGEST_POWER else float(a) ** b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def computed(sign: str, left: Number, right: Number) -> Number | None:
    """The number that an operator makes of two; None where that is none, or too large."""
    try:
        value = _COMPUTED[sign](left.value, right.value)
        is_number = type(value) in (bool, int, float) and math.isfinite(value)
    except (ArithmeticError, ValueError):
        return None
    is_held = type(value) is not int or abs(value) < 2**63
    return Number(value) if is_number and is_held else None


def compared(sign: str, given: tuple[Tree, ...]) -> Tree:
    """A comparison, or what is known of one of numbers that are written out."""
    left, right = given[0], given[-1]
    if len(given) == 2 and isinstance(left, Number) and isinstance(right, Number):
        return computed(sign, left, right) or Call(sign, given)
    return Call(sign, given)


def joined(sign: str, left: Tree, right: Tree) -> Tree:
    """Two conditions, of which one that is written out decides, or is left out."""
    decided, undecided = Number(sign == "or"), Number(sign == "and")
    if decided in (left, right):
        return decided
    kept = [part for part in (left, right) if part != undecided]
    return Call(sign, (left, right)) if len(kept) == 2 else kept[0] if kept else undecided


def negated(condition: Tree) -> Tree:
    """The opposite of a condition."""
    if isinstance(condition, Number):
        return Number(not condition.value)
    return Call("not", (condition,))


def chosen(condition: Tree, then: Tree, other: Tree) -> Tree:
    """One of two values, where the condition says which one."""
    if isinstance(condition, Number):
        return then if condition.value else other
    return Choice(condition, then, other)
