# SPDX-License-Identifier: BSD-3-Clause
"""Sums of the elements of rows, as derivatives have them.

What a row has one number of is taken out of a sum: `sum(x * s) = s * sum(x)`. So the sum needs not
wait for that number, and a row is gone over less often: in the gradient of a normalization all sums
are of the same pass.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace

from .extents import Extent, extents
from .functions import summed
from .tree import LENGTH, Call, Choice, Name, Number, Tree, in_order


def sum_of(value: Tree, kinds: Mapping[str, str]) -> Tree:
    """The sum of a row, of which all elements may be one number."""
    extent = extents(kinds, value)
    found = _Found({}, {}, {p for p, own in extent.items() if own is Extent.ELEMENT})
    for part in in_order(value):
        found.products[part] = found.product(part)
        found.sums[part] = found.sum(part)
    return found.sums[value]


@dataclass(frozen=True)
class _Product:
    """Elements that are multiplied, and what rows have one number of: factors and divisors."""

    elements: tuple[Tree, ...] = ()
    factors: tuple[Tree, ...] = ()
    divisors: tuple[Tree, ...] = ()
    is_negative: bool = False


@dataclass(frozen=True)
class _Found:
    """The products and the sums of parts, each behind those that it is made of."""

    products: dict[Tree, _Product]
    sums: dict[Tree, Tree]
    elements: set[Tree]  # which are computed for each element

    def product(self, tree: Tree) -> _Product:
        if tree not in self.elements:
            return _Product(factors=(tree,))
        function = tree.function if isinstance(tree, Call) else ""
        given = [self.products[part] for part in tree.arguments] if isinstance(tree, Call) else []
        if function == "*":
            left, right = given
            return _Product(
                left.elements + right.elements,
                left.factors + right.factors,
                left.divisors + right.divisors,
                left.is_negative != right.is_negative,
            )
        if function == "-x":
            return replace(given[0], is_negative=not given[0].is_negative)
        if function == "/" and not given[1].elements:
            return replace(given[0], divisors=(*given[0].divisors, tree.arguments[1]))
        return _Product((tree,))

    def sum(self, tree: Tree) -> Tree:
        if tree not in self.elements:
            return tree if tree == Number(0) else Call("*", (tree, Name(LENGTH)))
        if isinstance(tree, Choice) and tree.condition not in self.elements:
            return Choice(tree.condition, self.sums[tree.then], self.sums[tree.other])
        if isinstance(tree, Call) and tree.function in ("+", "-"):
            if not self.elements.issuperset(tree.arguments):
                return summed(tree)  # of differences that are small beside what they are between
            both = tuple(self.sums[part] for part in tree.arguments)
            is_gained = both != tuple(map(summed, tree.arguments))
            return Call(tree.function, both) if is_gained else summed(tree)
        product = self.products[tree]
        if not product.factors and not product.divisors and not product.is_negative:
            return summed(tree)
        first, *others = product.elements
        value = self.sums[first]
        if others:
            value = summed(functools.reduce(lambda a, b: Call("*", (a, b)), others, first))
        for factor in product.factors:
            value = Call("*", (factor, value))
        for divisor in product.divisors:
            value = Call("/", (value, divisor))
        return Call("-x", (value,)) if product.is_negative else value
