# SPDX-License-Identifier: BSD-3-Clause
"""The functions of expressions, read from functions.yaml."""

from __future__ import annotations

import ast
import dataclasses
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import Errors
from ..spec.yaml_reader import YamlReader
from .tree import (
    ELEMENT,
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
    kind: str = ""
    equals: str = ""  # the expression that is computed in its place
    reduces: str = ""  # how a row is reduced: a name of torchext/fused/rows.h
    refuses_empty: bool = False  # whether it has no value of a row without elements
    alike: str = ""  # what a reduction is of numbers that are all the same
    is_symmetric: bool = False  # whether a row's derivative is, as a matrix
    cost: str = ""
    gives: str = ""  # the dtype's category, where the arguments alone do not say it
    takes_bools: bool = False
    takes_complex: bool = False
    cpp: str = ""  # its name in torchext/fused/functions.h

    def formula(self, argument: str, is_complex: bool) -> str | None:
        """That of an argument's gradient; None where it has none."""
        own = self.formulas.get(argument)
        return self.formulas.get(f"{argument} (complex)", own) if is_complex else own

    @property
    def is_condition(self) -> bool:
        return self.kind == "condition"

    @property
    def is_real(self) -> bool:
        """Whether it makes floats of integers."""
        return self.kind == "real"

    @property
    def is_reduction(self) -> bool:
        """Whether it makes one number of a row."""
        return self.kind in ("reduction", "element")

    @property
    def makes_row(self) -> bool:
        """Whether it makes elements of what a row has, or of all of its elements."""
        return self.kind in ("row", "positions", "copies", "pieces", "total")

    @property
    def is_of_rows(self) -> bool:
        """Whether elements alone cannot be computed with it."""
        return self.is_reduction or self.makes_row or self.makes_result

    @property
    def takes_sizes(self) -> bool:
        """Whether of its second argument it asks the sizes only."""
        return self.kind in ("copies", "sizes", "total")

    @property
    def makes_result(self) -> bool:
        """Whether nothing is computed of what it makes."""
        return self.kind in ("pieces", "cast", "total")

    @property
    def is_slow(self) -> bool:
        """Whether its value is better kept than computed again."""
        return self.cost == "high" or self.is_real and self.cost != "low"

    @property
    def takes_part(self) -> bool:
        """Whether it is the real part of its second argument where the first one is real."""
        return self.kind == "part"

    @property
    def is_called(self) -> bool:
        """Whether it is a function by its name, and no operator by its sign."""
        return self.name not in SIGNS.values() and self.name != ELEMENT


@functools.cache
def _entries() -> tuple[dict[str, str], ...]:
    errors = Errors()
    reader = YamlReader(TABLE, TABLE.name, errors)
    found = [{key.value: value.value for key, value in n.value} for n in reader.entries() or ()]
    errors.raise_if_any()
    return tuple(found)


def computed_as() -> dict[str, str]:
    """Expressions, and those that are computed in their place."""
    entries = (entry for entry in _entries() if "expression" in entry)
    return {entry["expression"]: entry["equals"] for entry in entries}


@functools.cache
def unknown_names() -> dict[str, str]:
    """What to write in the place of a name that somebody may look for."""
    entries = (entry for entry in _entries() if "unknown" in entry)
    return {entry["unknown"]: entry["hint"] for entry in entries}


@functools.cache
def functions() -> dict[str, Function]:
    """All of them, by their names; an operator's is its sign, and `-x` that with one number."""
    found: dict[str, Function] = {}
    for entry in (dict(entry) for entry in _entries() if "function" in entry):
        head = ast.parse(entry.pop("function"), mode="eval").body
        said = {key: entry.pop(key, "") for key in _SAID}
        function = _function(head, entry)
        function = dataclasses.replace(
            function,
            kind=said["is"],
            equals=said["equals"],
            reduces=said["reduces"],
            refuses_empty=said["without_elements"] == "refused",
            alike=said["alike"],
            is_symmetric=said["jacobian"] == "symmetric",
            cost=said["cost"],
            takes_bools="bools" in said["takes"].split(", "),
            takes_complex="complex" in said["takes"].split(", "),
            gives=said["gives"],
            cpp=said["cpp"] or function.name,
        )
        found[function.name] = function
    return found


# The other keys are formulas.
_SAID = (
    "is", "cpp", "takes", "gives", "equals", "reduces", "without_elements", "alike", "jacobian",
    "cost",
)  # fmt: skip


def _function(head: ast.expr, formulas: dict[str, str]) -> Function:
    if isinstance(head, ast.Call):
        args = (arg.value if isinstance(arg, ast.Starred) else arg for arg in head.args)
        names = (*map(ast.unparse, args), *(str(k.arg) for k in head.keywords))
        name = ast.unparse(head.func)
        defaults = tuple(Number(ast.literal_eval(k.value)) for k in head.keywords)
    elif isinstance(head, ast.Subscript):
        name, names, defaults = ELEMENT, (ast.unparse(head.value), ast.unparse(head.slice)), ()
    else:
        sign, operands = _operator(head)
        name, names, defaults = SIGNS[type(sign)], tuple(map(ast.unparse, operands)), ()
    return Function(name, names, defaults, formulas)


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


_SUM = "kSum"


@functools.cache
def first_of(kind: str, reduces: str = "") -> str:
    """The first function of a kind."""
    known = functions().values()
    return next(f.name for f in known if f.kind == kind and f.reduces == reduces)


def positions() -> Tree:
    """The places of the elements of a row."""
    return Call(first_of("positions"), (Name(LENGTH),))


def summed(row: Tree) -> Tree:
    return Call(first_of("reduction", _SUM), (row,))


def refuses_empty(tree: Tree) -> bool:
    """Whether it has no value of a row without elements."""
    return isinstance(tree, Call) and functions()[tree.function].refuses_empty


def expanded(number: Tree, like: Tree) -> Tree:
    """A row of one number, as long as another."""
    return Call(first_of("copies"), (number, like))


def sized(value: Tree, like: Tree) -> Tree:
    """A value, in a call whose sizes are those of another too."""
    if isinstance(value, Call) and joins(value):
        first, *others = value.arguments
        return joined_rows((sized(first, like), *others))
    return Call(first_of("sizes"), (value, like))


def joined_rows(rows: Sequence[Tree]) -> Tree:
    """A row that consists of others, all of one length, one behind another."""
    return rows[0] if len(rows) == 1 else Call(first_of("pieces"), tuple(rows))


def total(row: Tree, like: Tree) -> Tree:
    """Rows, summed where those of a tensor are broadcast."""
    return Call(first_of("total"), (row, like))


def indices_of(*trees: Tree) -> set[Tree]:
    """The integers of rows by which expressions choose elements."""
    calls = (part for part in in_order(*trees) if isinstance(part, Call))
    return {call.arguments[1] for call in calls if call.function == ELEMENT}


def makes_result(tree: Tree) -> bool:
    """Whether nothing is computed of it."""
    return (
        isinstance(tree, Cast) or isinstance(tree, Call) and functions()[tree.function].makes_result
    )


def joins(tree: Tree) -> bool:
    """Whether it is a row that consists of others."""
    return isinstance(tree, Call) and functions()[tree.function].kind == "pieces"


def size_of(result: Tree) -> Tree | None:
    """The tensor whose size a result has, which is summed to it."""
    is_total = isinstance(result, Call) and functions()[result.function].kind == "total"
    return result.arguments[1] if is_total else None


def computed(result: Tree) -> Tree:
    """What a result is, before it is summed or cast."""
    if isinstance(result, Cast):
        return result.value
    return result if size_of(result) is None else result.arguments[0]


def made_as(result: Tree, value: Tree) -> Tree:
    """Another value, summed or cast as a result is; an argument whose dtype that has is named."""
    like = size_of(result)
    if isinstance(result, Cast):
        tensors = (part for part in in_order(result) if isinstance(part, (Name, OfRow, Slice)))
        own = next((tensor for tensor in tensors if tensor.name == result.dtype), None)
        is_named = own is None or result.dtype in names(value)
        return Cast(value if is_named else sized(value, own), result.dtype)
    return value if like is None else total(value, like)


def pieces(result: Tree) -> tuple[Tree, ...]:
    """The rows that a result consists of, before it is summed or cast: most are one."""
    value = computed(result)
    return value.arguments if isinstance(value, Call) and joins(value) else (value,)


def by_pieces(function: Callable[..., Tree], *results: Tree) -> Tree:
    """What a function makes of results, of each of the rows that they consist of."""
    return joined_rows([*map(function, *map(pieces, results))])
