# SPDX-License-Identifier: BSD-3-Clause
"""`meta:`, the declarative shape rule of an operator: what its meta function checks and sets.

One rule allocates the results that the kernels receive, makes the Meta kernel, and resizes what an
out= form is given.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from ..cpp import names as cpp_names
from ..errors import Errors, did_you_mean
from ..plan.expressions import (
    Attribute,
    Call,
    DynamicSize,
    Expression,
    Named,
    Needs,
    RuleCheck,
    RuledResult,
    RuleLoop,
)
from ..schema.schema import Argument, Return
from ..spec.model import Line, Loop, MetaRule, Operator, ResultRule
from .rule_checks import RuleChecks
from .rule_expressions import Translator
from .rule_vocabulary import DYNAMIC, Mistake, Value, parse


def ruled_results(operator: Operator) -> list[tuple[Return, Argument | None]]:
    """The results that a rule says of what they are: those that are no arguments, and those that
    are optional ones, each with its argument."""
    both = zip(operator.func.returns, operator.func.written_results)
    return [(r, a) for r, a in both if a is None or a.type.name == "Optional"]


def allocates(operator: Operator) -> bool:
    """Whether the kernels of an operator with a rule return what they made: as the entry says, or
    since a size is known only then."""
    return operator.allocates or has_dynamic_sizes(operator)


def has_dynamic_sizes(operator: Operator) -> bool:
    """Whether values tell a size of a result."""
    if operator.func.argument(DYNAMIC) is not None:  # the word is that argument's name
        return False
    results = operator.meta.results if operator.meta else ()
    return any(rule.size and _is_dynamic(rule.size) for rule in results)


def _is_dynamic(size: Line) -> bool:
    try:
        nodes = ast.walk(ast.parse(size.text.strip(), mode="eval"))
        return any(isinstance(node, ast.Name) and node.id == DYNAMIC for node in nodes)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False  # noted where it is read


def rules_list(operator: Operator) -> bool:
    """Whether the rule is of each tensor of a list, which is the operator's result."""
    return operator.meta is not None and any(rule.loop for rule in operator.meta.results)


def result_names(operator: Operator) -> list[str]:
    """How kernels and rules call the results: by the schema, else the argument that one may be,
    `out`, or `out0`, `out1`, ..."""
    ruled = ruled_results(operator)
    default = ["out"] if len(ruled) == 1 else [f"out{i}" for i in range(len(ruled))]
    return [r.name or (a.name if a else name) for (r, a), name in zip(ruled, default)]


def checks_and_results(
    operator: Operator, errors: Errors
) -> tuple[tuple[RuleCheck, ...], tuple[RuledResult, ...]]:
    """What the meta function checks and then sets; mistakes are noted."""
    assert operator.meta is not None
    return _Rule(operator, operator.meta, errors).read()


class _Rule:
    def __init__(self, operator: Operator, rule: MetaRule, errors: Errors) -> None:
        self.operator, self.rule, self.errors = operator, rule, errors
        self.translator = Translator(operator.func.arguments)
        self.tensors = [
            cpp_names.parameter_name(a.name)
            for a in operator.func.arguments
            if a.type.is_tensor_like
        ]

    def read(self) -> tuple[tuple[RuleCheck, ...], tuple[RuledResult, ...]]:
        names = result_names(self.operator)
        if not self.tensors and self.rule.results:
            message = "a rule needs a tensor argument, whose device is that of the results"
            self.errors.add(self.rule.location, message)
            return (), ()
        rules = self._results(names) if self.rule.results else []
        reader = RuleChecks(self.translator, self.errors)
        checks = [reader.read(line) for line in self.rule.checks]
        results = [self._result(name, result) for name, result in rules]
        return tuple(filter(None, checks)), tuple(filter(None, results))

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

    def _result(self, name: str, rule: ResultRule) -> RuledResult | None:
        if rule.loop is None:
            return self._tensor(name, rule)
        loop = self._loop(rule.loop)
        found = self._tensor(name, rule) if loop is not None else None
        self.translator.local.clear()
        return replace(found, loop=loop) if found is not None else None

    def _loop(self, loop: Loop) -> RuleLoop | None:
        """What a list of results is made of."""
        node = parse(loop.values, self.errors)
        if node is None:
            return None
        if self.operator.func.argument(loop.name) is not None:
            self.errors.add(loop.values.location, f"'{loop.name}' is an argument already")
            return None
        label = f"torchext_{loop.name}"
        local: Expression = Named(label)
        is_range = isinstance(node, ast.Call) and ast.unparse(node.func) == "range"
        if isinstance(node, ast.Call) and is_range and len(node.args) == 1:
            values = self._of_node(loop.values, node.args[0], "int")
            kind, local = "int", Call("integer", (local,))
            found = RuleLoop(label, count=values.expression) if values else None
        else:
            values = self._of_node(loop.values, node, "tensors", "shape")
            kind = "tensor" if values and values.kind == "tensors" else "int"
            found = RuleLoop(label, values=values.expression) if values else None
        self.translator.local[loop.name] = Value(kind, local)
        names = values.uses.every_name if values else []
        for name in names:
            self.errors.add(loop.values.location, f"'{name}' may be missing")
        return None if names else found

    def _tensor(self, name: str, rule: ResultRule) -> RuledResult | None:
        like = self._value(rule.like, "tensor", "tensor?") if rule.like else None
        size = self._size(name, rule.size) if rule.size else None
        dtype = self._value(rule.dtype, "dtype", "tensor", "tensor?") if rule.dtype else None
        when = self._value(rule.when, "bool") if rule.when else None
        for key in ("size", "dtype"):
            if rule.is_whole and rule.like is None and getattr(rule, key) is None:
                message = f"the rule of '{name}' has neither 'like' nor '{key}'"
                self.errors.add(rule.location, message)
        if rule.like and rule.size:
            self.errors.add(rule.size.location, "'like' says the size already")
        word = rule.strides.text.strip() if rule.strides else "contiguous"
        is_word = word in ("contiguous", "any")
        strides = self._value(rule.strides, "shape") if rule.strides and not is_word else None
        found_sizes, found_dtype = self._sizes(name, like, size), self._dtype(like, dtype)
        if found_sizes is None or found_dtype is None or not (is_word or strides):
            return None
        read = [value.as_tensor.uses for value in (like, size, dtype, strides) if value is not None]
        needs = Needs.all(read)
        if when is not None:
            node = parse(rule.when, self.errors) if rule.when else None
            there = self.translator.established(node) if node is not None else frozenset()
            needs = needs.without(when.uses.names | there)
        first = [like.expression] if like else []
        return RuledResult(
            found_sizes,
            found_dtype,
            (*first, *(tensor for tensor in map(Named, self.tensors) if tensor not in first)),
            needs,
            strides.expression if strides else None,
            is_contiguous=word == "contiguous" and not allocates(self.operator),
            when=when.expression if when else None,
            when_needs=when.uses if when else Needs(),
        )

    def _size(self, name: str, line: Line) -> Value | None:
        """The sizes of a result, of which `dynamic` ones are known when the kernel has run."""
        self.translator.dynamic = DynamicSize(name, tuple(self.tensors))
        found = self._value(line, "shape")
        self.translator.dynamic = None
        return found

    @staticmethod
    def _sizes(name: str, like: Value | None, size: Value | None) -> Expression | None:
        if like:
            return _attribute(like, "shape")
        return Call("result_sizes", (size.expression,), name) if size else None

    @staticmethod
    def _dtype(like: Value | None, dtype: Value | None) -> Expression | None:
        if dtype is not None and dtype.kind == "dtype":
            return dtype.expression
        tensor = dtype or like
        return _attribute(tensor, "dtype") if tensor else None


def _attribute(tensor: Value, name: str) -> Attribute:
    return Attribute(tensor.expression, name, tensor.kind == "tensor?")
