# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of expressions, as expressions.

Reverse mode goes from the result to the arguments as autograd does, part by part, with the formulas
of functions.yaml: so what is rounded, and where, is what it is where the expression is written with
torch's operators. A formula is linear in `grad`, element by element, so that the same ones give the
tangent. What has no gradient is None, which is no zero that anything is multiplied by.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping

from .constants import chosen, computed, joined, negated
from .functions import functions
from .reading import read
from .tree import OPERATORS, Call, Choice, Name, Number, Tree, in_order, parts, replaced

_ONE, _ZERO = Number(1), Number(0)


def gradients(results: Mapping[str, Tree], names: Iterable[str]) -> dict[str, Tree | None]:
    """The gradient to each name, of results whose own gradients are names: `results` are
    expressions by those. None where nothing depends on it."""
    order = in_order(*results.values())
    of: dict[Tree, Tree] = {}
    for name, result in results.items():
        _add(of, result, Name(name))
    for part in reversed(order):
        grad = of.get(part)
        if grad is not None:
            for inner, value in _inner_gradients(part, grad):
                _add(of, inner, value)
    return {name: of.get(Name(name)) for name in names}


def tangent(result: Tree, tangents: Mapping[str, Tree]) -> Tree | None:
    """The tangent of a result, by those of the arguments that have one; None where it has none."""
    of: dict[Tree, Tree] = {Name(name): value for name, value in tangents.items()}
    for part in in_order(result):
        if isinstance(part, Choice):
            then, other = of.get(part.then), of.get(part.other)
            if then is not None or other is not None:
                of[part] = Choice(part.condition, then or _ZERO, other or _ZERO)
        elif isinstance(part, Call):
            for index, inner in enumerate(part.arguments):
                given = of.get(inner)
                formula = _formula(part.function, index) if given is not None else None
                if formula is not None and given is not None:
                    _add(of, part, _applied(formula, part, given))
    return of.get(result)


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
    return not isinstance(tree, Name) and not parts(tree)


def _add(of: dict[Tree, Tree], part: Tree, value: Tree) -> None:
    if value != _ZERO:
        of[part] = Call("+", (of[part], value)) if part in of else value


@functools.cache
def _formula(name: str, index: int) -> Tree | None:
    """The formula for an argument of a function, of the names of its arguments, and `result`."""
    function = functions()[name]
    text = function.formulas.get(function.arguments[index])
    known = dict.fromkeys((*function.arguments, "grad", "result"), "float")
    return None if text is None else read(text, known)


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
