# SPDX-License-Identifier: BSD-3-Clause
"""The words of the expressions of rules: kinds of values, operators, functions and attributes."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from ..errors import Errors
from ..plan.expressions import Expression, Named, Needs, Present
from ..spec.model import Line

# Schema types that an expression may name, and what they are in it.
KINDS = {
    "Tensor": "tensor", "Tensor?": "tensor?", "Tensor[]": "tensors",
    "int": "int", "SymInt": "int", "int?": "int?", "SymInt?": "int?",
    "int[]": "shape", "SymInt[]": "shape", "bool": "bool", "bool[]": "bools",
    "float": "float", "float[]": "floats", "Scalar": "float", "str": "str", "str[]": "strs",
    "ScalarType": "dtype", "ScalarType?": "dtype?",
}  # fmt: skip
OPERATORS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "floor_divide", ast.Mod: "modulo",
}  # fmt: skip
DYNAMIC = "dynamic"  # a size that only values tell
LISTS = ("tensors", "shape", "floats", "strs", "bools")
COMPARISONS = {
    ast.Eq: ("==", "equal"), ast.NotEq: ("!=", "not_equal"), ast.Lt: ("<", "less"),
    ast.LtE: ("<=", "at_most"), ast.Gt: (">", "greater"), ast.GtE: (">=", "at_least"),
}  # fmt: skip
# Functions: the kinds of their arguments ("..." repeats the one before it), the kind of the
# result, and the function of torchext/shape.h.
FUNCTIONS = {
    "broadcast": (("shape", "..."), "shape", "broadcast"),
    "replace": (("shape", "int", "int"), "shape", "replace"),
    "reduce": (("shape", "dims", "bool"), "shape", "reduce"),
    "cat": (("tensors", "int"), "shape", "cat"),
    "len": (("list",), "int", "length"),
    "min": (("int", "int"), "int", "smaller"),
    "max": (("int", "int"), "int", "larger"),
    "promote": (("tensors or tensor", "..."), "dtype", "promote"),
    "promote_to_float": (("tensors or tensor", "..."), "dtype", "promote_to_float"),
}
# Attributes of a tensor, and the kinds of their values.
ATTRIBUTES = {"shape": "shape", "dim": "int", "numel": "int", "dtype": "dtype"}


class Mistake(Exception):
    """What is wrong with an expression, at an offset of its text."""

    def __init__(self, node: ast.AST, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.offset, self.message, self.hint = getattr(node, "col_offset", 0), message, hint


@dataclass(frozen=True)
class Value:
    """An expression's kind, what computes it, and the optional arguments that it reads."""

    kind: str
    expression: Expression
    uses: Needs = Needs()

    @property
    def as_tensor(self) -> Value:
        """A tensor that may be missing as one that is there."""
        if self.kind != "tensor?":
            return self
        return Value("tensor", Present(self.expression), self.uses | self.itself)

    @property
    def itself(self) -> Needs:
        """The need for a tensor that may be missing."""
        assert isinstance(self.expression, Named)
        return Needs.of(self.expression.name)


def parse(line: Line, errors: Errors) -> ast.expr | None:
    """The expression on a line; a mistake of syntax is noted."""
    try:
        return ast.parse(line.text.strip(), mode="eval").body
    except SyntaxError as error:
        offset = max((error.offset or 1) - 1, 0)
        errors.add(line.at(offset), f"not an expression: {error.msg}")
    except (ValueError, RecursionError, MemoryError):
        errors.add(line.location, "not an expression that can be read")
    return None


def article(kind: str) -> str:
    """The words for a kind of value."""
    words = {
        "tensor": "a tensor", "tensor?": "a tensor that may be missing", "tensors": "tensors",
        "size": "a dynamic size", "int": "an integer", "int?": "an integer that may be missing",
        "shape": "a shape", "float": "a number", "floats": "a list of numbers", "str": "a text",
        "strs": "a list of texts", "bool": "a bool", "bools": "a list of bools",
        "dtype": "a dtype", "dtype?": "a dtype that may be missing",
    }  # fmt: skip
    return words[kind]
