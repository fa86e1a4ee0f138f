# SPDX-License-Identifier: BSD-3-Clause
"""The C++ text of the expressions, checks and needs of rules.

Where it stands, `op` is the name of the operator.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...plan.expressions import (
    Attribute,
    Call,
    Case,
    Choice,
    Compare,
    Comparison,
    Constant,
    Default,
    Dtype,
    DynamicSize,
    Element,
    Expression,
    IsThere,
    Joined,
    Listed,
    Message,
    Named,
    Needs,
    Negative,
    Operator,
    Present,
    Quoted,
    RuleCheck,
    Shown,
)

_INFIX = {"+", "-", "*", "==", "!="}
# Functions of shape.h by what they take beside their arguments: the operator's name and what their
# errors call it, behind them or before them; the operator's name alone.
_NAMED_BEHIND = {"floor_divide", "modulo", "size"}
_NAMED_BEFORE = {"real", "result_sizes"}
_WITH_OPERATOR = {"item"}
# Those whose errors are torch's and say nothing of an operator.
_RAISING = {"broadcast", "replace", "reduce", "cat"}
_MEMBERS = {"shape": "sym_sizes", "dim": "dim", "numel": "sym_numel", "dtype": "scalar_type"}


def spelled(value: Expression | None) -> str:
    """An expression; None is what is left out."""
    match value:
        case None:
            return "std::nullopt"
        case Named(name):
            return name
        case Constant(constant):
            return _constant(constant)
        case Dtype(name):
            return f"at::ScalarType::{name}"
        case Call():
            return _call(value)
        case Negative(inner, of_numbers):
            if isinstance(inner, Constant):
                return f"-{spelled(inner)}"
            return (
                f"shape::numbers::negative({spelled(inner)})"
                if of_numbers
                else f"(-({spelled(inner)}))"
            )
        case Attribute(tensor, name, may_be_missing):
            return f"{spelled(tensor)}{'->' if may_be_missing else '.'}{_MEMBERS[name]}()"
        case Element(values, index):
            return f"{spelled(values)}[{index}]"
        case Listed(sizes):
            return f"c10::SymDimVector{{{_all(sizes)}}}"
        case Present(tensor):
            return f"*{spelled(tensor)}"
        case IsThere(inner, negated):
            return f"{'!' if negated else ''}shape::is_there({spelled(inner)})"
        case DynamicSize(result, tensors, most):
            like = f"shape::first_tensor({', '.join(tensors)})"
            bound = f"c10::SymInt({spelled(most)})" if most else "std::nullopt"
            return f'new_dynamic_size(op, "{result}", {like}, {bound})'
    return _conditional(value)


def _conditional(value: Comparison | Joined | Choice | Default) -> str:
    match value:
        case Comparison(function, left, right, of_numbers):
            space = "shape::numbers" if of_numbers else "shape"
            return f"{space}::{function}({spelled(left)}, {spelled(right)})"
        case Joined(function, first, second):
            later = f"[&] {{ return c10::SymBool({spelled(second)}); }}"
            return f"shape::{function}({spelled(first)}, {later})"
        case Choice(condition, then, other):
            return f"({decided(condition)} ? {spelled(then)} : {spelled(other)})"
        case Default(given, other, is_integer):
            type_, text = ("c10::SymInt" if is_integer else "at::ScalarType"), spelled(given)
            return f"(shape::is_true({text}) ? {type_}(*{text}) : {type_}({spelled(other)}))"


def decided(condition: Expression) -> str:
    """Whether a condition holds, as a bool."""
    return f"shape::decided({spelled(condition)})"


def _constant(value: bool | int | float | str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    return repr(value)


def _call(call: Call) -> str:
    arguments, name = _all(call.arguments), f"op, {quoted(call.text)}"
    if call.function in _INFIX:
        return f"({f' {call.function} '.join(map(spelled, call.arguments))})"
    if call.function == "integer":
        return f"c10::SymInt({arguments})"
    if call.function in _NAMED_BEHIND:
        arguments = f"{arguments}, {name}"
    elif call.function in _NAMED_BEFORE:
        arguments = f"{name}, {arguments}"
    elif call.function in _WITH_OPERATOR:
        arguments = f"{arguments}, op"
    text = f"shape::{call.function}({arguments})"
    return f"shape::named(op, [&] {{ return {text}; }})" if call.function in _RAISING else text


def _all(values: tuple[Expression | None, ...]) -> str:
    return ", ".join(map(spelled, values))


def quoted(text: str) -> str:
    """A text of the spec as a string of C++, on one line."""
    escaped = re.sub(r"\s+", " ", text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _text(text: str) -> str:
    """A text as a value of C++, character for character."""
    data = text.encode()
    plain = {byte for byte in range(32, 127) if chr(byte) not in '"\\'}
    escaped = "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in data)
    return f'c10::string_view("{escaped}", {len(data)})'


def check_lines(check: RuleCheck) -> Iterator[str]:
    """The statements that make a check."""
    call = f"shape::{check.function}({', '.join(map(_argument, check.arguments))});"
    if check.needs:
        yield from (f"if ({are_there(check.needs)}) {{", f"  {call}", "}")
    else:
        yield call


def _argument(value: Expression | Operator | Quoted | Compare | Message) -> str:
    match value:
        case Operator():
            return "op"
        case Quoted(text):
            return quoted(text)
        case Compare(function):
            return f"&shape::{function}"
        case Message(parts):
            words = ", ".join(_shown(p) if isinstance(p, Shown) else _argument(p) for p in parts)
            return f"[&] {{ return c10::str({words}); }}"
    return spelled(value)


def _shown(part: Shown) -> str:
    text = spelled(part.value)
    text = f"shape::shown({text})" if part.is_formatted else text
    text = f"shape::shown_if_any([&] {{ return c10::str({text}); }})" if part.may_fail else text
    return f'({are_there(part.needs)} ? c10::str({text}) : "None")' if part.needs else text


def are_there(needs: Needs) -> str:
    """Whether all that is asked for is there."""
    parts = [f"shape::is_there({name})" for name in sorted(needs.names)]
    for case, inner in needs.guarded:
        # a condition on symbols is decided where an argument is missing only
        either = [are_there(inner), _case(case.opposite)]
        parts.append(f"({' || '.join(reversed(either) if inner.guarded else either)})")
    return parts[0] if len(parts) == 1 else f"({' && '.join(parts)})"


def _case(case: Case) -> str:
    condition = spelled(case.condition)
    text = f"shape::{'is_true' if case.of_default else 'decided'}({condition})"
    return text if case.holds else f"!{text}"


def required_lines(needs: Needs) -> Iterator[str]:
    """The statements that refuse what is asked for and missing."""
    for name in sorted(needs.names):
        yield f'shape::require(op, "{name}", {name});'
    for case, inner in needs.guarded:
        statements = list(required_lines(inner))
        if len(statements) == 1:
            yield f"if ({_case(case)}) {statements[0]}"
            continue
        yield f"if ({_case(case)}) {{"
        yield from (f"  {statement}" for statement in statements)
        yield "}"
