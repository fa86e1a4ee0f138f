# SPDX-License-Identifier: BSD-3-Clause
"""The sizes of what follows from an expression: those of its results, or of its arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from .extents import Extent, extent, tensors
from .functions import expanded, joins, sized, total
from .tree import Name, OfRow, Tree, names


def with_tensors(
    derived: Iterable[Tree],
    results: Iterable[Tree],
    kinds: Mapping[str, str],
    tangents: Mapping[str, str] = {},
) -> tuple[Tree, ...]:
    """What follows from results, with all tensors that those broadcast; tangents: the names of
    those that stand for an argument."""
    trees = list(derived)
    for tensor in tensors(kinds, *results) if trees else ():
        read = {one.name for one in tensors(kinds, *trees)}
        if not {tensor.name, tangents.get(tensor.name, "")} & read:
            trees[0] = sized(trees[0], tensor)
    return tuple(trees)


def of_arguments(gradients: Mapping[str, Tree], rows: Set[str]) -> tuple[Tree, ...]:
    """Gradients of the sizes that arguments have; rows: those that are known, and may broadcast."""
    used = {*names(*gradients.values())} & rows
    return tuple(
        total(tree, Name(name)) if name in used and not joins(tree) else tree
        for name, tree in gradients.items()
    )


def as_rows(tree: Tree, result: Tree, kinds: Mapping[str, str]) -> Tree:
    """A tangent of as many elements as a result of rows."""
    if extent(tree, kinds) is Extent.ELEMENT or extent(result, kinds) is not Extent.ELEMENT:
        return tree
    rows = [tensor for tensor in tensors(kinds, result) if not isinstance(tensor, OfRow)]
    if not rows:
        return tree  # a piece of positions and numbers, which no tensor's size says more about
    return expanded(tree, min(rows, key=lambda row: kinds[row.name] == "tensor?"))
