# SPDX-License-Identifier: BSD-3-Clause
"""The expressions of `meta:`: Python's syntax, a few types, and the C++ that computes them.

Everything is computed with SymInt, so that one rule serves eager calls and traced ones. The
functions that the C++ calls are those of torchext/shape.h.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from . import cpp_names
from .dtypes import SCALAR_TYPES
from .errors import Errors, did_you_mean
from .model import Line
from .schema import Argument

# Schema types that an expression may name, and what they are in it.
_KINDS = {
    "Tensor": "tensor", "Tensor?": "tensor?", "Tensor[]": "tensors",
    "int": "int", "SymInt": "int", "int?": "int?", "SymInt?": "int?",
    "int[]": "shape", "SymInt[]": "shape", "bool": "bool", "bool[]": "bools",
    "ScalarType": "dtype", "ScalarType?": "dtype?",
}  # fmt: skip
_OPERATORS = {
    ast.Add: "({} + {})", ast.Sub: "({} - {})", ast.Mult: "({} * {})",
    ast.FloorDiv: "shape::floor_divide({}, {}, op, {text})",
    ast.Mod: "shape::modulo({}, {}, op, {text})",
}  # fmt: skip
COMPARISONS = {
    ast.Eq: ("==", "equal"), ast.NotEq: ("!=", "not_equal"), ast.Lt: ("<", "less"),
    ast.LtE: ("<=", "at_most"), ast.Gt: (">", "greater"), ast.GtE: (">=", "at_least"),
}  # fmt: skip
# Functions: the kinds of their arguments ("..." repeats the one before it), the kind of the
# result, and the C++ function.
_FUNCTIONS = {
    "broadcast": (("shape", "..."), "shape", "shape::broadcast"),
    "replace": (("shape", "int", "int"), "shape", "shape::replace"),
    "reduce": (("shape", "dims", "bool"), "shape", "shape::reduce"),
    "cat": (("tensors", "int"), "shape", "shape::cat"),
    "len": (("tensors",), "int", "shape::length"),
    "min": (("int", "int"), "int", "shape::smaller"),
    "max": (("int", "int"), "int", "shape::larger"),
    "promote": (("tensors or tensor", "..."), "dtype", "shape::promote"),
    "promote_to_float": (("tensors or tensor", "..."), "dtype", "shape::promote_to_float"),
}
_ATTRIBUTES = {
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
    uses: frozenset[str] = frozenset()  # optional tensors that must be there


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


class Translator:
    """Turns the expressions of one operator into C++."""

    def __init__(self, arguments: tuple[Argument, ...], text: str = "") -> None:
        self.arguments = {a.name: a for a in arguments}
        self.text = text

    def established(self, condition: ast.expr) -> frozenset[str]:
        """The optional values that are there where a condition holds."""
        return self._established(condition)[0]

    def value(self, node: ast.expr, *kinds: str) -> Value:
        """The C++ of an expression of one of these kinds; raises Mistake."""
        method: Callable[[ast.expr], Value] | None = getattr(self, type(node).__name__, None)
        if method is None:
            raise Mistake(node, f"'{ast.unparse(node)}' means nothing in a rule")
        found = method(node)
        if kinds and found.kind not in kinds:
            wanted = " or ".join(_article(kind) for kind in kinds)
            raise Mistake(node, f"expected {wanted}, got {_article(found.kind)}")
        return found

    def Name(self, node: ast.Name) -> Value:
        name = node.id
        if name in self.arguments:
            kind = _KINDS.get(self.arguments[name].type.bare().plain)
            if kind is None:
                type_ = self.arguments[name].type
                raise Mistake(node, f"a rule cannot use '{name}', which is a '{type_}'")
            label = cpp_names.parameter_name(name)
            return Value(kind, f"shape::sizes({label})" if kind == "shape" else label)
        if name in SCALAR_TYPES:
            return Value("dtype", f"at::ScalarType::{SCALAR_TYPES[name]}")
        hint = did_you_mean(name, [*self.arguments, *SCALAR_TYPES])
        hint = hint or did_you_mean(name, self.arguments, "the arguments are")
        raise Mistake(node, f"unknown argument '{name}'", hint)

    def Constant(self, node: ast.Constant) -> Value:
        if isinstance(node.value, bool):
            return Value("bool", "true" if node.value else "false")
        if isinstance(node.value, int):
            if node.value >= 1 << 63:
                raise Mistake(node, "a number that no integer of C++ can hold")
            return Value("int", str(node.value))
        raise Mistake(node, f"'{ast.unparse(node)}' means nothing in a rule")

    def UnaryOp(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.USub):
            value = self.value(node.operand, "int")
            is_number = isinstance(node.operand, ast.Constant)
            cpp = f"-{value.cpp}" if is_number else f"(-({value.cpp}))"
            return Value("int", cpp, value.uses)
        if isinstance(node.op, ast.Not):
            value = self.value(node.operand, "bool")
            return Value("bool", f"shape::negated({value.cpp})", value.uses)
        raise Mistake(node, f"'{ast.unparse(node)}' means nothing in a rule")

    def BinOp(self, node: ast.BinOp) -> Value:
        left = self.value(node.left, "int", "shape")
        right = self.value(node.right, left.kind)
        uses = left.uses | right.uses
        if left.kind == "shape":
            if not isinstance(node.op, ast.Add):
                raise Mistake(node, "shapes can be joined by + only")
            return Value("shape", f"shape::concat({left.cpp}, {right.cpp})", uses)
        form = _OPERATORS.get(type(node.op))
        if form is None:
            raise Mistake(node, f"'{ast.unparse(node)}' is none of + - * // %")
        text = f'"{ast.unparse(node)}"'
        if isinstance(node.left, (ast.Constant, ast.UnaryOp)):
            left = Value("int", f"c10::SymInt({left.cpp})", left.uses)
        cpp = form.format(left.cpp, right.cpp, text=text)
        return Value("int", cpp, uses)

    def Tuple(self, node: ast.Tuple | ast.List) -> Value:
        values = [self.value(item, "int") for item in node.elts]
        uses = frozenset().union(*(value.uses for value in values))
        return Value("shape", f"c10::SymDimVector{{{', '.join(v.cpp for v in values)}}}", uses)

    List = Tuple

    def Attribute(self, node: ast.Attribute) -> Value:
        value = self.value(node.value, "tensor", "tensor?")
        if node.attr not in _ATTRIBUTES:
            hint = did_you_mean(node.attr, _ATTRIBUTES, "it can be")
            raise Mistake(node, f"a tensor has no '{node.attr}' in a rule", hint)
        kind, call = _ATTRIBUTES[node.attr]
        is_optional = value.kind == "tensor?"
        uses = value.uses | ({value.cpp} if is_optional else frozenset())
        return Value(kind, f"{value.cpp}{'->' if is_optional else '.'}{call}", uses)

    def Subscript(self, node: ast.Subscript) -> Value:
        value = self.value(node.value, "shape", "bools", "tensors")
        if value.kind == "bools":
            index = node.slice
            name = node.value.id if isinstance(node.value, ast.Name) else ""
            size = self.arguments[name].type.bare().size
            number = index.value if isinstance(index, ast.Constant) else None
            if type(number) is not int or (size is not None and number >= size):
                raise Mistake(index, f"the index of a '{self.arguments[name].type}' is a number")
            return Value("bool", f"{value.cpp}[{number}]")
        if value.kind == "tensors":
            index_value = self.value(node.slice, "int")
            return Value("tensor", f"shape::item({value.cpp}, {index_value.cpp}, op)")
        if isinstance(node.slice, ast.Slice):
            return self._slice(value, node.slice)
        index_value = self.value(node.slice, "int")
        text = f'"{ast.unparse(node.value)}"'
        cpp = f"shape::size({value.cpp}, {index_value.cpp}, op, {text})"
        return Value("int", cpp, value.uses | index_value.uses)

    def _slice(self, value: Value, part: ast.Slice) -> Value:
        if part.step is not None:
            raise Mistake(part, "a slice of a shape has no step")
        ends = [self.value(e, "int") if e else None for e in (part.lower, part.upper)]
        texts = [end.cpp if end else "std::nullopt" for end in ends]
        uses = value.uses.union(*(end.uses for end in ends if end))
        return Value("shape", f"shape::slice({value.cpp}, {', '.join(texts)})", uses)

    def IfExp(self, node: ast.IfExp) -> Value:
        condition = self.value(node.test, "bool")
        then = self.value(node.body)
        other = self.value(node.orelse, then.kind)
        there, elsewhere = self._established(node.test)
        uses = condition.uses | (then.uses - there) | (other.uses - elsewhere)
        values = [v.cpp if v.kind != "shape" else f"shape::sizes({v.cpp})" for v in (then, other)]
        if then.kind == "int":
            values = [f"c10::SymInt({value})" for value in values]
        cpp = f"(shape::decided({condition.cpp}) ? {values[0]} : {values[1]})"
        return Value(then.kind, cpp, uses)

    def _established(self, test: ast.expr) -> tuple[frozenset[str], frozenset[str]]:
        """The optional values that are there where a condition holds, and where it does not."""
        nothing: frozenset[str] = frozenset()
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
            return nothing.union(*(self._established(part)[0] for part in test.values)), nothing
        if isinstance(test, ast.Compare) and isinstance(test.left, ast.Name):
            label = frozenset({cpp_names.parameter_name(test.left.id)})
            if isinstance(test.ops[0], ast.IsNot):
                return label, nothing
            if isinstance(test.ops[0], ast.Is):
                return nothing, label
        return nothing, nothing

    def BoolOp(self, node: ast.BoolOp) -> Value:
        first = self.value(node.values[0], "bool", "dtype?", "int?")
        if first.kind == "bool":
            return self._conditions(node)
        if not isinstance(node.op, ast.Or) or len(node.values) != 2:
            raise Mistake(node, f"a value that may be missing is used as '{ast.unparse(node)}'")
        kind = first.kind.rstrip("?")
        other = self.value(node.values[1], kind)
        type_ = "c10::SymInt" if kind == "int" else "at::ScalarType"
        cpp = f"({first.cpp}.has_value() ? {type_}(*{first.cpp}) : {type_}({other.cpp}))"
        return Value(kind, cpp, other.uses)

    def _conditions(self, node: ast.BoolOp) -> Value:
        """`and` and `or`, where what a missing value would decide is not looked at."""
        is_and = isinstance(node.op, ast.And)
        uses: frozenset[str] = frozenset()
        known: frozenset[str] = frozenset()
        parts = []
        for item in node.values:
            value = self.value(item, "bool")
            parts.append(value.cpp)
            uses |= value.uses - known
            known |= self._established(item)[0 if is_and else 1]
        cpp = parts[-1]
        for part in reversed(parts[:-1]):
            cpp = f"shape::{'both' if is_and else 'either'}({part}, [&] {{ return {cpp}; }})"
        return Value("bool", cpp, uses)

    def Compare(self, node: ast.Compare) -> Value:
        if len(node.ops) != 1:
            raise Mistake(node, "one comparison at a time")
        operator, right = node.ops[0], node.comparators[0]
        if isinstance(operator, (ast.Is, ast.IsNot)):
            return self._is_none(node, isinstance(operator, ast.IsNot))
        if type(operator) not in COMPARISONS:
            raise Mistake(node, f"'{ast.unparse(node)}' is no comparison of a rule")
        left = self.value(node.left, "int", "dtype", "shape")
        other = self.value(right, left.kind)
        sign, function = COMPARISONS[type(operator)]
        uses = left.uses | other.uses
        if left.kind != "int" and sign not in ("==", "!="):
            raise Mistake(node, f"{_article(left.kind)} is compared by == and != only")
        if left.kind == "dtype":
            return Value("bool", f"({left.cpp} {sign} {other.cpp})", uses)
        if left.kind == "shape":
            cpp = f"shape::same({left.cpp}, {other.cpp})"
            return Value("bool", cpp if sign == "==" else f"shape::negated({cpp})", uses)
        return Value("bool", f"shape::{function}({left.cpp}, {other.cpp})", uses)

    def _is_none(self, node: ast.Compare, negated: bool) -> Value:
        right = node.comparators[0]
        if not isinstance(right, ast.Constant) or right.value is not None:
            raise Mistake(right, "'is' compares with None only")
        value = self.value(node.left, "tensor?", "int?", "dtype?")
        return Value("bool", f"{'' if negated else '!'}shape::is_there({value.cpp})")

    def Call(self, node: ast.Call) -> Value:
        name = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
        if name not in _FUNCTIONS or node.keywords:
            hint = did_you_mean(name, _FUNCTIONS, "the functions are")
            raise Mistake(node, f"'{name}' is no function of a rule", hint)
        kinds, result, cpp = _FUNCTIONS[name]
        wanted = self._wanted(node, name, kinds)
        values = [self.value(arg, *kind) for arg, kind in zip(node.args, wanted)]
        uses = frozenset().union(*(value.uses for value in values))
        texts = [v.cpp for v in values]
        if kinds[-1] == "...":
            texts = [f"shape::sizes({t})" if kinds[0] == "shape" else t for t in texts]
        return Value(result, f"{cpp}({', '.join(texts)})", uses)

    def _wanted(self, node: ast.Call, name: str, kinds: tuple[str, ...]) -> list[tuple[str, ...]]:
        count = len(node.args)
        wanted = [kinds[0]] * count if kinds[-1] == "..." else list(kinds)
        if count != len(wanted) or count == 0:
            numbers = "one or more" if kinds[-1] == "..." else str(len(kinds))
            raise Mistake(node, f"'{name}' takes {numbers} arguments, got {count}")
        several = {"dims": ("int", "shape"), "tensors or tensor": ("tensors", "tensor", "tensor?")}
        return [several.get(kind, (kind,)) for kind in wanted]


def _article(kind: str) -> str:
    words = {
        "tensor": "a tensor", "tensor?": "a tensor that may be missing", "tensors": "tensors",
        "int": "an integer", "int?": "an integer that may be missing", "shape": "a shape",
        "bool": "a bool", "bools": "a list of bools", "dtype": "a dtype",
        "dtype?": "a dtype that may be missing",
    }  # fmt: skip
    return words[kind]
