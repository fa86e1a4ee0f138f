# SPDX-License-Identifier: BSD-3-Clause
"""An expression of elements as a value. Equal parts are equal values, so what stands several times
in an expression is computed once.

Whatever is derived from an expression is one again, in the same language: `text` writes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar
from weakref import WeakValueDictionary


@dataclass(frozen=True)
class Name:
    """An argument of the operator, or the value of another expression."""

    name: str


@dataclass(frozen=True)
class OfRow:
    """The number that an argument has for the row: `x[..., None]`."""

    name: str


@dataclass(frozen=True)
class Slice:
    """One of equal parts of the rows of an argument: `x[:n // 2]` is the first of two."""

    name: str
    index: int
    count: int


@dataclass(frozen=True, eq=False)
class Number:
    """A number or a bool that is written out: 1, 1.0 and True are three of them."""

    value: bool | int | float

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Number) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[type, str]:
        return type(self.value), repr(self.value)


class _Shared:
    """Equal ones are one object: what stands many times in an expression is compared in no time."""

    _made: ClassVar[WeakValueDictionary[tuple[object, ...], _Shared]] = WeakValueDictionary()

    def __new__(cls, *parts: object) -> _Shared:
        return cls._made.setdefault((cls, *parts), super().__new__(cls))


@dataclass(frozen=True, eq=False)
class Call(_Shared):
    """A function or an operator of the language, which `functions.yaml` lists."""

    function: str
    arguments: tuple[Tree, ...]


@dataclass(frozen=True, eq=False)
class Choice(_Shared):
    """One of two values, by a condition."""

    condition: Tree
    then: Tree
    other: Tree


@dataclass(frozen=True, eq=False)
class Cast(_Shared):
    """A result in another dtype than follows from what it is computed of: `to(x, int8)`."""

    value: Tree
    dtype: str  # torch's name, or that of an argument whose dtype it is


@dataclass(frozen=True)
class IsMissing:
    """Whether an optional argument is not given, which is known when the operator is called."""

    name: str


Tree = Name | OfRow | Slice | Number | Call | Choice | Cast | IsMissing

# How tightly operators bind, the loosest first, as in Python.
_LEVELS = {
    "or": 1, "and": 2, "not": 3, "<": 4, "<=": 4, ">": 4, ">=": 4, "==": 4, "!=": 4,
    "+": 5, "-": 5, "*": 6, "/": 6, "%": 6, "-x": 7, "**": 8,
}  # fmt: skip
_CHOICE, _ATOM = 0, 9
OPERATORS = frozenset(_LEVELS)
ELEMENT = "[]"  # of a row, which is written x[index]
CAST = "to"
LENGTH = "n"  # the name of the length of rows


def parts(tree: Tree) -> tuple[Tree, ...]:
    """The expressions that one is made of."""
    if isinstance(tree, Call):
        return tree.arguments
    if isinstance(tree, Choice):
        return (tree.condition, tree.then, tree.other)
    if isinstance(tree, Cast):
        return (tree.value,)
    return ()


def in_order(*trees: Tree) -> list[Tree]:
    """Every different part of expressions, each behind those that it is made of."""
    found: dict[Tree, None] = {}
    waiting: list[tuple[Tree, Iterator[Tree]]] = []
    for root in trees:
        waiting.append((root, iter(parts(root))))
        while waiting:
            tree, left = waiting[-1]
            part = next((p for p in left if p not in found), None)
            if part is None:
                waiting.pop()
                found.setdefault(tree)
            else:
                waiting.append((part, iter(parts(part))))
    return list(found)


def replaced(tree: Tree, values: Mapping[str, Tree]) -> Tree:
    """The expression with other values in the place of names."""
    return exchanged(tree, {Name(name): value for name, value in values.items()})


def exchanged(tree: Tree, values: Mapping[Tree, Tree]) -> Tree:
    """The expression with other parts in the place of some."""
    made: dict[Tree, Tree] = dict(values)
    for part in in_order(tree):
        if part not in made:
            made[part] = with_parts(part, made)
    return made[tree]


def with_parts(part: Tree, made: Mapping[Tree, Tree]) -> Tree:
    """An expression, made of others than its own parts."""
    if isinstance(part, Call):
        return Call(part.function, tuple(made[argument] for argument in part.arguments))
    if isinstance(part, Choice):
        return Choice(made[part.condition], made[part.then], made[part.other])
    if isinstance(part, Cast):
        return Cast(made[part.value], part.dtype)
    return part


def names(*trees: Tree) -> list[str]:
    """The names that expressions read, each once."""
    named = (Name, OfRow, Slice, IsMissing)
    found = [part.name for part in in_order(*trees) if isinstance(part, named)]
    return list(dict.fromkeys(found))


def text(tree: Tree, most: int | None = None) -> str:
    """The expression as it is written in a spec; most: so many characters, and an ellipsis, where
    what stands several times in it makes more."""
    made: dict[Tree, tuple[str, int]] = {}
    for part in in_order(tree):
        words, level = _written(part, made)
        is_cut = most is not None and len(words) > most
        made[part] = (f"{words[:most]}...", _ATOM) if is_cut else (words, level)
    return made[tree][0]


def _written(tree: Tree, made: dict[Tree, tuple[str, int]]) -> tuple[str, int]:
    """A part, whose own parts are written, and how tightly it binds."""

    def within(part: Tree, level: int) -> str:
        words, own = made[part]
        return words if own >= level else f"({words})"

    if isinstance(tree, Name):
        return tree.name, _ATOM
    if isinstance(tree, OfRow):
        return f"{tree.name}[..., None]", _ATOM
    if isinstance(tree, Slice):
        bounds = (_bound(tree.index, tree.count), _bound(tree.index + 1, tree.count))
        return f"{tree.name}[{':'.join(bounds)}]", _ATOM
    if isinstance(tree, Cast):
        return f"{CAST}({made[tree.value][0]}, {tree.dtype})", _ATOM
    if isinstance(tree, Number):
        is_negative = repr(tree.value).startswith("-")  # as -0.0 does
        return repr(tree.value), _LEVELS["-x"] if is_negative else _ATOM
    if isinstance(tree, IsMissing):
        return f"{tree.name} is None", _LEVELS["<"]
    if isinstance(tree, Choice):
        condition = within(tree.condition, _CHOICE + 1)
        then, other = within(tree.then, _CHOICE + 1), within(tree.other, _CHOICE)
        return f"{then} if {condition} else {other}", _CHOICE
    level = _LEVELS.get(tree.function)
    if tree.function == ELEMENT:
        row, index = tree.arguments
        assert isinstance(index, OfRow)
        return f"{within(row, _ATOM)}[{index.name}]", _ATOM
    if level is None:
        return f"{tree.function}({', '.join(made[a][0] for a in tree.arguments)})", _ATOM
    if len(tree.arguments) == 1:
        (argument,) = tree.arguments
        if tree.function == "not" and isinstance(argument, IsMissing):
            return f"{argument.name} is not None", _LEVELS["<"]
        sign = "-" if tree.function == "-x" else f"{tree.function} "
        return f"{sign}{within(argument, level)}", level
    left, right = tree.arguments
    is_right_bound = tree.function == "**"
    first = within(left, level + (is_right_bound or level == _LEVELS["<"]))
    second = within(right, level if is_right_bound else level + 1)
    return f"{first} {tree.function} {second}", level


def _bound(index: int, count: int) -> str:
    """Where a slice begins or ends; nothing where that is an end of the row."""
    if index in (0, count):
        return ""
    return f"{LENGTH} // {count}" if index == 1 else f"{index} * {LENGTH} // {count}"
