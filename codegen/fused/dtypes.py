# SPDX-License-Identifier: BSD-3-Clause
"""The dtype of an expression: which tensors are promoted, and how far up, as an operator of ATen
that takes them all does.

Tensors are promoted together first, as TensorIterator promotes its inputs; a function of real
numbers or a number of another kind then makes integers floats, or bools integers. What is in a
condition alone decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from ..spec.dtypes import SCALAR_TYPES
from .functions import functions, joins_conditions, positions
from .tree import (
    LENGTH,
    Call,
    Cast,
    Choice,
    IsMissing,
    Name,
    Number,
    OfRow,
    Slice,
    Tree,
    in_order,
    names,
)

# The dtypes that results are cast to; through those of 16 bits and more a gradient flows back.
SMOOTH_CASTS = {name: SCALAR_TYPES[name] for name in ("float16", "bfloat16", "float32", "float64")}
_FLOAT8 = ("float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz")
CASTS = ("uint8", "int8", "int16", "int32", "int64", *_FLOAT8, *SMOOTH_CASTS)


def cast_is_smooth(cast: Cast) -> bool:
    """Whether what is cast has a gradient: to the dtype of an argument it has."""
    return cast.dtype in SMOOTH_CASTS or is_of_argument(cast)


def is_of_argument(cast: Cast) -> bool:
    """Whether the dtype is that of an argument."""
    return cast.dtype not in CASTS


class Category(IntEnum):
    """Of dtypes, the lower ones promoted to the higher."""

    BOOL = 0
    INTEGER = 1
    FLOAT = 2


_OF_NUMBERS = {bool: Category.BOOL, int: Category.INTEGER, float: Category.FLOAT}
_OF_KINDS = {"bool": Category.BOOL, "int": Category.INTEGER, "float": Category.FLOAT}
_GIVEN = {"numbers": Category.INTEGER, "floats": Category.FLOAT}  # by functions, at least


@dataclass(frozen=True)
class Dtype:
    """A dtype that is known when the operator is called.

    tensors, numbers: the names of those that are promoted; numbers are Scalars of any kind.
    least: the category that the result has at least.
    is_bool: a condition, whatever it compares.
    cast: c10's name of the dtype that is asked for, whatever the others are.
    """

    tensors: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    least: Category = Category.BOOL
    is_bool: bool = False
    cast: str = ""


def dtype_of(tree: Tree, kinds: Mapping[str, str]) -> Dtype:
    """The dtype of an expression of arguments of these kinds."""
    made: dict[Tree, Dtype] = {}
    for part in in_order(tree):
        made[part] = _dtype(part, made, kinds)
    return made[tree]


def _dtype(tree: Tree, made: Mapping[Tree, Dtype], kinds: Mapping[str, str]) -> Dtype:
    if isinstance(tree, (OfRow, Slice)):
        return Dtype(tensors=(tree.name,))
    if isinstance(tree, Name):
        kind = kinds[tree.name]
        if kind in ("tensor", "tensor?"):
            return Dtype(tensors=(tree.name,))
        return Dtype(least=_OF_KINDS[kind]) if kind in _OF_KINDS else Dtype(numbers=(tree.name,))
    if isinstance(tree, Number):
        return Dtype(least=_OF_NUMBERS[type(tree.value)])
    if isinstance(tree, Choice):
        return _promoted(made[tree.then], made[tree.other])
    if isinstance(tree, Cast):
        is_known = not is_of_argument(tree)
        return Dtype(cast=SCALAR_TYPES[tree.dtype]) if is_known else Dtype((tree.dtype,))
    if isinstance(tree, IsMissing):
        return Dtype(is_bool=True)
    assert isinstance(tree, Call)
    function = functions()[tree.function]
    if function.is_condition:
        return Dtype(is_bool=True)
    if function.gives == "integers" or function.kind == "positions":
        return Dtype(least=Category.INTEGER)
    if function.kind in ("element", "copies", "sizes", "total"):
        return made[tree.arguments[0]]
    found = _promoted(*(made[part] for part in tree.arguments))
    own = Category.FLOAT if function.is_real else _GIVEN.get(function.gives, found.least)
    least = max(found.least, own)
    return Dtype(found.tensors, found.numbers, least)


def compared(trees: Iterable[Tree], kinds: Mapping[str, str]) -> tuple[Dtype, ...]:
    """The dtypes in which numbers are compared."""
    made: dict[Tree, Dtype] = {}
    found: dict[Dtype, None] = {}
    for part in in_order(*trees):
        made[part] = _dtype(part, made, kinds)
        is_comparison = isinstance(part, Call) and made[part].is_bool
        if is_comparison and not joins_conditions(part):
            own = _promoted(*(made[argument] for argument in part.arguments))
            found.setdefault(Dtype(own.tensors, own.numbers, own.least))
    return tuple(found)


def counts_elements(results: Iterable[Tree], kinds: Mapping[str, str]) -> tuple[bool, bool]:
    """Whether expressions of rows have integers that are as large as a row is long, its places too;
    and whether results or conditions do not do with numbers that are near those."""
    trees = tuple(results)
    made: dict[Tree, Dtype] = {}
    for part in in_order(*trees):
        made[part] = _dtype(part, made, kinds)
    counts = {part for part, dtype in made.items() if _is_of_rows(part) and _is_integer(dtype)}
    lengths = [tree for tree in trees if _is_whole(tree, made) and LENGTH in names(tree)]
    exact = [tree for tree in trees if _is_whole(tree, made)]
    for part in in_order(*trees):
        if isinstance(part, Call) and made[part].is_bool and not joins_conditions(part):
            # places are compared with integers as such
            exact += [value for value in part.arguments if value != positions()]
    is_exact = bool(lengths) or not counts.isdisjoint(in_order(*exact))
    return bool(counts or lengths), is_exact


def _is_of_rows(part: Tree) -> bool:
    return isinstance(part, Call) and functions()[part.function].is_of_rows


def _is_integer(dtype: Dtype) -> bool:
    """Whether it is one of no tensor."""
    return not (dtype.tensors or dtype.is_bool or dtype.cast) and dtype.least is Category.INTEGER


def _is_whole(result: Tree, made: Mapping[Tree, Dtype]) -> bool:
    is_cast = isinstance(result, Cast) and not cast_is_smooth(result)
    return is_cast or _is_integer(made[result])


def _promoted(*several: Dtype) -> Dtype:
    """Values of several dtypes together; of conditions alone a condition."""
    return Dtype(
        tuple(dict.fromkeys(name for one in several for name in one.tensors)),
        tuple(dict.fromkeys(name for one in several for name in one.numbers)),
        max(one.least for one in several),
        all(one.is_bool for one in several),
    )


def needed_for_all(trees: Iterable[Tree], kinds: Mapping[str, str]) -> Dtype:
    """The dtype in which expressions are computed together: that of every part, of conditions
    too, so that nothing is rounded before it is compared."""
    made: dict[Tree, Dtype] = {}
    for part in in_order(*trees):
        made[part] = _dtype(part, made, kinds)
    found = _promoted(*made.values())
    return Dtype(found.tensors, found.numbers, found.least)
