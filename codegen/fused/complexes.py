# SPDX-License-Identifier: BSD-3-Clause
"""Expressions of complex numbers: conjugates, and what is real where others are complex."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TypeGuard

from .branches import is_known
from .functions import first_of, functions
from .tree import Call, Choice, Name, Number, Tree, in_order, names, parts, with_parts

_KINDS = ("tensor", "tensor?", "Scalar")  # of arguments that may be complex


def conjugate(value: Tree) -> Tree:
    """The conjugate of a complex number; of a conjugate the number itself."""
    return value.arguments[0] if is_conjugate(value) else Call(first_of("conjugate"), (value,))


def is_conjugate(value: Tree) -> TypeGuard[Call]:
    return isinstance(value, Call) and functions()[value.function].kind == "conjugate"


def takes_part(value: Tree) -> TypeGuard[Call]:
    return isinstance(value, Call) and functions()[value.function].takes_part


def may_be_complex(name: str, kinds: Mapping[str, str]) -> bool:
    """Whether an argument may; what has no kind is a tensor."""
    return kinds.get(name, "tensor") in _KINDS


@functools.cache
def conjugated(formula: Tree) -> Tree:
    """The formula of a gradient of complex numbers: what multiplies `grad` is conjugated."""
    made: dict[Tree, Tree] = {}
    for part in in_order(formula):
        if "grad" not in names(part):
            made[part] = conjugate(part)
        elif isinstance(part, Choice):
            made[part] = Choice(part.condition, made[part.then], made[part.other])
        elif takes_part(part):
            made[part] = _real_as(part.arguments[0], made[part.arguments[1]])
        else:
            made[part] = with_parts(part, made)
    return made[formula]


def real_as_inner(grad: Tree, inner: Tree, part: Tree, kinds: Mapping[str, str]) -> Tree:
    """The gradient of a part, which is real where that is and what it is a part of is complex. That
    of an argument is made real by the formula that calls for it."""
    if not isinstance(inner, (Call, Choice)) or isinstance(grad, Number):
        return grad
    own = _complex_names(inner, kinds)
    if not own or own == _complex_names(part, kinds):
        return grad
    is_chosen = any(
        isinstance(one, Choice) and is_known(one.condition, kinds) for one in in_order(inner)
    )
    like = inner if is_chosen else functools.reduce(_sum, map(Name, sorted(own)))
    return _real_as(like, grad)


def _real_as(like: Tree, value: Tree) -> Tree:
    return Call(first_of("part"), (like, value))


def _sum(left: Tree, right: Tree) -> Tree:
    return Call("+", (left, right))


def _complex_names(tree: Tree, kinds: Mapping[str, str]) -> set[str]:
    """The arguments that decide whether a value is complex."""
    found: set[str] = set()
    waiting = [tree]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Name) and may_be_complex(part.name, kinds):
            found.add(part.name)
        waiting += parts(part)[:1] if takes_part(part) else parts(part)
    return found
