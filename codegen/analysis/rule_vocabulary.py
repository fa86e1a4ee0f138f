# SPDX-License-Identifier: BSD-3-Clause
"""The words of the expressions of rules: kinds of values, operators, functions and attributes."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from ..errors import Errors
from ..spec.model import Line
from .needs import Needs

# Schema types that an expression may name, and what they are in it.
KINDS = {
    "Tensor": "tensor", "Tensor?": "tensor?", "Tensor[]": "tensors",
    "int": "int", "SymInt": "int", "int?": "int?", "SymInt?": "int?",
    "int[]": "shape", "SymInt[]": "shape", "bool": "bool", "bool[]": "bools",
    "float": "float", "float[]": "floats", "Scalar": "float", "str": "str", "str[]": "strs",
    "ScalarType": "dtype", "ScalarType?": "dtype?",
}  # fmt: skip
OPERATORS = {
    ast.Add: "({} + {})", ast.Sub: "({} - {})", ast.Mult: "({} * {})",
    ast.FloorDiv: "shape::floor_divide({}, {}, op, {text})",
    ast.Mod: "shape::modulo({}, {}, op, {text})",
}  # fmt: skip
DYNAMIC = "dynamic"  # a size that only values tell
LISTS = ("tensors", "shape", "floats", "strs", "bools")
COMPARISONS = {
    ast.Eq: ("==", "equal"), ast.NotEq: ("!=", "not_equal"), ast.Lt: ("<", "less"),
    ast.LtE: ("<=", "at_most"), ast.Gt: (">", "greater"), ast.GtE: (">=", "at_least"),
}  # fmt: skip
# With the operator's name in the errors that they raise.
_NAMED = "shape::named(op, [&] {{{{ return {}; }}}})"
# Functions: the kinds of their arguments ("..." repeats the one before it), the kind of the
# result, and the C++ of a call.
FUNCTIONS = {
    "broadcast": (("shape", "..."), "shape", _NAMED.format("shape::broadcast({})")),
    "replace": (("shape", "int", "int"), "shape", _NAMED.format("shape::replace({})")),
    "reduce": (("shape", "dims", "bool"), "shape", _NAMED.format("shape::reduce({})")),
    "cat": (("tensors", "int"), "shape", _NAMED.format("shape::cat({})")),
    "len": (("list",), "int", "shape::length({})"),
    "min": (("int", "int"), "int", "shape::smaller({})"),
    "max": (("int", "int"), "int", "shape::larger({})"),
    "promote": (("tensors or tensor", "..."), "dtype", "shape::promote({})"),
    "promote_to_float": (("tensors or tensor", "..."), "dtype", "shape::promote_to_float({})"),
}
ATTRIBUTES = {
    "shape": ("shape", "sym_sizes()"),
    "dim": ("int", "dim()"),
    "numel": ("int", "sym_numel()"),
    "dtype": ("dtype", "scalar_type()"),
}


class Mistake(Exception):
    """What is wrong with an expression, at an offset of its text."""

    def __init__(self, node: ast.AST, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.offset, self.message, self.hint = getattr(node, "col_offset", 0), message, hint


@dataclass(frozen=True)
class Value:
    """An expression's kind and its C++."""

    kind: str
    cpp: str
    uses: Needs = Needs()

    @property
    def as_tensor(self) -> Value:
        """A tensor that may be missing as one that is there."""
        if self.kind != "tensor?":
            return self
        return Value("tensor", f"*{self.cpp}", self.uses | Needs.of(self.cpp))


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


def literal(text: str, *, is_part: bool = False) -> str:
    """A text as a string of C++, on one line; a part of one keeps the spaces at its ends."""
    words = re.sub(r"\s+", " ", text) if is_part else " ".join(text.split())
    escaped = words.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def text_value(text: str) -> str:
    """A text as a value of C++, character for character."""
    data = text.encode()
    plain = {byte for byte in range(32, 127) if chr(byte) not in '"\\'}
    escaped = "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in data)
    return f'c10::string_view("{escaped}", {len(data)})'


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
