# SPDX-License-Identifier: BSD-3-Clause
"""What the parts of an expression of rows are one of: of the call, of each row, of each element."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from .functions import functions
from .tree import Call, Cast, Choice, Name, OfRow, Slice, Tree, in_order


class Extent(IntEnum):
    """How many of a value there are, the fewer the lower."""

    CALL = 0
    ROW = 1
    ELEMENT = 2


def extents(kinds: Mapping[str, str], *trees: Tree) -> dict[Tree, Extent]:
    """The extent of each part of expressions of arguments of these kinds."""
    found: dict[Tree, Extent] = {}
    for part in in_order(*trees):
        found[part] = _extent(part, found, kinds)
    return found


def extent(tree: Tree, kinds: Mapping[str, str]) -> Extent:
    return extents(kinds, tree)[tree]


def _extent(tree: Tree, known: Mapping[Tree, Extent], kinds: Mapping[str, str]) -> Extent:
    if isinstance(tree, Name):
        return Extent.ELEMENT if kinds[tree.name].startswith("tensor") else Extent.CALL
    if isinstance(tree, OfRow):
        return Extent.ROW
    if isinstance(tree, Slice):
        return Extent.ELEMENT
    if isinstance(tree, Choice):
        return max(known[part] for part in (tree.condition, tree.then, tree.other))
    if isinstance(tree, Cast):
        return known[tree.value]
    if not isinstance(tree, Call):
        return Extent.CALL
    function = functions()[tree.function]
    if function.is_reduction:
        return Extent.ROW
    if function.kind == "sizes":
        return known[tree.arguments[0]]
    return Extent.ELEMENT if function.makes_row else max(known[a] for a in tree.arguments)


def tensors(kinds: Mapping[str, str], *trees: Tree) -> list[Name | OfRow | Slice]:
    """The tensors that expressions read."""
    named = (part for part in in_order(*trees) if isinstance(part, (Name, OfRow, Slice)))
    return [part for part in named if kinds[part.name].startswith("tensor")]
