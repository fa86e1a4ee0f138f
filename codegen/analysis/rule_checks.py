# SPDX-License-Identifier: BSD-3-Clause
"""`check:` of a rule: conditions of the arguments, as calls that raise in the operator's name."""

from __future__ import annotations

import ast
import string
from collections.abc import Iterator

from ..errors import Errors
from ..spec.model import Check
from .needs import Needs
from .rule_expressions import Translator
from .rule_vocabulary import COMPARISONS, Mistake, Value, literal, parse

# What may have no value.
_MAY_FAIL = (ast.Subscript, ast.Call, ast.FloorDiv, ast.Mod)
_DIMS = {"==": "", ">=": "at least ", "<=": "at most ", ">": "more than ", "<": "less than "}
_SHOWN = ("int", "shape", "dtype", "float", "str", "bool")


def _values_in(node: ast.expr) -> Iterator[ast.expr]:
    """The values that a condition names and every call has: arguments, `x.dim`, all of `x.shape`
    for `x.shape[1]`, since where the condition does not hold there may be no such item."""
    if isinstance(node, (ast.Attribute, ast.Name)):
        if not any(isinstance(part, ast.Subscript) for part in ast.walk(node)):
            yield node
        return
    for part in ast.iter_child_nodes(node):
        if isinstance(part, ast.expr) and not (isinstance(node, ast.Call) and part is node.func):
            yield from _values_in(part)


def _shown(value: Value) -> str:
    """A value as a message has it."""
    is_shown = value.kind in ("shape", "bool", "float")
    return f"shape::shown({value.cpp})" if is_shown else value.cpp


class RuleChecks:
    """The checks of one rule."""

    def __init__(self, translator: Translator, errors: Errors) -> None:
        self.translator, self.errors = translator, errors

    def statements(self, line: Check) -> Iterator[str]:
        """The statements that make a check; mistakes are noted."""
        node = parse(line, self.errors)
        if node is None:
            return
        try:
            call, uses = self._check_call(node, line.message)
        except Mistake as mistake:
            self.errors.add(line.at(mistake.offset), mistake.message, mistake.hint)
            return
        except RecursionError:
            self.errors.add(line.location, "not an expression that can be read")
            return
        if uses:
            yield from (f"if ({uses.given}) {{", f"  {call};", "}")
        else:
            yield f"{call};"

    def _check_call(self, node: ast.expr, message: str | None) -> tuple[str, Needs]:
        """The call that makes a check, and the optional tensors without which it is left out."""
        value = self.translator.value
        if message is not None:
            return self._check_with_words(node, message)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            if node.func.id == "floating" and len(node.args) == 1:
                tensor = value(node.args[0], "tensor", "tensor?").as_tensor
                start = f'op, "{ast.unparse(node.args[0])}", {tensor.cpp}'
                return f"shape::check_floating({start})", tensor.uses
            if node.func.id == "has_dim" and len(node.args) == 2:
                tensor, dim = value(node.args[0], "tensor"), value(node.args[1], "int")
                return f"shape::check_dim({tensor.cpp}, {dim.cpp})", tensor.uses | dim.uses
        condition = value(node, "bool")
        if not isinstance(node, ast.Compare) or type(node.ops[0]) not in COMPARISONS:
            return self._compound(node, condition), condition.uses
        return self._comparison(node, condition), condition.uses

    def _comparison(self, node: ast.Compare, condition: Value) -> str:
        value = self.translator.value
        sign, left, right = COMPARISONS[type(node.ops[0])][0], node.left, node.comparators[0]
        if isinstance(left, ast.Attribute) and isinstance(left.value, ast.Name):
            tensor = value(left.value, "tensor", "tensor?").as_tensor
            start = f'op, "{left.value.id}", {tensor.cpp}'
            expected = value(right)
            if left.attr == "shape" and sign == "==":
                return f"shape::check_shape({start}, {expected.cpp})"
            if left.attr == "dim" and sign in _DIMS:
                how = f'"{_DIMS[sign]}", {condition.cpp}, {expected.cpp}'
                return f"shape::check_dims({start}, {how})"
            if left.attr == "dtype":
                how = "" if sign == "==" else "not "
                return f'shape::check_dtype({start}, "{how}", {condition.cpp}, {expected.cpp})'
        found = value(left)
        if found.kind != "int" or value(right).kind != "int":
            return self._compound(node, condition)
        rest = ast.unparse(right) if sign == "==" else f"{sign} {ast.unparse(right)}"
        compare = f"&shape::{COMPARISONS[type(node.ops[0])][1]}"
        start = f'op, "{ast.unparse(left)}", "{rest}"'
        origin = self._origin(left, condition.uses)
        values = f"{found.cpp}, {compare}, {value(right).cpp}{origin}"
        return f"shape::check_value({start}, {values})"

    def _check_with_words(self, node: ast.expr, message: str) -> tuple[str, Needs]:
        """A check with the words of the spec, in which `{x.shape}` stands for the value, or None
        where there is none: of an argument that is missing, or an element that a shape has not."""
        condition = self.translator.value(node, "bool")
        parts: list[str] = []
        try:
            fields = list(string.Formatter().parse(message))
        except ValueError as error:
            raise Mistake(node, f"the words of a check cannot be read: {error}") from None
        for text, field, form, conversion in fields:
            parts += [literal(text, is_part=True)] if text else []
            if field is None:
                continue
            if form or conversion or not field.strip():
                raise Mistake(node, f"'{{{field}}}' is no value in the words of a check")
            try:
                part = ast.parse(field.strip(), mode="eval").body
            except SyntaxError:
                raise Mistake(node, f"'{{{field}}}' is no expression") from None
            value = self.translator.value(part)
            absent = value.uses.without(condition.uses.names)
            shown = _shown(value)
            if any(isinstance(inner, _MAY_FAIL) for inner in ast.walk(part)):
                shown = f"shape::shown_if_any([&] {{ return c10::str({shown}); }})"
            parts.append(f'({absent.given} ? c10::str({shown}) : "None")' if absent else shown)
        if len(parts) == 1 and all(field is None for _, field, _, _ in fields):
            return f"shape::check({parts[0]}, {condition.cpp})", condition.uses
        words = f"[&] {{ return c10::str({', '.join(parts)}); }}"
        return f"shape::check_that({condition.cpp}, {words})", condition.uses

    def _compound(self, node: ast.expr, condition: Value) -> str:
        """A check of more than two integers, whose error shows the values of what it names."""
        text, shown = ast.unparse(node), {}
        for part in _values_in(node):
            try:
                value = self.translator.value(part)
            except Mistake:
                continue
            if not value.uses and value.kind in _SHOWN:
                shown.setdefault(ast.unparse(part), _shown(value))
        if not shown:
            return f"shape::check(op, {literal(text)}, {condition.cpp})"
        values = ', ", ", '.join(f'"{name} is ", {cpp}' for name, cpp in shown.items())
        words = f'[&] {{ return c10::str(op, ": ", {literal(text)}, " must hold: ", {values}); }}'
        return f"shape::check_that({condition.cpp}, {words})"

    def _origin(self, node: ast.expr, uses: Needs) -> str:
        """The first tensor of an expression that is there, for a message."""
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and part.id in self.translator.arguments:
                found = self.translator.value(part)
                if found.kind == "tensor" or found.cpp in uses.names:
                    return f', "{part.id}", {found.as_tensor.cpp}'
        return ""
