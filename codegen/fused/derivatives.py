# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of expressions, as expressions.

Reverse mode goes from the result to the arguments as autograd does, part by part, with the formulas
of functions.yaml: so what is rounded, and where, is what it is where the expression is written with
torch's operators. A formula is linear in `grad`, element by element, so that the same ones give the
tangent. What has no gradient is None, which is no zero that anything is multiplied by.

Of rows, what each row has one of gets the sum of the gradients of the elements that it is used for;
the tangent of a reduction is the sum of what its formula gives for the tangents of the elements.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from .constants import chosen, computed, joined, negated
from .extents import Extent, extent, extents
from .functions import expanded, functions, joined_rows, makes_result, pieces
from .reading import read
from .rows import without
from .sums import sum_of
from .tree import (
    LENGTH,
    OPERATORS,
    Call,
    Choice,
    Name,
    Number,
    OfRow,
    Slice,
    Tree,
    exchanged,
    in_order,
    parts,
    replaced,
)

_ONE, _ZERO = Number(1), Number(0)


@dataclass(frozen=True)
class Rows:
    """What is known of rows: the kinds of arguments, and which have one number for each row."""

    kinds: Mapping[str, str]
    names: Set[str] = frozenset()

    def named(self, name: str) -> Tree:
        return OfRow(name) if name in self.names else Name(name)


def gradients(
    results: Mapping[str, Tree], names: Iterable[str], rows: Rows | None = None
) -> dict[str, Tree | None]:
    """The gradient to each name, of results whose own gradients are names: `results` are
    expressions by those. None where nothing depends on it. rows: None where there are none."""
    named = rows.named if rows else Name
    order = in_order(*results.values())
    extent_of = extents(rows.kinds, *results.values()) if rows else {}
    of: dict[Tree, Tree] = {}
    of_elements: dict[Tree, Tree] = {}  # for what rows have, the gradients of elements
    for name, result in results.items():
        for piece, grad in _of_pieces(result, named(name)):
            _add(of, piece, grad)
    for part in reversed(order):
        if rows and part in of_elements:
            _add(of, part, simplified(sum_of(of_elements[part], rows.kinds)))
        grad = of.get(part)
        if grad is not None:
            for inner, value in _inner_gradients(part, grad):
                is_less = rows is not None and extent_of[inner] < extent_of[part]
                is_of_elements = is_less and extent_of[part] is Extent.ELEMENT
                _add(of_elements if is_of_elements else of, inner, value)
    slices = slices_of(results.values())
    found: dict[str, Tree | None] = {}
    for name in names:
        own = [_of_argument(of.get(part), part, rows) for part in slices.get(name, [named(name)])]
        is_any = any(grad is not None for grad in own)
        found[name] = joined_rows([grad or _ZERO for grad in own]) if is_any else None
    return found


def slices_of(trees: Iterable[Tree]) -> dict[str, list[Tree]]:
    """Of the arguments whose slices expressions name, all that they have."""
    found = (part for part in in_order(*trees) if isinstance(part, Slice))
    counts = {part.name: part.count for part in found}
    return {n: [Slice(n, i, count) for i in range(count)] for n, count in counts.items()}


def _of_pieces(result: Tree, grad: Tree) -> Iterable[tuple[Tree, Tree]]:
    """The rows that a result consists of, and their gradients."""
    found = pieces(result)
    if len(found) == 1:
        yield found[0], grad
    elif isinstance(grad, Name):
        for index, piece in enumerate(found):
            if not _is_constant(piece):
                yield piece, Slice(grad.name, index, len(found))


def _of_argument(grad: Tree | None, name: Tree, rows: Rows | None) -> Tree | None:
    """A gradient for each element of an argument that has some."""
    if grad is None or rows is None or isinstance(name, OfRow):
        return grad
    is_row = extent(grad, rows.kinds) is Extent.ELEMENT
    return grad if is_row else expanded(grad, name)


def tangent(result: Tree, tangents: Mapping[str, Tree], rows: Rows | None = None) -> Tree | None:
    """The tangent of a result, by those of the arguments that have one; None where it has none."""
    named = rows.named if rows else Name
    result = without(result, "row")  # whose formulas are those of gradients
    of: dict[Tree, Tree] = {}
    slices = slices_of([result])
    for name, value in tangents.items():
        for part in slices.get(name, [named(name)]):
            of[part] = _sliced(value, part) if isinstance(part, Slice) else value
    for part in in_order(result):
        if isinstance(part, Choice):
            then, other = of.get(part.then), of.get(part.other)
            if then is not None or other is not None:
                of[part] = Choice(part.condition, then or _ZERO, other or _ZERO)
        elif isinstance(part, Call) and not makes_result(part):
            for index, inner in enumerate(part.arguments):
                given = of.get(inner)
                formula = _formula(part.function, index) if given is not None else None
                if formula is not None and given is not None:
                    value = _applied(formula, part, given)
                    if rows and functions()[part.function].is_reduction:
                        value = simplified(sum_of(value, rows.kinds))
                    _add(of, part, value)
    own = [of.get(piece) for piece in pieces(result)]
    is_any = any(value is not None for value in own)
    return joined_rows([value or _ZERO for value in own]) if is_any else None


def _sliced(value: Tree, like: Slice) -> Tree:
    """A tangent that is given for whole rows, for a slice of them."""
    rows = [part for part in in_order(value) if isinstance(part, Name)]
    return exchanged(value, {row: Slice(row.name, like.index, like.count) for row in rows})


def _inner_gradients(part: Tree, grad: Tree) -> Iterable[tuple[Tree, Tree]]:
    """The gradients of what an expression is made of."""
    if isinstance(part, Choice):
        yield part.then, simplified(Choice(part.condition, grad, _ZERO))
        yield part.other, simplified(Choice(part.condition, _ZERO, grad))
    elif isinstance(part, Call):
        for index, inner in enumerate(part.arguments):
            formula = _formula(part.function, index)
            if formula is not None and not _is_constant(inner):
                yield inner, _applied(formula, part, grad)


def _is_constant(tree: Tree) -> bool:
    return not isinstance(tree, (Name, OfRow, Slice)) and not parts(tree)


def _add(of: dict[Tree, Tree], part: Tree, value: Tree) -> None:
    if value != _ZERO:
        of[part] = Call("+", (of[part], value)) if part in of else value


@functools.cache
def _formula(name: str, index: int) -> Tree | None:
    """The formula for an argument of a function, of the names of its arguments, and `result`."""
    function = functions()[name]
    text = function.formulas.get(function.arguments[index])
    known = dict.fromkeys((*function.arguments, "grad", "result"), "tensor")
    known[LENGTH] = "int"
    rows = frozenset() if function.is_of_rows else None
    return None if text is None else read(text, known, of_rows=rows)


def _applied(formula: Tree, part: Call, grad: Tree) -> Tree:
    """A formula at a call."""
    function = functions()[part.function]
    values = dict(zip(function.arguments, part.arguments))
    return simplified(replaced(formula, {**values, "grad": grad, "result": part}))


def simplified(tree: Tree) -> Tree:
    """The expression without what changes no value: a factor and a divisor that are written as 1,
    choices between numbers that are written out, and what consists of such numbers alone."""
    made: dict[Tree, Tree] = {}
    for part in in_order(tree):
        made[part] = _simple(part, made)
    return made[tree]


def _simple(tree: Tree, made: Mapping[Tree, Tree]) -> Tree:
    if isinstance(tree, Choice):
        return chosen(made[tree.condition], made[tree.then], made[tree.other])
    if not isinstance(tree, Call):
        return tree
    given = tuple(made[part] for part in tree.arguments)
    if tree.function == "*" and _ONE in given:
        return given[0] if given[1] == _ONE else given[1]
    if tree.function in ("/", "**") and given[1] == _ONE:
        return given[0]
    if tree.function in ("and", "or"):
        return joined(tree.function, *given)
    if tree.function == "not":
        return negated(given[0])
    if tree.function == "-x" and isinstance(given[0], Number):
        return Number(-given[0].value)
    numbers = [part for part in given if isinstance(part, Number)]
    is_operator = tree.function in OPERATORS and len(numbers) == len(given) == 2
    return is_operator and computed(tree.function, *numbers) or Call(tree.function, given)
