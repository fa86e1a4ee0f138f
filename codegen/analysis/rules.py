# SPDX-License-Identifier: BSD-3-Clause
"""`meta:`, the declarative shape rule of an operator, as the body of a meta function.

One rule allocates the results that the kernels receive, makes the Meta kernel, and resizes what an
out= form is given.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..cpp import names as cpp_names
from ..errors import Errors, did_you_mean
from ..schema.schema import Argument, Return
from ..spec.model import Line, Loop, MetaRule, Operator, ResultRule
from .needs import Needs
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


def rule_statements(namespace: str, operator: Operator, errors: Errors) -> tuple[str, ...]:
    """The statements of the meta function; mistakes are noted."""
    assert operator.meta is not None
    return tuple(_Rule(namespace, operator, operator.meta, errors).statements())


class _Rule:
    def __init__(self, namespace: str, operator: Operator, rule: MetaRule, errors: Errors) -> None:
        self.operator, self.rule, self.errors = operator, rule, errors
        self.op = f"{namespace}::{operator.name.base}"
        self.translator = Translator(operator.func.arguments)
        self.tensors = [
            cpp_names.parameter_name(a.name)
            for a in operator.func.arguments
            if a.type.is_tensor_like
        ]

    def statements(self) -> Iterator[str]:
        names = result_names(self.operator)
        if not self.tensors and self.rule.results:
            message = "a rule needs a tensor argument, whose device is that of the results"
            self.errors.add(self.rule.location, message)
            return
        rules = self._results(names) if self.rule.results else []
        yield f'[[maybe_unused]] constexpr auto op = "{self.op}";'
        checks = RuleChecks(self.translator, self.errors)
        for line in self.rule.checks:
            yield from checks.statements(line)
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
        if rule.loop is None:
            yield from self._tensor(str(index), name, rule)
            return
        head = self._loop(rule.loop)
        if head is not None:
            lines = list(self._tensor("torchext_index++", name, rule))
            self.translator.local.clear()
            yield "int64_t torchext_index = 0;"
            yield f"{head} {{"
            yield from (f"  {line}" for line in lines)
            yield "}"

    def _loop(self, loop: Loop) -> str | None:
        """The head of the loop over what a list of results is made of."""
        label = f"torchext_{loop.name}"
        node = parse(loop.values, self.errors)
        if node is None:
            return None
        if self.operator.func.argument(loop.name) is not None:
            self.errors.add(loop.values.location, f"'{loop.name}' is an argument already")
            return None
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "range" and len(node.args) == 1:
            count = self._of_node(loop.values, node.args[0], "int")
            self.translator.local[loop.name] = Value("int", f"c10::SymInt({label})")
            last = f"shape::as_index({count.cpp})" if count else ""
            uses = count.uses if count else Needs()
            head = f"for (int64_t {label} = 0, last = {last}; {label} < last; ++{label})"
        else:
            found = self._of_node(loop.values, node, "tensors", "shape")
            if found is None:
                return None
            kind = "tensor" if found.kind == "tensors" else "int"
            self.translator.local[loop.name] = Value(kind, label)
            uses, head = found.uses, f"for (const auto& {label} : {found.cpp})"
        for name in uses.every_name:
            self.errors.add(loop.values.location, f"'{name}' may be missing")
        return None if uses else head

    def _tensor(self, index: str, name: str, rule: ResultRule) -> Iterator[str]:
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
        strides = self._strides(rule)
        call = self._set_output(index, name, rule, _Parts(like, size, dtype), strides)
        if call is None:
            return
        values = [value for value in (like, size, dtype, strides) if value is not None]
        uses = Needs.all(_used(value) for value in values)
        if when is None:
            yield from (*uses.required(), call)
            return
        node = parse(rule.when, self.errors) if rule.when else None
        there = self.translator.established(node) if node is not None else frozenset()
        yield from when.uses.required()
        yield f"if (shape::decided({when.cpp})) {{"
        inside = uses.without(when.uses.names | there).required()
        yield from (f"  {line}" for line in (*inside, call))
        yield "}"

    def _size(self, name: str, line: Line) -> Value | None:
        """The sizes of a result, of which `dynamic` ones are known when the kernel has run."""
        like = f"shape::first_tensor({', '.join(self.tensors)})"
        self.translator.dynamic = f'new_dynamic_size(op, "{name}", {like}, {{}})'
        found = self._value(line, "shape")
        self.translator.dynamic = None
        return found

    def _strides(self, rule: ResultRule) -> Value | None:
        """The strides that the kernel needs, where it is not a word that says them."""
        if rule.strides is None or rule.strides.text.strip() in ("contiguous", "any"):
            return None
        return self._value(rule.strides, "shape")

    def _set_output(
        self, index: str, name: str, rule: ResultRule, parts: _Parts, needed: Value | None
    ) -> str | None:
        sizes = parts.sizes(name)
        dtype = parts.scalar_type()
        if sizes is None or dtype is None:
            return None
        options = f"shape::options({', '.join([dtype, *parts.first(self.tensors)])})"
        strides = rule.strides.text.strip() if rule.strides else "contiguous"
        if strides == "contiguous" and not allocates(self.operator):
            return f"set_output_contiguous_symint({index}, {sizes}, {options});"
        if strides == "any" or (strides == "contiguous" and allocates(self.operator)):
            return f"set_output_raw_strided_symint({index}, {sizes}, {{}}, {options});"
        if needed is None:
            return None
        return f"set_output_strided_symint({index}, {sizes}, {needed.cpp}, {options});"


class _Parts:
    """What the keys of one result say."""

    def __init__(self, like: Value | None, size: Value | None, dtype: Value | None) -> None:
        self.like, self.size, self.dtype = like, size, dtype

    def first(self, tensors: list[str]) -> list[str]:
        """The tensors, with the one that the result is like in front."""
        like = [self.like.cpp] if self.like else []
        return [*like, *(name for name in tensors if name not in like)]

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


def _member(tensor: Value, call: str) -> str:
    return f"{tensor.cpp}{'->' if tensor.kind == 'tensor?' else '.'}{call}"


def _used(value: Value) -> Needs:
    """The optional tensors that a value cannot do without."""
    return value.as_tensor.uses
