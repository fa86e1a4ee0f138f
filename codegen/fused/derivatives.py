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
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field

from .branches import Branch, added, either_of, is_known
from .complexes import conjugate, conjugated, is_conjugate, real_as_inner
from .constants import chosen, computed, joined, negated
from .extents import Extent, extent, extents
from .functions import expanded, functions, joined_rows, makes_result, pieces
from .reading import read
from .rows import reduced, with_formulas_of_tangents
from .sums import sum_of
from .tree import (
    LENGTH,
    OPERATORS,
    Call,
    Choice,
    IsMissing,
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

_ALWAYS, _ONE, _ZERO = Number(True), Number(1), Number(0)


class NotDifferentiable(Exception):
    """A derivative is asked for that no formula gives: that of this function once more."""


@dataclass(frozen=True)
class Arguments:
    """The kinds of arguments, without which they are tensors. of_rows: which have one number for
    each row; None: there are no rows. is_complex: whether tensors and Scalars may be complex."""

    kinds: Mapping[str, str] = field(default_factory=dict)
    of_rows: Set[str] | None = None
    is_complex: bool = False

    @property
    def has_rows(self) -> bool:
        return self.of_rows is not None

    def named(self, name: str) -> Tree:
        return OfRow(name) if name in (self.of_rows or ()) else Name(name)


def gradients(
    results: Mapping[str, Tree], names: Iterable[str], known: Arguments = Arguments()
) -> dict[str, Tree | None]:
    """The gradient to each name, of results whose own gradients are names: `results` are
    expressions by those. Of several results each may have none, which then is no zero that anything
    is multiplied by. None where nothing depends on it."""
    order = in_order(*results.values())
    extent_of = extents(known.kinds, *results.values()) if known.has_rows else {}
    of: dict[Tree, Branch] = {}
    of_elements: dict[Tree, Branch] = {}  # for what rows have, the gradients of elements
    for name, result in results.items():
        when = negated(IsMissing(name)) if len(results) > 1 else _ALWAYS
        for piece, grad in _of_pieces(result, known.named(name)):
            _add(of, piece, Branch(grad, when))
    for part in reversed(order):
        if part in of_elements:
            _add(of, part, _of_sum(of_elements[part], known))
        grad = of.get(part)
        if grad is not None:
            for inner, value in _inner_gradients(part, grad, known):
                if known.is_complex:
                    grad_of_inner = real_as_inner(value.value, inner, part, known.kinds)
                    value = Branch(grad_of_inner, value.when)
                is_less = known.has_rows and extent_of[inner] < extent_of[part]
                is_of_elements = is_less and extent_of[part] is Extent.ELEMENT
                _add(of_elements if is_of_elements else of, inner, value)
    slices = slices_of(results.values())
    found: dict[str, Tree | None] = {}
    for name in names:
        whole = slices.get(name, [known.named(name)])
        own = [_of_argument(of.get(part), part, known) for part in whole]
        is_any = any(grad is not None for grad in own)
        found[name] = joined_rows([grad or _ZERO for grad in own]) if is_any else None
    return found


def _of_sum(grad: Branch, known: Arguments) -> Branch:
    return Branch(simplified(sum_of(grad.value, known.kinds)), grad.when)


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


def _of_argument(grad: Branch | None, name: Tree, known: Arguments) -> Tree | None:
    """A gradient for each element of an argument that has some."""
    if grad is None:
        return None
    whole = grad.everywhere()
    if not known.has_rows or isinstance(name, OfRow):
        return whole
    is_row = extent(whole, known.kinds) is Extent.ELEMENT
    return whole if is_row else expanded(whole, name)


def tangent(
    result: Tree, tangents: Mapping[str, Tree], known: Arguments = Arguments()
) -> Tree | None:
    """The tangent of a result, by those of the arguments that have one; None where it has none."""
    result = with_formulas_of_tangents(result)
    of: dict[Tree, Branch] = {}
    slices = slices_of([result])
    for name, value in tangents.items():
        for part in slices.get(name, [known.named(name)]):
            of[part] = _given(_sliced(value, part) if isinstance(part, Slice) else value)
    for part in in_order(result):
        if isinstance(part, Choice):
            for value in _chosen_tangents(part, of, known):
                _add(of, part, value)
        elif isinstance(part, Call) and not makes_result(part):
            for index, inner in enumerate(part.arguments):
                given = of.get(inner)
                formula = (
                    _formula(part.function, index, known.is_complex) if given is not None else None
                )
                if formula is not None and given is not None:
                    value = Branch(_applied(formula, part, given.value), given.when)
                    is_sum = known.has_rows and functions()[part.function].is_reduction
                    _add(of, part, _of_sum(value, known) if is_sum else value)
    own = [of.get(piece) for piece in pieces(result)]
    is_any = any(value is not None for value in own)
    return joined_rows([v.everywhere() if v else _ZERO for v in own]) if is_any else None


def _given(value: Tree) -> Branch:
    """A tangent that may be missing, which then is no part of a sum."""
    if isinstance(value, Choice) and value.then == _ZERO:
        return Branch(value.other, negated(value.condition))
    return Branch(value)


def _chosen_tangents(part: Choice, of: Mapping[Tree, Branch], known: Arguments) -> Iterator[Branch]:
    then, other = of.get(part.then), of.get(part.other)
    if is_known(part.condition, known.kinds):
        if then is not None:
            yield then.within(part.condition)
        if other is not None:
            yield other.within(negated(part.condition))
    elif then is not None or other is not None:
        yield either_of(part.condition, then, other)


def _sliced(value: Tree, like: Slice) -> Tree:
    """A tangent that is given for whole rows, for a slice of them."""
    rows = [part for part in in_order(value) if isinstance(part, Name)]
    return exchanged(value, {row: Slice(row.name, like.index, like.count) for row in rows})


def _inner_gradients(part: Tree, grad: Branch, known: Arguments) -> Iterator[tuple[Tree, Branch]]:
    """The gradients of what an expression is made of."""
    if isinstance(part, Choice) and is_known(part.condition, known.kinds):
        yield part.then, grad.within(part.condition)
        yield part.other, grad.within(negated(part.condition))
    elif isinstance(part, Choice):
        then, other = ((grad.value, _ZERO), (_ZERO, grad.value))
        yield part.then, Branch(simplified(Choice(part.condition, *then)), grad.when)
        yield part.other, Branch(simplified(Choice(part.condition, *other)), grad.when)
    elif isinstance(part, Call):
        for index, inner in enumerate(part.arguments):
            formula = _formula(part.function, index, known.is_complex)
            if formula is not None and not _is_constant(inner):
                formula = conjugated(formula) if known.is_complex else formula
                value = _applied(formula, part, grad.value)
                yield (
                    inner,
                    Branch(reduced(value, known.kinds) if known.has_rows else value, grad.when),
                )


def _is_constant(tree: Tree) -> bool:
    return not isinstance(tree, (Name, OfRow, Slice)) and not parts(tree)


def _add(of: dict[Tree, Branch], part: Tree, value: Branch) -> None:
    if value.value != _ZERO:
        of[part] = added(of[part], value) if part in of else value


@functools.cache
def _formula(name: str, index: int, is_complex: bool) -> Tree | None:
    """The formula for an argument of a function, of the names of its arguments, and `result`."""
    function = functions()[name]
    if function.kind == "given":
        raise NotDifferentiable(_made_for(name))
    text = function.formula(function.arguments[index], is_complex)
    known = dict.fromkeys((*function.arguments, "grad", "result"), "tensor")
    known[LENGTH] = "int"
    rows = frozenset() if function.is_of_rows else None
    return None if text is None else read(text, known, of_rows=rows)


def _made_for(name: str) -> str:
    """The function in whose expressions one stands that only they have."""
    return next(
        f.name
        for f in functions().values()
        if any(name in t for t in (f.equals, *f.formulas.values()))
    )


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
    if is_conjugate(tree):
        return given[0] if isinstance(given[0], Number) else conjugate(given[0])
    numbers = [part for part in given if isinstance(part, Number)]
    is_operator = tree.function in OPERATORS and len(numbers) == len(given) == 2
    return is_operator and computed(tree.function, *numbers) or Call(tree.function, given)
