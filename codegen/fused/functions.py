# SPDX-License-Identifier: BSD-3-Clause
"""The functions of expressions, read from functions.yaml."""

from __future__ import annotations

import ast
import dataclasses
import functools
from dataclasses import dataclass
from pathlib import Path

from ..errors import Errors
from ..spec.yaml_reader import YamlReader
from .tree import Call, Choice, IsMissing, Number, Tree

TABLE = Path(__file__).with_name("functions.yaml")
SIGNS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Mod: "%", ast.Pow: "**",
    ast.USub: "-x", ast.Not: "not",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.And: "and", ast.Or: "or",
}  # fmt: skip


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
    takes_bools: bool = False
    cpp: str = ""  # its name in torchext/fused/functions.h

    @property
    def is_called(self) -> bool:
        """Whether it is a function by its name, and no operator by its sign."""
        return self.name not in SIGNS.values()


@functools.cache
def functions() -> dict[str, Function]:
    """All of them, by their names; an operator's is its sign, and `-x` that with one number."""
    errors = Errors()
    reader = YamlReader(TABLE, TABLE.name, errors)
    found: dict[str, Function] = {}
    for node in reader.entries() or ():
        entry = {key.value: value.value for key, value in node.value}
        head = ast.parse(entry.pop("function"), mode="eval").body
        cpp, takes_bools = entry.pop("cpp", ""), "takes" in entry
        entry.pop("takes", None)
        function = _function(head, entry.pop("is", ""), entry)
        cpp = cpp or function.name
        function = dataclasses.replace(function, takes_bools=takes_bools, cpp=cpp)
        found[function.name] = function
    errors.raise_if_any()
    return found


def _function(head: ast.expr, kind: str, formulas: dict[str, str]) -> Function:
    if isinstance(head, ast.Call):
        names = (*map(ast.unparse, head.args), *(str(k.arg) for k in head.keywords))
        name = ast.unparse(head.func)
        defaults = tuple(Number(ast.literal_eval(k.value)) for k in head.keywords)
    else:
        sign, operands = _operator(head)
        name, names, defaults = SIGNS[type(sign)], tuple(map(ast.unparse, operands)), ()
    kinds = (kind == known for known in ("condition", "reduction", "real"))
    return Function(name, names, defaults, formulas, *kinds)


def _operator(head: ast.expr) -> tuple[ast.AST, list[ast.expr]]:
    """Its sign in Python, and what it is between."""
    if isinstance(head, ast.UnaryOp):
        return head.op, [head.operand]
    if isinstance(head, ast.BoolOp):
        return head.op, head.values
    if isinstance(head, ast.Compare):
        return head.ops[0], [head.left, *head.comparators]
    assert isinstance(head, ast.BinOp)
    return head.op, [head.left, head.right]


def is_condition(tree: Tree) -> bool:
    """Whether an expression holds or does not, where others have a number."""
    if isinstance(tree, Call):
        return functions()[tree.function].is_condition
    if isinstance(tree, Choice):
        return is_condition(tree.then) and is_condition(tree.other)
    return isinstance(tree, IsMissing)


def joins_conditions(tree: Call) -> bool:
    """Whether a call makes a condition of conditions."""
    return tree.function in ("and", "or", "not")
