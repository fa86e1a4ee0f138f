# SPDX-License-Identifier: BSD-3-Clause
"""Expressions of rows by functions that equal no others, and by elements of arguments alone."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from .extents import Extent, extents
from .functions import functions, positions
from .reading import read
from .tree import ELEMENT, LENGTH, Call, Choice, Name, Tree, in_order, replaced


def of_primitives(tree: Tree, kinds: Mapping[str, str]) -> Tree:
    """The expression without functions that equal an expression of others."""
    made: dict[Tree, Tree] = {}
    for part in in_order(tree):
        found = _with_parts(part, made)
        if isinstance(found, Call):
            equal = _equal(found.function)
            if equal is not None:
                values = dict(zip(functions()[found.function].arguments, found.arguments))
                found = of_primitives(replaced(equal, values), kinds)
            elif found.function == ELEMENT:
                found = _element(*found.arguments, kinds)
        made[part] = found
    return made[tree]


@functools.cache
def _equal(name: str) -> Tree | None:
    """What a function equals, of the names of its arguments."""
    function = functions()[name]
    known = {**dict.fromkeys(function.arguments, "tensor"), LENGTH: "int"}
    for argument in function.arguments[1:] if function.is_reduction else ():
        known[argument] = "Scalar"
    return read(function.equals, known, of_rows=frozenset()) if function.equals else None


def _element(row: Tree, index: Tree, kinds: Mapping[str, str]) -> Tree:
    """One element of an expression, by those of its arguments."""
    made: dict[Tree, Tree] = {}
    for part, extent in extents(kinds, row).items():
        if extent is not Extent.ELEMENT:
            made[part] = part
        elif isinstance(part, Name):
            made[part] = Call(ELEMENT, (part, index))
        else:
            made[part] = index if part == positions() else _with_parts(part, made)
    return made[row]


def _with_parts(part: Tree, made: Mapping[Tree, Tree]) -> Tree:
    if isinstance(part, Choice):
        return Choice(made[part.condition], made[part.then], made[part.other])
    if isinstance(part, Call):
        return Call(part.function, tuple(made[argument] for argument in part.arguments))
    return part
