# SPDX-License-Identifier: BSD-3-Clause
"""Entries with `pointwise:` or `rows:`, as entries that name kernels and formulas.

Of one that says nothing else four operators follow: itself, `f_backward`, its gradients,
`f_double_backward`, theirs, and `f_jvp`, its tangent. All of them are expressions; the formulas of
the first two are calls of the others, and those two differentiate as what they are made of.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Set
from dataclasses import dataclass

from ..errors import Errors
from ..schema.schema import OperatorName
from ..spec.model import Derivative, DispatchEntry, DtypeRule, Operator
from .derivatives import NotDifferentiable
from .derived import derived_operators
from .entries import MASK, Expressions, expressions_of, key_of, lines_of, made, mask_of
from .floats import floats_of, rules_of_derived
from .formula_text import Derived

_COMPOSITE, _EXPLICIT = "CompositeImplicitAutograd", "CompositeExplicitAutograd"
_STRUCTURED_KEYS = ("CPU", "CUDA")
_PLAIN_KEYS = (*_STRUCTURED_KEYS, "Meta", _COMPOSITE)


@dataclass(frozen=True)
class Lowered:
    """All entries, and the expressions of those that have some: by name, forms too."""

    operators: list[Operator]
    derivatives: list[Derivative]
    expressions: dict[OperatorName, Expressions]


def lowered(
    namespace: str, operators: list[Operator], derivatives: list[Derivative], errors: Errors
) -> Lowered:
    """Entries without expressions; mistakes are noted."""
    found = Lowered([], list(derivatives), {})
    given = {derivative.name.name.unqualified for derivative in derivatives}
    taken = {operator.name for operator in operators}
    by_name = {str(operator.name): operator for operator in operators}
    forms = [op for op in operators if op.structured_delegate is not None]
    outs = {op.structured_delegate for op in forms if op.pointwise}
    delegates = {op.name for op in forms if op.structured_delegate in outs}
    constant: set[str | None] = set()
    for operator in operators:
        _check_keys(operator, errors)
        if str(operator.name) in outs:
            operator = _structured(operator)
        elif lines_of(operator) and not operator.is_override:
            is_structured = operator.name in delegates
            of_kernels = by_name[str(operator.structured_delegate)] if is_structured else operator
            rules = of_kernels.dtypes
            with errors.about(str(operator.name)):
                expressions = expressions_of(operator, errors, rules)
            if expressions is None:
                found.operators.append(operator)
                continue
            operator = _with_kernels(operator, is_structured)
            floats = _floats(rules, expressions)
            expressions = dataclasses.replace(expressions, operator=operator, floats=floats)
            found.expressions[operator.name] = found.expressions[of_kernels.name] = expressions
            if operator.differentiable and operator.func.name.unqualified not in given:
                with errors.about(str(operator.name)):
                    derived = _derived(namespace, expressions, errors)
                    _add(found, expressions, rules, derived, taken, errors)
                if not derived.operators:
                    constant |= {str(operator.name), operator.structured_delegate}
        found.operators.append(operator)
    found.operators[:] = [_without_gradient(op, constant) for op in found.operators]
    return found


def _floats(rules: tuple[DtypeRule, ...], known: Expressions) -> tuple[str, ...] | None:
    of_rows = known.of_rows or frozenset()
    return floats_of(rules, known.common, known.dtypes, known.kinds, of_rows)


def _derived(namespace: str, expressions: Expressions, errors: Errors) -> Derived:
    operator, results = expressions.operator, expressions.results
    try:
        return derived_operators(
            namespace, operator.func, results, expressions.kinds, expressions.of_rows,
            bool(expressions.complex),
        )  # fmt: skip
    except NotDifferentiable as error:
        message = f"its second derivatives need one of '{error}' that is not known"
        hint = "say 'differentiable: False', or give it formulas in derivatives.yaml"
        errors.add(operator.at(key_of(operator)), message, hint)
        return Derived()


def _without_gradient(operator: Operator, constant: Set[str | None]) -> Operator:
    """The operator, of which autograd knows that nothing depends smoothly on its arguments, as
    nothing does on those of a comparison; its forms too."""
    own = {str(operator.name), operator.structured_delegate} - {None}
    return (
        operator
        if own.isdisjoint(constant)
        else dataclasses.replace(operator, differentiable=False)
    )


def _check_keys(operator: Operator, errors: Errors) -> None:
    """What is said of expressions stands beside some."""
    with errors.about(str(operator.name)):
        if operator.let and not lines_of(operator):
            message = "'let' names parts of 'pointwise' or 'rows', which is missing"
            errors.add(operator.at("let"), message)
        if operator.opaque and not lines_of(operator):
            message = "only what 'pointwise' or 'rows' computes is seen by torch.compile"
            errors.add(operator.at("opaque"), message, "an operator with kernels is opaque")


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
    if operator.rows:
        dispatch = _dispatch(operator, operator.name.identifier, _keys(_PLAIN_KEYS, operator))
        return dataclasses.replace(operator, dispatch=dispatch, device_check="NoCheck")
    keys = (_COMPOSITE,) if is_structured else _PLAIN_KEYS
    dispatch = _dispatch(operator, operator.name.identifier, _keys(keys, operator))
    vmap = operator.vmap or "pointwise"
    return dataclasses.replace(
        operator, dispatch=dispatch, device_check="NoCheck", vmap=vmap,
        tags=_pointwise_tags(operator),
    )  # fmt: skip


def _pointwise_tags(operator: Operator) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*operator.tags, "pointwise")))


def _keys(keys: Iterable[str], operator: Operator) -> tuple[str, ...]:
    """Dispatch keys: torch.compile does not look into a composite that is explicit."""
    return tuple(_EXPLICIT if operator.opaque and key == _COMPOSITE else key for key in keys)


def _dispatch(operator: Operator, name: str, keys: Iterable[str]) -> tuple[DispatchEntry, ...]:
    place = operator.at(key_of(operator))
    return tuple(DispatchEntry(key, f"{name}_{_SUFFIXES[key]}", place) for key in keys)


_SUFFIXES = {
    "CPU": "cpu", "CUDA": "cuda", "Meta": "meta", "Autograd": "autograd",
    _COMPOSITE: "composite", _EXPLICIT: "composite",
}  # fmt: skip


def _add(
    found: Lowered,
    source_expressions: Expressions,
    rules: tuple[DtypeRule, ...],
    derived: Derived,
    taken: set[OperatorName],
    errors: Errors,
) -> None:
    """Take in the operators and formulas that are derived from one; rules: its `dtypes:`."""
    source, floats = source_expressions.operator, source_expressions.floats
    key = key_of(source)
    place = source.at(key)
    for new in derived.operators:
        name = OperatorName(new.func.name.base, new.func.name.overload)
        if name in taken:
            message = f"'{name}' is an operator, and the name of a derivative of '{source.name}'"
            hint = "give that one another name, or this one formulas in derivatives.yaml"
            errors.add(place, message, hint)
            return
        taken.add(name)
        keys = (*_PLAIN_KEYS, "Autograd") if new.is_composite else _PLAIN_KEYS
        keys = _keys(keys, source)
        operator = Operator(
            location=source.location,
            func=new.func,
            dispatch=_dispatch(source, name.identifier, keys),
            tags=() if source.rows else ("pointwise",),
            doc=new.doc,
            device_check="NoCheck",
            vmap=None if source.rows else "pointwise",
            dtypes=rules_of_derived(source, rules, floats, source_expressions.results, new.func),
            locations={key: place},
        )
        mask = MASK if mask_of(new.func) else None
        expressions = made(operator, new.results, operator.dtypes, mask, bool(source.rows))
        dtypes = new.dtypes or (expressions.common,) * len(new.results)
        expressions = dataclasses.replace(expressions, is_derivative=True, dtypes=dtypes)
        found.expressions[operator.name] = dataclasses.replace(
            expressions, floats=_floats(operator.dtypes, expressions)
        )
        found.operators.append(operator)
    found.derivatives.extend(derived.derivatives(place))
