# SPDX-License-Identifier: BSD-3-Clause
"""`check:` of a rule: conditions of the arguments, with what an error says."""

from __future__ import annotations

import ast
import string
from collections.abc import Iterator
from dataclasses import replace

from ..errors import Errors
from ..plan.expressions import (
    Compare,
    Expression,
    Message,
    Needs,
    Operator,
    Quoted,
    RuleCheck,
    Shown,
)
from ..spec.model import Check
from .rule_expressions import Translator
from .rule_vocabulary import COMPARISONS, Mistake, Value, parse

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


def _shown(value: Value) -> Shown:
    """A value as a message has it."""
    return Shown(value.expression, is_formatted=value.kind in ("shape", "bool", "float"))


class RuleChecks:
    """The checks of one rule."""

    def __init__(self, translator: Translator, errors: Errors) -> None:
        self.translator, self.errors = translator, errors

    def read(self, line: Check) -> RuleCheck | None:
        """The check of a line; mistakes are noted."""
        node = parse(line, self.errors)
        if node is None:
            return None
        try:
            return self._check(node, line.message)
        except Mistake as mistake:
            self.errors.add(line.at(mistake.offset), mistake.message, mistake.hint)
        except RecursionError:
            self.errors.add(line.location, "not an expression that can be read")
        return None

    def _check(self, node: ast.expr, message: str | None) -> RuleCheck:
        value = self.translator.value
        if message is not None:
            return self._check_with_words(node, message)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            if node.func.id == "floating" and len(node.args) == 1:
                tensor = value(node.args[0], "tensor", "tensor?").as_tensor
                given = (Operator(), Quoted(ast.unparse(node.args[0])), tensor.expression)
                return RuleCheck("check_floating", given, tensor.uses)
            if node.func.id == "has_dim" and len(node.args) == 2:
                tensor, dim = value(node.args[0], "tensor"), value(node.args[1], "int")
                both = (tensor.expression, dim.expression)
                return RuleCheck("check_dim", both, tensor.uses | dim.uses)
        condition = value(node, "bool")
        if not isinstance(node, ast.Compare) or type(node.ops[0]) not in COMPARISONS:
            return self._compound(node, condition)
        return self._comparison(node, condition)

    def _comparison(self, node: ast.Compare, condition: Value) -> RuleCheck:
        value, uses = self.translator.value, condition.uses
        (sign, function), left = COMPARISONS[type(node.ops[0])], node.left
        right = value(node.comparators[0])
        if isinstance(left, ast.Attribute) and isinstance(left.value, ast.Name):
            tensor = value(left.value, "tensor", "tensor?").as_tensor
            start = (Operator(), Quoted(left.value.id), tensor.expression)
            if left.attr == "shape" and sign == "==":
                return RuleCheck("check_shape", (*start, right.expression), uses)
            both = (condition.expression, right.expression)
            if left.attr == "dim" and sign in _DIMS:
                return RuleCheck("check_dims", (*start, Quoted(_DIMS[sign]), *both), uses)
            if left.attr == "dtype":
                how = Quoted("" if sign == "==" else "not ")
                return RuleCheck("check_dtype", (*start, how, *both), uses)
        found = value(left)
        if found.kind != "int" or right.kind != "int":
            return self._compound(node, condition)
        rest = ast.unparse(node.comparators[0])
        words = Quoted(ast.unparse(left)), Quoted(rest if sign == "==" else f"{sign} {rest}")
        compared = (found.expression, Compare(function), right.expression)
        given = (Operator(), *words, *compared, *self._origin(left, uses))
        return RuleCheck("check_value", given, uses)

    def _check_with_words(self, node: ast.expr, message: str) -> tuple[str, Needs]:
        """A check with the words of the spec, in which `{x.shape}` stands for the value, or None
        where there is none: of an argument that is missing, or an element that a shape has not."""
        condition = self.translator.value(node, "bool")
        try:
            fields = list(string.Formatter().parse(message))
        except ValueError as error:
            raise Mistake(node, f"the words of a check cannot be read: {error}") from None
        parts: list[Operator | Quoted | Shown] = []
        for text, field, form, conversion in fields:
            parts += [Quoted(text)] if text else []
            if field is None:
                continue
            if form or conversion or not field.strip():
                raise Mistake(node, f"'{{{field}}}' is no value in the words of a check")
            parts.append(self._in_words(node, field, condition))
        holds, uses = condition.expression, condition.uses
        if len(parts) == 1 and isinstance(parts[0], Quoted):
            return RuleCheck("check", (parts[0], holds), uses)
        return RuleCheck("check_that", (holds, Message(tuple(parts))), uses)

    def _in_words(self, node: ast.expr, field: str, condition: Value) -> Shown:
        """A value in the words of a check."""
        try:
            part = ast.parse(field.strip(), mode="eval").body
        except SyntaxError:
            raise Mistake(node, f"'{{{field}}}' is no expression") from None
        value = self.translator.value(part)
        may_fail = any(isinstance(inner, _MAY_FAIL) for inner in ast.walk(part))
        absent = value.uses.without(condition.uses.names)
        return replace(_shown(value), may_fail=may_fail, needs=absent)

    def _compound(self, node: ast.expr, condition: Value) -> RuleCheck:
        """A check of more than two integers, whose error shows the values of what it names."""
        text, shown = Quoted(ast.unparse(node)), {}
        for part in _values_in(node):
            try:
                value = self.translator.value(part)
            except Mistake:
                continue
            if not value.uses and value.kind in _SHOWN:
                shown.setdefault(ast.unparse(part), _shown(value))
        if not shown:
            return RuleCheck("check", (Operator(), text, condition.expression), condition.uses)
        words: list[Operator | Quoted | Shown] = [Operator(), Quoted(": "), text]
        for index, (name, value) in enumerate(shown.items()):
            before = ", " if index else " must hold: "
            words += [Quoted(before), Quoted(f"{name} is "), value]
        given = (condition.expression, Message(tuple(words)))
        return RuleCheck("check_that", given, condition.uses)

    def _origin(self, node: ast.expr, uses: Needs) -> tuple[Quoted, Expression] | tuple[()]:
        """The first tensor of an expression that is there, for a message."""
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and part.id in self.translator.arguments:
                found = self.translator.value(part)
                if found.kind == "tensor" or (
                    found.kind == "tensor?" and found.itself.names <= uses.names
                ):
                    return Quoted(part.id), found.as_tensor.expression
        return ()
