# SPDX-License-Identifier: BSD-3-Clause
"""Text to expressions: Python's syntax, an operator's arguments, and the functions of the table."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Set

from ..errors import did_you_mean
from .branches import chosen_as_known
from .constants import compared, computed, joined, negated
from .extents import Extent, extent
from .functions import SIGNS, Function, functions, is_condition, positions, unknown_names
from .results import result_of, shown
from .slices import WRITTEN, slice_of
from .tree import ELEMENT, LENGTH, Call, Choice, IsMissing, Name, Number, OfRow, Tree

MOST_CHARACTERS = 20_000
DEEPEST = 200  # so many expressions within one another
# What an argument is: a tensor, one that may be missing, or a number that all elements share.
KINDS = ("tensor", "tensor?", "Scalar", "float", "int", "bool")
_INSTEAD_OF_OPERATORS = {
    ast.BitXor: "a power is x ** y",
    ast.FloorDiv: "write 'floor_divide(x, y)'",
    ast.MatMult: "there are no products of matrices",
    ast.BitAnd: "conditions are joined by 'and'",
    ast.BitOr: "conditions are joined by 'or'",
}


class Mistake(Exception):
    """What is wrong with an expression, at an offset of its text."""

    def __init__(self, offset: int, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.offset, self.message, self.hint = offset, message, hint


def read(
    text: str,
    arguments: Mapping[str, str],
    local: Mapping[str, Tree] = {},
    of_rows: Set[str] | None = None,
) -> Tree:
    """The expression of a text; `local` are the values of names that it may use beside arguments.

    of_rows: the arguments that have one number for each row; None: there are no rows. Raises
    Mistake.
    """
    if len(text) > MOST_CHARACTERS:
        raise Mistake(0, f"an expression has at most {MOST_CHARACTERS} characters; name its parts")
    if "#" in text:
        raise Mistake(text.index("#"), "an expression has no comments: write them above its key")
    stripped = text.lstrip()
    before = len(text) - len(stripped)
    try:
        root = _parsed(text)
    except SyntaxError as error:
        offset = max((error.offset or 1) - 1, 0)
        raise Mistake(before + offset, f"not an expression: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError):
        raise Mistake(0, "an expression that is nested too deeply") from None
    reader = _Reader(stripped, arguments, local, of_rows)
    try:
        return reader.value(root)
    except Mistake as mistake:
        mistake.offset += before
        raise


def names_of_rows(text: str) -> set[str]:
    """The names in a text that have one number for each row: `x[..., None]`, and indices; none
    where it is no expression."""
    try:
        nodes = [node for node in ast.walk(_parsed(text)) if isinstance(node, ast.Subscript)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    found = (node.value if _is_of_row(node) else node.slice for node in nodes)
    return {node.id for node in found if isinstance(node, ast.Name)}


def _parsed(text: str) -> ast.expr:
    """Of a text of several lines too, whatever these begin with."""
    return ast.parse(text.strip().replace("\n", " "), mode="eval").body


def _is_of_row(node: ast.Subscript) -> bool:
    return ast.unparse(node.slice).strip("()") == "..., None"


class _Reader:
    """Reads one expression: a method for each kind of Python's."""

    def __init__(
        self,
        source: str,
        arguments: Mapping[str, str],
        local: Mapping[str, Tree],
        of_rows: Set[str] | None,
    ) -> None:
        self.arguments, self.local, self.of_rows = arguments, local, of_rows
        self.depth = 0
        self.source = source

    def value(self, node: ast.expr) -> Tree:
        """A number of each element, or a condition."""
        method = getattr(self, type(node).__name__, None)
        if method is None:
            raise self.mistake(node, f"'{shown(node)}' means nothing here")
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.mistake(node, "an expression that is nested too deeply; name its parts")
        found: Tree = method(node)
        self.depth -= 1
        return found

    def condition(self, node: ast.expr) -> Tree:
        found = self.value(node)
        if not self.is_condition(found):
            message = f"'{shown(node)}' is a number where a condition is needed"
            is_argument = isinstance(node, ast.Name) and self.arguments.get(node.id) == "tensor?"
            is_given = f"'{shown(node)} is not None' says whether it is given; "
            raise self.mistake(node, message, f"{is_given * is_argument}write '!= 0' behind it")
        return found

    def is_condition(self, tree: Tree) -> bool:
        """Whether it may stand as one: an argument that is a bool too."""
        if isinstance(tree, Choice):
            return self.is_condition(tree.then) and self.is_condition(tree.other)
        if isinstance(tree, Number):
            return isinstance(tree.value, bool)
        if isinstance(tree, Name):
            return self.arguments.get(tree.name) == "bool"
        return is_condition(tree)

    def mistake(self, node: ast.expr, message: str, hint: str | None = None) -> Mistake:
        return Mistake(len(self.source.encode()[: node.col_offset].decode()), message, hint)

    def Name(self, node: ast.Name) -> Tree:
        if node.id in self.local:
            return self.local[node.id]
        kind = self.arguments.get(node.id)
        if kind is None:
            known = [*self.arguments, *self.local]
            hint = did_you_mean(node.id, known) or did_you_mean(node.id, known, "the names are")
            raise self.mistake(node, f"unknown name '{node.id}'", hint)
        if kind not in KINDS:
            raise self.mistake(node, f"an expression cannot use '{node.id}', which is a '{kind}'")
        return OfRow(node.id) if self.of_rows and node.id in self.of_rows else Name(node.id)

    def Subscript(self, node: ast.Subscript) -> Tree:
        if self.of_rows is None:
            raise self.mistake(node, "elements are computed one by one, and have no index")
        if _is_of_row(node):
            found = self.value(node.value)
            if not isinstance(found, OfRow):
                raise self.mistake(node, "'[..., None]' stands behind the name of a tensor")
            return found
        row = self.value(node.value)
        if isinstance(node.slice, ast.Slice):
            return self._slice(node, row, node.slice)
        index = self.value(node.slice) if isinstance(node.slice, ast.Name) else None
        if not isinstance(index, OfRow):
            message = "an index is the name of a tensor that has one integer for each row"
            raise self.mistake(node.slice, message)
        self.check_elements(node.value, row)
        return Call(ELEMENT, (row, index))

    def _slice(self, node: ast.Subscript, row: Tree, bounds: ast.Slice) -> Tree:
        is_tensor = isinstance(row, Name) and self.arguments[row.name].startswith("tensor")
        if not isinstance(row, Name) or not is_tensor:
            message = f"'{shown(node.value)}' has no slices: an argument that has rows has"
            raise self.mistake(node, message, "write the slices within the expression")
        found = slice_of(row.name, bounds)
        if found is None:
            message = f"'{shown(node)}' is no slice: one of equal parts is"
            raise self.mistake(node, message, WRITTEN)
        return found

    def check_elements(self, node: ast.expr, tree: Tree) -> None:
        if extent(tree, self.arguments) is not Extent.ELEMENT:
            raise self.mistake(node, f"'{shown(node)}' is one number, and no row of them")

    def Constant(self, node: ast.Constant) -> Tree:
        value = node.value
        if type(value) not in (bool, int, float):
            raise self.mistake(node, f"'{shown(node)}' is no number")
        if not (math.isfinite(value) if isinstance(value, float) else abs(value) < 2**63):
            raise self.mistake(node, f"'{shown(node)}' is too large")
        return Number(value)

    def UnaryOp(self, node: ast.UnaryOp) -> Tree:
        if isinstance(node.op, ast.Not):
            return negated(self.condition(node.operand))
        if not isinstance(node.op, ast.USub):
            raise self.mistake(node, f"'{shown(node)}' means nothing here")
        operand = self.value(node.operand)
        if isinstance(operand, Number) and not isinstance(operand.value, bool):
            return Number(-operand.value)
        return Call("-x", (operand,))

    def BinOp(self, node: ast.BinOp) -> Tree:
        sign = SIGNS.get(type(node.op))
        if sign is None:
            hint = _INSTEAD_OF_OPERATORS.get(type(node.op))
            raise self.mistake(node, f"'{shown(node)}' is none of + - * / ** %", hint)
        return self.of_numbers(node, sign, (self.value(node.left), self.value(node.right)))

    def of_numbers(self, node: ast.expr, sign: str, both: tuple[Tree, ...]) -> Tree:
        """An operator on two values, computed where both are written out."""
        left, right = both
        if sign in ("/", "%") and isinstance(right, Number) and not right.value:
            raise self.mistake(node, "a division by zero")
        if not (isinstance(left, Number) and isinstance(right, Number)):
            return Call(sign, both)
        found = computed(sign, left, right)
        if found is None:
            raise self.mistake(node, f"'{shown(node)}' is no number, or is too large")
        return found

    def Compare(self, node: ast.Compare) -> Tree:
        if len(node.ops) != 1:
            raise self.mistake(node, "one comparison at a time", "join them with 'and'")
        operator, right = node.ops[0], node.comparators[0]
        if isinstance(operator, (ast.Is, ast.IsNot)):
            return self._is_none(node, right)
        sign = SIGNS.get(type(operator))
        if sign is None:
            raise self.mistake(node, f"'{shown(node)}' is no comparison of numbers")
        return compared(sign, (self.value(node.left), self.value(right)))

    def _is_none(self, node: ast.Compare, right: ast.expr) -> Tree:
        if not isinstance(right, ast.Constant) or right.value is not None:
            raise self.mistake(right, "'is' compares with None only")
        name = node.left.id if isinstance(node.left, ast.Name) else ""
        if self.arguments.get(name) != "tensor?":
            message = f"'{shown(node.left)}' is no argument that may be missing"
            raise self.mistake(node.left, message)
        found = IsMissing(name)
        return found if isinstance(node.ops[0], ast.Is) else negated(found)

    def BoolOp(self, node: ast.BoolOp) -> Tree:
        sign = SIGNS[type(node.op)]
        first, *rest = [self.condition(value) for value in node.values]
        for other in rest:
            first = joined(sign, first, other)
        return first

    def IfExp(self, node: ast.IfExp) -> Tree:
        condition = self.condition(node.test)
        both = self.value(node.body), self.value(node.orelse)
        return chosen_as_known(condition, *both, self.arguments)

    def Call(self, node: ast.Call) -> Tree:
        name = node.func.id if isinstance(node.func, ast.Name) else shown(node.func)
        function = functions().get(name)
        if function is not None and function.is_of_rows and self.of_rows is None:
            what = "makes one number of many" if function.is_reduction else "is of rows"
            message = f"'{name}' {what}: elements are computed one by one"
            raise self.mistake(node, message, "an operator with 'rows' in its place has rows")
        if function is None or name == ELEMENT:
            has_rows = self.of_rows is not None
            known = [n for n, f in functions().items() if f.is_called and n != ELEMENT]
            known = [n for n in known if functions()[n].kind not in ("given", "part")]
            known = [n for n in known if has_rows or not functions()[n].is_of_rows]
            plain = name.rpartition(".")[2]
            hint = unknown_names().get(plain) or did_you_mean(plain, known)
            hint = hint or did_you_mean(name, known, "the functions are")
            raise self.mistake(node, f"'{name}' is no function of an expression", hint)
        if function.makes_result:
            return result_of(self, node, function.kind)
        given = dict(zip(function.arguments, map(self.value, node.args)))
        for keyword in node.keywords:
            if keyword.arg not in function.arguments or keyword.arg in given:
                hint = did_you_mean(str(keyword.arg), function.arguments)
                message = f"'{name}' has no other '{keyword.arg}'"
                raise self.mistake(keyword.value, message, hint)
            given[str(keyword.arg)] = self.value(keyword.value)
        count = len(function.arguments)
        defaults = dict(
            zip(function.arguments[count - len(function.defaults) :], function.defaults)
        )
        given = {**defaults, **given}
        if len(node.args) > count or given.keys() != set(function.arguments):
            wanted = ", ".join(function.arguments)
            raise self.mistake(node, f"'{name}' takes ({wanted}), got {len(node.args)} arguments")
        found = Call(name, tuple(given[argument] for argument in function.arguments))
        if function.is_of_rows:
            self._check_rows(node, function, found)
        return found

    def _check_rows(self, node: ast.Call, function: Function, made: Call) -> None:
        """A reduction takes a row, and what makes a row takes a number."""
        if function.is_reduction or function.kind == "row":
            self.check_elements(node.args[0] if node.args else node, made.arguments[0])
        elif function.kind == "positions" and made != positions():
            raise self.mistake(node, f"a row has {LENGTH} elements: '{made.function}({LENGTH})'")
        for value in made.arguments[1:] if function.is_reduction else ():
            if extent(value, self.arguments) is not Extent.CALL:
                raise self.mistake(node, f"'{function.arguments[1]}' is one number for all rows")
