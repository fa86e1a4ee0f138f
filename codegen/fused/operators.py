# SPDX-License-Identifier: BSD-3-Clause
"""Entries with `pointwise:`, as entries that name kernels and formulas.

Of one that says nothing else four operators follow: itself, `f_backward`, its gradients,
`f_double_backward`, theirs, and `f_jvp`, its tangent. All of them are expressions; the formulas of
the first two are calls of the others, and those two differentiate as what they are made of.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..errors import Errors
from ..schema.schema import Argument, OperatorName, Schema
from ..spec.model import Derivative, DispatchEntry, Expression, Operator
from .derived import MASK, Derived, derived_operators
from .dtypes import Dtype, dtype_of, needed_for_all
from .reading import KINDS, Mistake, read
from .tree import Tree, names

_COMPOSITE = "CompositeImplicitAutograd"
_STRUCTURED_KEYS = ("CPU", "CUDA")
_PLAIN_KEYS = (*_STRUCTURED_KEYS, "Meta", _COMPOSITE)
# Keys that say what the expression says.
_SAID = (
    "dispatch", "meta", "structured_inherits", "precomputed", "ufunc_inner_loop", "layout", "vmap",
    "allocates", "manual_kernel_registration",
)  # fmt: skip


@dataclass(frozen=True)
class Expressions:
    """What an operator computes of the elements of its arguments."""

    operator: Operator
    results: tuple[Tree, ...]
    kinds: dict[str, str]  # of the arguments that an expression may name
    dtypes: tuple[Dtype, ...]  # of the results
    common: Dtype  # in which everything is computed
    mask: str | None = None  # the argument that says which results are wanted
    is_derivative: bool = False  # of floats alone, and of tensors that are


@dataclass(frozen=True)
class Lowered:
    """All entries, and the expressions of those that have some: by name, forms too."""

    operators: list[Operator]
    derivatives: list[Derivative]
    expressions: dict[OperatorName, Expressions]


def lowered(
    namespace: str, operators: list[Operator], derivatives: list[Derivative], errors: Errors
) -> Lowered:
    """Entries without `pointwise:`; mistakes are noted."""
    found = Lowered([], list(derivatives), {})
    given = {derivative.name.name.unqualified for derivative in derivatives}
    taken = {operator.name for operator in operators}
    by_name = {str(operator.name): operator for operator in operators}
    forms = [op for op in operators if op.structured_delegate is not None]
    outs = {op.structured_delegate for op in forms if op.pointwise}
    delegates = {op.name for op in forms if op.structured_delegate in outs}
    for operator in operators:
        if operator.let and not operator.pointwise:
            with errors.about(str(operator.name)):
                errors.add(operator.at("let"), "'let' names parts of 'pointwise', which is missing")
        if str(operator.name) in outs:
            operator = _structured(operator)
        elif operator.pointwise and not operator.is_override:
            with errors.about(str(operator.name)):
                expressions = _expressions(operator, errors)
            if expressions is None:
                found.operators.append(operator)
                continue
            is_structured = operator.name in delegates
            operator = _with_kernels(operator, is_structured)
            found.expressions[operator.name] = dataclasses.replace(expressions, operator=operator)
            if is_structured:
                out = by_name[str(operator.structured_delegate)]
                found.expressions[out.name] = found.expressions[operator.name]
            if operator.differentiable and operator.func.name.unqualified not in given:
                derived = derived_operators(
                    namespace, operator.func, expressions.results, expressions.kinds
                )
                with errors.about(str(operator.name)):
                    _add(found, operator, derived, taken, errors)
        found.operators.append(operator)
    return found


def _structured(out: Operator) -> Operator:
    """The out= form of a functional one with an expression."""
    return dataclasses.replace(
        out,
        structured_inherits="TensorIteratorBase",
        dispatch=_dispatch(out, out.func.name.base, _STRUCTURED_KEYS),
        device_check="NoCheck",
        vmap=out.vmap or "pointwise",
        tags=_pointwise_tags(out),
    )


def _with_kernels(operator: Operator, is_structured: bool) -> Operator:
    keys = (_COMPOSITE,) if is_structured else _PLAIN_KEYS
    dispatch = _dispatch(operator, operator.name.identifier, keys)
    vmap = operator.vmap or "pointwise"
    return dataclasses.replace(
        operator, dispatch=dispatch, device_check="NoCheck", vmap=vmap,
        tags=_pointwise_tags(operator),
    )  # fmt: skip


def _pointwise_tags(operator: Operator) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*operator.tags, "pointwise")))


def _dispatch(operator: Operator, name: str, keys: Iterable[str]) -> tuple[DispatchEntry, ...]:
    place = operator.at("pointwise")
    return tuple(DispatchEntry(key, f"{name}_{_SUFFIXES[key]}", place) for key in keys)


_SUFFIXES = {
    "CPU": "cpu", "CUDA": "cuda", "Meta": "meta", _COMPOSITE: "composite", "Autograd": "autograd",
}  # fmt: skip


def kinds_of(func: Schema) -> dict[str, str]:
    """What the arguments of a schema are in an expression."""
    found = {}
    for argument in func.arguments:
        plain = argument.type.bare().plain
        found[argument.name] = {"Tensor": "tensor", "Tensor?": "tensor?"}.get(plain, plain)
    return found


def mask_of(func: Schema) -> Argument | None:
    """The argument that says which of several results are wanted."""
    found = func.argument(MASK)
    return found if found is not None and str(found.type) == f"bool[{len(func.returns)}]" else None


def _expressions(operator: Operator, errors: Errors) -> Expressions | None:
    """The expressions of an entry; None, and noted, where something is wrong with them."""
    func, place, before = operator.func, operator.at("pointwise"), errors.count
    mask = mask_of(func)
    kinds = kinds_of(func)
    for key in _SAID:
        if key in operator.locations:
            errors.add(operator.at(key), f"'pointwise' says what '{key}' would")
    if func.mutated:
        errors.add(place, "'pointwise' stands on the functional entry, which writes to no argument")
    if any(str(result.type) != "Tensor" for result in func.returns) or not func.returns:
        errors.add(place, "what 'pointwise' computes are results of type Tensor")
    elif len(func.returns) != len(operator.pointwise):
        count, wanted = len(operator.pointwise), len(func.returns)
        errors.add(place, f"'{operator.name}' has {wanted} results, and here are {count}")
    if "tensor" not in kinds.values():
        errors.add(place, "'pointwise' needs an argument of type Tensor")
    for argument in func.arguments:
        if kinds[argument.name] not in KINDS and argument is not mask:
            message = f"an expression cannot use the '{argument.type}' {argument.name}"
            errors.add(operator.location, message)
    local = _local(operator, kinds, errors)
    _check_names(operator, errors)
    results = [_read(line, kinds, local, errors) for line in operator.pointwise]
    if errors.count > before or any(tree is None for tree in results):
        return None
    trees = tuple(tree for tree in results if tree is not None)
    _check_unused(operator, trees, mask, errors)
    return made(operator, trees, mask.name if mask else None)


def made(operator: Operator, trees: tuple[Tree, ...], mask: str | None) -> Expressions:
    """The expressions of an operator whose arguments they fit."""
    kinds = kinds_of(operator.func)
    dtypes = tuple(dtype_of(tree, kinds) for tree in trees)
    return Expressions(operator, trees, kinds, dtypes, needed_for_all(trees, kinds), mask)


def _local(operator: Operator, kinds: Mapping[str, str], errors: Errors) -> dict[str, Tree]:
    """The values of the names of `let:`."""
    found: dict[str, Tree] = {}
    for name, line in operator.let:
        if name.text in kinds:
            errors.add(name.location, f"'{name.text}' is an argument")
        elif not name.text.isidentifier() or not name.text.isascii():
            errors.add(name.location, f"'{name.text}' is no name")
        tree = _read(line, kinds, found, errors)
        if tree is not None:
            found[name.text] = tree
    return found


def _check_names(operator: Operator, errors: Errors) -> None:
    """Each name of `let:` stands in what follows it."""
    lines = [line.text for _, line in operator.let]
    for index, (name, _) in enumerate(operator.let):
        texts = [*lines[index + 1 :], *(line.text for line in operator.pointwise)]
        if not any(re.search(rf"\b{re.escape(name.text)}\b", text) for text in texts):
            errors.add(name.location, f"no expression uses '{name.text}'")


def _read(
    line: Expression, kinds: Mapping[str, str], local: Mapping[str, Tree], errors: Errors
) -> Tree | None:
    try:
        return read(line.text, kinds, local)
    except Mistake as mistake:
        is_cut = line.text.count("(") != line.text.count(")")
        hint = "between [ and ] a comma ends an expression: quote it, or begin a line with '-'"
        errors.add(line.at(mistake.offset), mistake.message, mistake.hint or hint * is_cut or None)
        return None


def _check_unused(
    operator: Operator, trees: tuple[Tree, ...], mask: Argument | None, errors: Errors
) -> None:
    used = set(names(*trees))
    for argument in operator.func.arguments:
        if argument.name not in used and argument is not mask:
            message = f"no expression uses the argument '{argument.name}'"
            errors.add(operator.at("pointwise"), message)


def _add(
    found: Lowered, source: Operator, derived: Derived, taken: set[OperatorName], errors: Errors
) -> None:
    """Take in the operators and formulas that are derived from one."""
    place = source.at("pointwise")
    for new in derived.operators:
        name = OperatorName(new.func.name.base, new.func.name.overload)
        if name in taken:
            message = f"'{name}' is an operator, and the name of a derivative of '{source.name}'"
            hint = "give that one another name, or this one formulas in derivatives.yaml"
            errors.add(place, message, hint)
            return
        taken.add(name)
        keys = (*_PLAIN_KEYS, "Autograd") if new.is_composite else _PLAIN_KEYS
        operator = Operator(
            location=source.location,
            func=new.func,
            dispatch=_dispatch(source, name.identifier, keys),
            tags=("pointwise",),
            doc=new.doc,
            device_check="NoCheck",
            vmap="pointwise",
            locations={"pointwise": place},
        )
        expressions = made(operator, new.results, MASK if mask_of(new.func) else None)
        dtypes = new.dtypes or (expressions.common,) * len(new.results)
        found.expressions[operator.name] = dataclasses.replace(
            expressions, is_derivative=True, dtypes=dtypes
        )
        found.operators.append(operator)
    found.derivatives.extend(derived.derivatives(place))
