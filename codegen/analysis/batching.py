# SPDX-License-Identifier: BSD-3-Clause
"""How an operator serves a batch: by the rule of its `vmap:`, or by a call for each example; and
what `randomness` of torch.vmap means for one that draws random numbers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..cpp import names as cpp_names
from ..cpp import types as cpp_types
from ..errors import Errors, Location, did_you_mean
from ..fused.entries import Expressions
from ..fused.functions import size_of
from ..fused.tree import Name
from ..plan.library import BatchingExpression, BatchingFact, BatchingRule, BoxedArgument
from ..schema.schema import OperatorName
from ..spec.model import Line, Operator
from .batched_shapes import BatchedShapes
from .folded_shapes import FoldedShapes
from .rule_expressions import Translator
from .rule_vocabulary import Mistake, parse
from .structured import Group

_KEY = "FuncTorchBatched"
_MODE = "FuncTorchVmapMode"  # called in every vmap, whether an argument is batched or not
_SERVING = {_KEY, "FuncTorchBatchedDecomposition"}
_RULES = ("pointwise", "leading", "leading(arguments)", "leading(arguments, rows=count)",
          "leading if condition")  # fmt: skip
_KIND = re.compile(r"\w+")
_ROWS = re.compile(r"(.*?)(?:,|^)\s*rows\s*=\s*(?=\S)", re.DOTALL)
_CONDITION = re.compile(r"\s+if\s+(?=\S)")


def batching_rule(
    operator: Operator, group: Group | None, form: OperatorName | None, errors: Errors
) -> BatchingRule | None:
    """The rule of an operator, its own or that of the entry whose kernels it runs; group: that of
    a structured one, form: the functional one of an out= form. Mistakes are noted."""
    source = operator
    if operator.origin and operator.origin.func.mutated and not operator.func.mutated:
        return None  # what it copies may not be batched, and becomes a result
    if operator.vmap is None:
        source = operator.origin or (group.out if group else operator)
    rule = _rule(source, operator, Errors() if source is not operator else errors)
    if form is not None:
        return BatchingRule("out_form_of", form=form)
    return None if operator.func.is_out or _has_kernel(operator) else rule


def rows_rule(expressions: Expressions) -> BatchingRule | None:
    """The rule of an operator that works along rows, which has another row for each example."""
    if expressions.of_rows is None:
        return None
    likes = ((size_of(result), index) for index, result in enumerate(expressions.results))
    totals = tuple((like.name, index) for like, index in likes if isinstance(like, Name))
    facts: tuple[BatchingFact, ...] = ()
    facts += (("of_rows", tuple(sorted(expressions.of_rows))),) if expressions.of_rows else ()
    facts += (("totals", totals),) if totals else ()
    return BatchingRule("rows_rule", facts=facts)


def served(
    operator: Operator, rule: BatchingRule | None, keys: set[str], draws: bool, is_constant: bool
) -> BatchingRule | None:
    """What is registered for a batch, with the operator's rule or without; None where nothing is.

    keys: those that it has kernels for; draws: whether it draws random numbers; is_constant:
    whether no gradient flows through it.
    """
    own = {entry.key for entry in operator.dispatch or ()}
    takes_tensors = any(a.type.is_tensor_like for a in operator.func.arguments)
    modes = (_MODE,) if draws and _MODE not in own else ()
    is_open = operator.func.is_vararg or operator.func.is_varret
    if operator.manual_kernel_registration or is_open:
        return None
    if draws and operator.func.is_out:
        return BatchingRule("refused_random_out", keys=modes) if modes else None
    if rule is not None and rule.form is not None:
        return rule
    if rule is None and keys & _SERVING:
        is_own = bool(own & _SERVING and modes)  # of a composite operator the parts draw
        return BatchingRule("randomness_of_own_rule", keys=modes) if is_own else None
    registered = (*((_KEY,) if takes_tensors else ()), *modes)
    found = rule or BatchingRule("each_example")
    facts: tuple[BatchingFact, ...] = (("draws", True),) if draws else ()
    facts += (("differentiable", False),) if is_constant else ()
    found = replace(found, keys=registered, facts=facts + found.facts)
    return found if registered else None


def _has_kernel(operator: Operator) -> bool:
    return any(entry.key == _KEY for entry in operator.dispatch or ())


def _rule(operator: Operator, form: Operator, errors: Errors) -> BatchingRule | None:
    """What an entry's `vmap:` says of itself, or of a form that shares it."""
    if operator.vmap is None or not _can_have_rule(operator, errors):
        return None
    said = _parts(operator.vmap, operator.at("vmap"))
    if said and said.kind == "pointwise" and said.names is said.rows is None:
        condition = _expression(form, said.condition, "bool", errors)
        facts = tuple(_shape_facts(operator))
        return BatchingRule("pointwise_rule", condition=condition, facts=facts)
    if said and said.kind == "leading":
        if said.rows and any(result.type.is_alias for result in operator.func.returns):
            errors.add(operator.at("vmap"), "'rows=' is for results that are new")
        rows = _rows(operator, said.names, errors)
        return BatchingRule(
            "leading_rule",
            rows,
            _expression(form, said.rows, "int", errors),
            _expression(form, said.condition, "bool", errors),
            facts=tuple(_folded_facts(operator, rows)),
        )
    hint = did_you_mean(operator.vmap, _RULES, "it takes")
    errors.add(operator.at("vmap"), f"'vmap' does not take '{operator.vmap}'", hint)
    return None


def _shape_facts(operator: Operator) -> Iterator[BatchingFact]:
    """What a rule of one example says of shapes, for a batch."""
    tensors = (a.name for a in operator.func.arguments if a.type.is_tensor_like)
    shapes = BatchedShapes(operator.meta, tensors)
    for fact, names in (("one_shape", shapes.one_shape), ("examined", shapes.examined)):
        if names:
            yield fact, tuple(names)


def _folded_facts(operator: Operator, rows: tuple[str, ...]) -> Iterator[BatchingFact]:
    """The same of one whose leading dimensions are joined with that of the batch."""
    shapes = FoldedShapes(operator.meta, rows)
    if shapes.examined:
        yield "examined", tuple(sorted(shapes.examined))
    if shapes.least_ranks:
        yield "least_ranks", tuple(sorted(shapes.least_ranks.items()))


@dataclass(frozen=True)
class _Parts:
    """`kind(names, rows=ROWS) if CONDITION`, as text."""

    kind: str
    names: str | None
    rows: Line | None
    condition: Line | None


def _parts(text: str, location: Location) -> _Parts | None:
    """None where the text is not of that form."""
    kind = _KIND.match(text)
    if kind is None:
        return None
    names = rows = condition = None
    at = kind.end()
    opening = re.compile(r"\s*\(").match(text, at)
    if opening:
        at = _closing(text, opening.end())
        names = text[opening.end() : at - 1]
        if match := _ROWS.match(names):
            rows = Line(names[match.end() :], location.after(opening.end() + match.end()))
            names = match[1] or None
    if match := _CONDITION.match(text, at):
        condition = Line(text[match.end() :], location.after(match.end()))
        at = len(text)
    return _Parts(kind[0], names, rows, condition) if at == len(text) else None


def _closing(text: str, at: int) -> int:
    """Behind the parenthesis that closes one that opens before `at`; behind the end where none
    does."""
    depth = 1
    while depth and at < len(text):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    return at if not depth else len(text) + 1


def _expression(
    form: Operator, line: Line | None, kind: str, errors: Errors
) -> BatchingExpression | None:
    """What follows `if` or `rows=`, of the arguments as an example of the batch has them."""
    if line is None:
        return None
    node = parse(line, errors)
    if node is None:
        return None
    try:
        value = Translator(form.func.arguments).value(node, kind)
        if value.uses:
            name = value.uses.every_name[0]
            hint = f"say '{name} is not None and ...'"
            raise Mistake(node, f"'{name}' may be missing", hint)
        return BatchingExpression(str(form.name), tuple(_read(form, node)), value.expression)
    except Mistake as mistake:
        errors.add(line.at(mistake.offset), mistake.message, mistake.hint)
    except RecursionError:
        errors.add(line.location, "not an expression that can be read")
    return None


def _read(operator: Operator, node: ast.expr) -> Iterator[BoxedArgument]:
    """The arguments that an expression names."""
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    for index, argument in enumerate(operator.func.arguments):
        if argument.name in names:
            type_ = cpp_types.value_type(argument.type)
            yield BoxedArgument(cpp_names.parameter_name(argument.name), type_, index)


def _can_have_rule(operator: Operator, errors: Errors) -> bool:
    func = operator.func
    message = hint = None
    if _has_kernel(operator):
        message = f"the operator has a kernel for {_KEY}"
    elif operator.func.is_out and not operator.structured:
        message = "an out= form is batched by its functional form"
        hint = "give 'vmap' to that one"
    elif not any(a.type.is_tensor_like for a in func.arguments):
        message = "'vmap' is for operators that take tensors"
    elif any(not r.type.is_tensor_like for r in func.returns):
        message = "'vmap' is for operators whose results are tensors"
    elif func.is_view:
        message = "'vmap' is for results that are no views"
    if message:
        errors.add(operator.at("vmap"), message, hint)
    return message is None


def _rows(operator: Operator, names: str | None, errors: Errors) -> tuple[str, ...]:
    """The arguments that have the leading dimension."""
    arguments = [a for a in operator.func.arguments if not a.is_out]
    if names is None:
        found = tuple(a.name for a in arguments if a.type.bare().plain == "Tensor")
        if not found:
            message = "no argument of type Tensor has the leading dimension"
            errors.add(operator.at("vmap"), message, "name those that do: leading(arguments)")
        return found
    tensors = [a.name for a in arguments if a.type.is_tensor_like]
    named = tuple(name.strip() for name in names.split(","))
    for name in named:
        if name not in tensors:
            hint = did_you_mean(name, tensors, "it has")
            hint = "what has a '=' is 'rows=COUNT', at the end" if "=" in name else hint
            errors.add(operator.at("vmap"), f"'{name}' is no tensor that the operator takes", hint)
    return named
