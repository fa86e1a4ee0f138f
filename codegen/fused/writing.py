# SPDX-License-Identifier: BSD-3-Clause
"""What follows from expressions as the entries of YAML files that one would have written."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator

from ..spec.dtypes import torch_name
from ..spec.model import Derivative, DtypeRule, Operator
from .entries import Expressions
from .functions import is_condition, makes_result
from .operators import Lowered
from .tree import Call, Choice, Name, Tree, in_order, parts, text, with_parts

_ABOVE = "# What follows from expressions, of the lines that are named."
_LONG = 16  # characters, of what is better named than written twice


def written_operators(entries: Lowered) -> str:
    """The operators that no entry declares, with their expressions; nothing where none are."""
    derived = [e for e in entries.expressions.values() if e.is_derivative]
    lines = [line for expressions in derived for line in ("", *_operator(expressions))]
    return "\n".join(["", _ABOVE, *lines, ""]) if lines else ""


def written_derivatives(entries: Lowered, given: Iterable[Derivative]) -> str:
    """The formulas that no entry has."""
    known = {id(derivative) for derivative in given}
    derived = [d for d in entries.derivatives if id(d) not in known]
    lines = [line for derivative in derived for line in ("", *_derivative(derivative))]
    return "\n".join([_ABOVE, *lines, ""]) if lines else ""


def _operator(expressions: Expressions) -> Iterator[str]:
    operator: Operator = expressions.operator
    yield f"- func: {operator.func}  # {operator.location.file_line}"
    key = "pointwise" if expressions.of_rows is None else "rows"
    if operator.dtypes:
        yield f"  dtypes: {_dtypes(operator.dtypes)}"
    local, results = named(expressions.results, expressions.kinds)
    if local:
        yield "  let:"
        yield from (f"    {name}: {_quoted(text(tree))}" for name, tree in local.items())
    *several, last = map(text, results)
    if not several:
        yield f"  {key}: {_quoted(last)}"
    else:
        yield f"  {key}:"
        yield from (f"    - {_quoted(words)}" for words in (*several, last))
    yield f"  doc: {_quoted(operator.doc)}"


def _dtypes(rules: Iterable[DtypeRule]) -> str:
    """Those of all tensors, or of each."""
    texts = {rule.argument: f"[{', '.join(map(torch_name, rule.dtypes))}]" for rule in rules}
    of_each = ", ".join(f"{name}: {dtypes}" for name, dtypes in texts.items())
    return texts.get(None) or f"{{{of_each}}}"


def named(
    results: tuple[Tree, ...], taken: Iterable[str]
) -> tuple[dict[str, Tree], tuple[Tree, ...]]:
    """Results by names for what stands in them more than once, and what those are, each made of
    the ones before; taken: the names of arguments."""
    order, taken = in_order(*results), set(taken)
    uses = Counter([*results, *(inner for part in order for inner in parts(part))])
    local: dict[str, Tree] = {}
    made: dict[Tree, Tree] = {}
    for part in order:
        made[part] = with_parts(part, made)
        is_value = isinstance(part, (Call, Choice)) and not makes_result(part)
        if is_value and uses[part] > 1 and not is_condition(part):
            if len(text(made[part], _LONG)) > _LONG:
                name = f"v{len(local)}"
                while name in taken:
                    name += "_"
                local[name] = made[part]
                made[part] = Name(name)
    return local, tuple(made[result] for result in results)


def _derivative(derivative: Derivative) -> Iterator[str]:
    yield f"- name: {derivative.name}  # {derivative.location.file_line}"
    if derivative.output_differentiability is not None:
        flags = ", ".join(flag.text for flag in derivative.output_differentiability)
        yield f"  output_differentiability: [{flags}]"
    for formula in derivative.formulas:
        yield f"  {', '.join(formula.names)}: {_quoted(formula.text)}"


def _quoted(words: str) -> str:
    """A text that YAML reads as itself."""
    is_plain = words[0] not in "-'\"%@`{}[]&*!|>?:,#" and ": " not in words and " #" not in words
    return words if is_plain else json.dumps(words, ensure_ascii=False)
