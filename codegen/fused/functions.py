# SPDX-License-Identifier: BSD-3-Clause
"""The functions of expressions, read from functions.yaml."""

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass
from pathlib import Path

from ..errors import Errors
from ..spec.yaml_reader import YamlReader
from .tree import Number

TABLE = Path(__file__).with_name("functions.yaml")
SIGNS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Mod: "%", ast.Pow: "**",
    ast.USub: "-x", ast.Not: "not",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.And: "and", ast.Or: "or",
}  # fmt: skip
CONDITIONS = frozenset(("<", "<=", ">", ">=", "==", "!=", "and", "or", "not"))


@dataclass(frozen=True)
class Function:
    """A function or an operator, and the formulas of its gradients, by argument."""

    name: str
    arguments: tuple[str, ...]
    defaults: tuple[Number, ...]  # of the last ones
    formulas: dict[str, str]
    is_condition: bool = False
    is_reduction: bool = False
    is_real: bool = False  # of integers it makes floats


@functools.cache
def functions() -> dict[str, Function]:
    """All of them, by their names; an operator's is its sign, and `-x` that with one number."""
    errors = Errors()
    reader = YamlReader(TABLE, TABLE.name, errors)
    found: dict[str, Function] = {}
    for node in reader.entries() or ():
        entry = {key.value: value.value for key, value in node.value}
        head = ast.parse(entry.pop("function"), mode="eval").body
        function = _function(head, entry.pop("is", ""), entry)
        found[function.name] = function
    errors.raise_if_any()
    return found


def _function(head: ast.expr, kind: str, formulas: dict[str, str]) -> Function:
    if isinstance(head, ast.BinOp):
        names = tuple(ast.unparse(side) for side in (head.left, head.right))
        return Function(SIGNS[type(head.op)], names, (), formulas, is_real=kind == "real")
    if isinstance(head, ast.UnaryOp):
        return Function(SIGNS[type(head.op)], (ast.unparse(head.operand),), (), formulas)
    assert isinstance(head, ast.Call)
    names = tuple(ast.unparse(a) for a in head.args) + tuple(str(k.arg) for k in head.keywords)
    defaults = tuple(Number(ast.literal_eval(k.value)) for k in head.keywords)
    name = ast.unparse(head.func)
    kinds = (kind == known for known in ("condition", "reduction", "real"))
    return Function(name, names, defaults, formulas, *kinds)
