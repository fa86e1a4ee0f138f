# SPDX-License-Identifier: BSD-3-Clause
"""Calls that make a whole result, of which nothing else is computed: rows that are joined, casts,
and sums over rows."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Protocol

from ..errors import did_you_mean
from .dtypes import CASTS
from .extents import Extent, extent
from .functions import indices_of, joined_rows, total
from .tree import CAST, Cast, Name, Number, OfRow, Tree, names


class Reader(Protocol):
    """What reads the arguments of a call."""

    arguments: Mapping[str, str]

    def value(self, node: ast.expr) -> Tree: ...
    def check_elements(self, node: ast.expr, tree: Tree) -> None: ...
    def mistake(self, node: ast.expr, message: str, hint: str | None = None) -> Exception: ...


def result_of(reader: Reader, node: ast.Call, kind: str) -> Tree:
    """The result that a call of a function of a kind makes."""
    return {"pieces": _pieces, "cast": _cast, "total": _total}[kind](reader, node)


def _pieces(reader: Reader, node: ast.Call) -> Tree:
    found = tuple(map(reader.value, node.args))
    if node.keywords or len(found) < 2 or all(isinstance(one, Number) for one in found):
        raise reader.mistake(node, f"'{shown(node)}' joins rows, at least two of them")
    for argument, one in zip(node.args, found):
        if not isinstance(one, Number):
            reader.check_elements(argument, one)
    return joined_rows(found)


def _cast(reader: Reader, node: ast.Call) -> Tree:
    if len(node.args) != 2 or node.keywords:
        raise reader.mistake(node, f"'{shown(node)}' is no cast: '{CAST}(x, int8)' is one")
    value, dtype = reader.value(node.args[0]), shown(node.args[1])
    if dtype in reader.arguments:
        if dtype in CASTS:
            raise reader.mistake(node.args[1], f"'{dtype}' is a dtype, and an argument here")
        if reader.arguments[dtype] != "tensor":
            raise reader.mistake(node.args[1], f"'{dtype}' is no Tensor that is always given")
        if OfRow(dtype) in indices_of(value):
            raise reader.mistake(node.args[1], f"'{dtype}' is an index, and has integers")
        if dtype not in names(value):
            message = f"nothing that is cast to the dtype of '{dtype}' is computed of it"
            raise reader.mistake(node.args[1], message)
    elif dtype not in CASTS:
        tensors = [name for name, kind in reader.arguments.items() if kind == "tensor"]
        hint = did_you_mean(dtype.rpartition(".")[2], (*CASTS, *tensors))
        hint = hint or did_you_mean(dtype, CASTS, "the dtypes are")
        raise reader.mistake(node.args[1], f"results are cast to no '{dtype}'", hint)
    return Cast(value, dtype)


def _total(reader: Reader, node: ast.Call) -> Tree:
    found = [reader.value(argument) for argument in node.args]
    like = found[1] if len(found) == 2 and not node.keywords else None
    if not isinstance(like, Name) or not reader.arguments[like.name].startswith("tensor"):
        message = f"'{shown(node)}' sums no rows to the size of an argument that has some"
        raise reader.mistake(node, message)
    if extent(found[0], reader.arguments) is not Extent.ELEMENT:
        message = f"'{shown(node.args[0])}' is one number, and no row of them"
        raise reader.mistake(node.args[0], message)
    return total(found[0], like)


def shown(node: ast.expr) -> str:
    """The text of an expression, cut where it is long."""
    words = ast.unparse(node)
    return words if len(words) <= 60 else f"{words[:57]}..."
