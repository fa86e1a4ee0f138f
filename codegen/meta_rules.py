# SPDX-License-Identifier: BSD-3-Clause
"""`meta:`, the declarative shape rule of an operator, as the body of a meta function.

One rule allocates the results that the kernels receive, makes the Meta kernel, and resizes what an
out= form is given.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from . import cpp_names
from .errors import Errors, did_you_mean
from .model import Check, Line, MetaRule, Operator, ResultRule
from .schema import Argument, Return
from .shape_expression import COMPARISONS, Mistake, Translator, Value, parse

_DIMS = {"==": "", ">=": "at least ", "<=": "at most ", ">": "more than ", "<": "less than "}


def ruled_results(operator: Operator) -> list[tuple[Return, Argument | None]]:
    """The results that a rule says of what they are: those that are no arguments, and those that
    are optional ones, each with its argument."""
    both = zip(operator.func.returns, operator.func.written_results)
    return [(r, a) for r, a in both if a is None or a.type.name == "Optional"]


def result_names(operator: Operator) -> list[str]:
    """How kernels and rules call the results: by the schema, else the argument that one may be,
    `out`, or `out0`, `out1`, ..."""
    ruled = ruled_results(operator)
    default = ["out"] if len(ruled) == 1 else [f"out{i}" for i in range(len(ruled))]
    return [r.name or (a.name if a else name) for (r, a), name in zip(ruled, default)]


def rule_statements(namespace: str, operator: Operator, errors: Errors) -> tuple[str, ...]:
    """The statements of the meta function; mistakes are noted."""
    assert operator.meta is not None
    return tuple(_Rule(namespace, operator, operator.meta, errors).statements())


class _Rule:
    def __init__(self, namespace: str, operator: Operator, rule: MetaRule, errors: Errors) -> None:
        self.operator, self.rule, self.errors = operator, rule, errors
        self.op = f"{namespace}::{operator.name.base}"
        self.translator = Translator(operator.func.arguments)
        self.beside = next((a for a in operator.func.arguments if a.type.is_tensor_like), None)

    def statements(self) -> Iterator[str]:
        names = result_names(self.operator)
        if self.beside is None:
            message = "a rule needs a tensor argument, whose device is that of the results"
            self.errors.add(self.rule.location, message)
            return
        rules = self._results(names)
        yield f'[[maybe_unused]] constexpr auto op = "{self.op}";'
        for line in self.rule.checks:
            yield from self._check(line)
        for index, (name, result) in enumerate(rules):
            yield from self._result(index, name, result)

    def _results(self, names: list[str]) -> list[tuple[str, ResultRule]]:
        """The rule of each result, in the order of the schema."""
        rules = {rule.name: rule for rule in self.rule.results}
        if list(rules) == [None]:
            if len(names) != 1:
                message = f"'{self.operator.name}' returns {len(names)} results"
                hint = f"say 'results:' with {', '.join(names)}"
                self.errors.add(self.rule.location, message, hint)
            return [(name, rules[None]) for name in names[:1]]
        for name, rule in rules.items():
            if name not in names:
                hint = did_you_mean(str(name), names, "the results are")
                self.errors.add(rule.location, f"unknown result '{name}'", hint)
        for name in names:
            if name not in rules:
                self.errors.add(self.rule.location, f"there is no rule for the result '{name}'")
        return [(name, rules[name]) for name in names if name in rules]

    def _value(self, line: Line, *kinds: str) -> Value | None:
        node = parse(line, self.errors)
        return self._of_node(line, node, *kinds) if node is not None else None

    def _of_node(self, line: Line, node: ast.expr, *kinds: str) -> Value | None:
        try:
            return self.translator.value(node, *kinds)
        except Mistake as mistake:
            self.errors.add(line.at(mistake.offset), mistake.message, mistake.hint)
        except RecursionError:
            self.errors.add(line.location, "not an expression that can be read")
        return None

    def _result(self, index: int, name: str, rule: ResultRule) -> Iterator[str]:
        like = self._value(rule.like, "tensor", "tensor?") if rule.like else None
        size = self._value(rule.size, "shape") if rule.size else None
        dtype = self._value(rule.dtype, "dtype", "tensor", "tensor?") if rule.dtype else None
        when = self._value(rule.when, "bool") if rule.when else None
        if rule.like is None and rule.size is None:
            self.errors.add(rule.location, f"the rule of '{name}' has neither 'like' nor 'size'")
        if rule.like is None and rule.dtype is None:
            self.errors.add(rule.location, f"the rule of '{name}' has neither 'like' nor 'dtype'")
        if rule.like and rule.size:
            self.errors.add(rule.size.location, "'like' says the size already")
        strides = self._strides(rule)
        call = self._set_output(index, name, rule, _Parts(like, size, dtype), strides)
        if call is None:
            return
        values = [value for value in (like, size, dtype, strides) if value is not None]
        uses = frozenset().union(*(_used(value) for value in values))
        if when is None:
            yield from (*self._required(uses), call)
            return
        node = parse(rule.when, self.errors) if rule.when else None
        there = self.translator.established(node) if node is not None else frozenset()
        yield from self._required(when.uses)
        yield f"if (shape::decided({when.cpp})) {{"
        yield from (f"  {line}" for line in (*self._required(uses - there - when.uses), call))
        yield "}"

    @staticmethod
    def _required(uses: frozenset[str]) -> list[str]:
        return [f'shape::require(op, "{name}", {name});' for name in sorted(uses)]

    def _strides(self, rule: ResultRule) -> Value | None:
        """The strides that the kernel needs, where it is not a word that says them."""
        if rule.strides is None or rule.strides.text.strip() in ("contiguous", "any"):
            return None
        return self._value(rule.strides, "shape")

    def _set_output(
        self, index: int, name: str, rule: ResultRule, parts: _Parts, needed: Value | None
    ) -> str | None:
        sizes = parts.sizes(name)
        dtype = parts.scalar_type()
        if sizes is None or dtype is None or self.beside is None:
            return None
        tensors = [
            cpp_names.parameter_name(a.name)
            for a in self.operator.func.arguments
            if a.type.is_tensor_like
        ]
        options = f"shape::options({', '.join([dtype, *parts.first(tensors)])})"
        strides = rule.strides.text.strip() if rule.strides else "contiguous"
        if strides == "contiguous":
            return f"set_output_contiguous_symint({index}, {sizes}, {options});"
        if strides == "any":
            return f"set_output_raw_strided_symint({index}, {sizes}, {{}}, {options});"
        if needed is None:
            return None
        return f"set_output_strided_symint({index}, {sizes}, {needed.cpp}, {options});"

    def _check(self, line: Check) -> Iterator[str]:
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
            there = " && ".join(f"shape::is_there({name})" for name in sorted(uses))
            yield from (f"if ({there}) {{", f"  {call};", "}")
        else:
            yield f"{call};"

    def _check_call(self, node: ast.expr, message: str | None) -> tuple[str, frozenset[str]]:
        """The call that makes a check, and the optional tensors without which it is left out."""
        value = self.translator.value
        if message is not None:
            condition = value(node, "bool")
            return f"shape::check({_literal(message)}, {condition.cpp})", condition.uses
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            if node.func.id == "floating" and len(node.args) == 1:
                tensor = value(node.args[0], "tensor", "tensor?")
                cpp, uses = _there(tensor)
                return f'shape::check_floating(op, "{ast.unparse(node.args[0])}", {cpp})', uses
            if node.func.id == "has_dim" and len(node.args) == 2:
                tensor, dim = value(node.args[0], "tensor"), value(node.args[1], "int")
                return f"shape::check_dim({tensor.cpp}, {dim.cpp})", dim.uses
        condition = value(node, "bool")
        if not isinstance(node, ast.Compare) or type(node.ops[0]) not in COMPARISONS:
            return f'shape::check(op, "{ast.unparse(node)}", {condition.cpp})', condition.uses
        return self._comparison(node, condition), condition.uses

    def _comparison(self, node: ast.Compare, condition: Value) -> str:
        value = self.translator.value
        sign, left, right = COMPARISONS[type(node.ops[0])][0], node.left, node.comparators[0]
        if isinstance(left, ast.Attribute) and isinstance(left.value, ast.Name):
            tensor, _ = _there(value(left.value, "tensor", "tensor?"))
            start = f'op, "{left.value.id}", {tensor}'
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
        if found.kind != "int":
            return f'shape::check(op, "{ast.unparse(node)}", {condition.cpp})'
        rest = ast.unparse(right) if sign == "==" else f"{sign} {ast.unparse(right)}"
        compare = f"&shape::{COMPARISONS[type(node.ops[0])][1]}"
        start = f'op, "{ast.unparse(left)}", "{rest}"'
        origin = self._origin(left, condition.uses)
        values = f"{found.cpp}, {compare}, {value(right).cpp}{origin}"
        return f"shape::check_value({start}, {values})"

    def _origin(self, node: ast.expr, uses: frozenset[str]) -> str:
        """The first tensor of an expression that is there, for a message."""
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and part.id in self.translator.arguments:
                found = self.translator.value(part)
                if found.kind == "tensor" or (found.kind == "tensor?" and found.cpp in uses):
                    return f', "{part.id}", {_there(found)[0]}'
        return ""


class _Parts:
    """What the keys of one result say."""

    def __init__(self, like: Value | None, size: Value | None, dtype: Value | None) -> None:
        self.like, self.size, self.dtype = like, size, dtype

    def first(self, tensors: list[str]) -> list[str]:
        """The tensors, with the one that the result is like in front."""
        return sorted(tensors, key=lambda name: not self.like or name != self.like.cpp)

    def sizes(self, name: str) -> str | None:
        if self.like:
            return _member(self.like, "sym_sizes()")
        return f'shape::result_sizes(op, "{name}", {self.size.cpp})' if self.size else None

    def scalar_type(self) -> str | None:
        if self.dtype is None:
            return _member(self.like, "scalar_type()") if self.like else None
        if self.dtype.kind == "dtype":
            return self.dtype.cpp
        return _member(self.dtype, "scalar_type()")


def _literal(text: str) -> str:
    """A text as a string of C++, on one line."""
    escaped = " ".join(text.split()).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _member(tensor: Value, call: str) -> str:
    return f"{tensor.cpp}{'->' if tensor.kind == 'tensor?' else '.'}{call}"


def _used(value: Value) -> frozenset[str]:
    """The optional tensors that a value cannot do without."""
    return value.uses | (frozenset({value.cpp}) if value.kind == "tensor?" else frozenset())


def _there(tensor: Value) -> tuple[str, frozenset[str]]:
    """A tensor as such, and whether it may be missing."""
    if tensor.kind == "tensor?":
        return f"*{tensor.cpp}", frozenset({tensor.cpp})
    return tensor.cpp, frozenset()
