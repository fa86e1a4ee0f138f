# SPDX-License-Identifier: BSD-3-Clause
"""The floating dtypes that expressions are compiled for: those that `dtypes:` lets a call have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..schema.schema import Schema
from ..spec.model import DtypeRule, Operator
from .dtypes import SMOOTH_CASTS, Dtype
from .tree import Cast, Tree

FLOATS = ("Half", "BFloat16", "Float", "Double")
_DEVICES = ("CPU", "CUDA")  # for which expressions are compiled


def floats_of(
    rules: tuple[DtypeRule, ...], common: Dtype, kinds: Mapping[str, str]
) -> tuple[str, ...] | None:
    """The dtypes in which a call can be computed; None where its tensors may have any.

    rules: the entry's `dtypes:`. common: what is promoted. kinds: of the arguments.

    Tensors that may be integers decide nothing beside one that is a float, and without one they
    are computed in the default dtype, which may be any.
    """
    lists = {name: listed(rules, name) for name in common.tensors}
    real = {name for name, dtypes in lists.items() if dtypes and {*dtypes} <= {*FLOATS}}
    is_float = real == {*lists} or any(kinds[name] == "tensor" for name in real)
    if not lists or not all(lists.values()) or not is_float:
        return None
    return promoted(dtype for dtypes in lists.values() for dtype in dtypes)


def listed(rules: tuple[DtypeRule, ...], name: str) -> tuple[str, ...]:
    """The dtypes that an argument may have on any device; () for all."""
    found = [_on(device, rules, name) for device in _DEVICES]
    return tuple(dict.fromkeys(d for dtypes in found for d in dtypes)) if all(found) else ()


def _on(device: str, rules: tuple[DtypeRule, ...], name: str) -> tuple[str, ...]:
    """A key's own rules stand before those for all keys, and an argument's before those for all."""
    order = [(device, name), (device, None), (None, name), (None, None)]
    by_place = {(rule.key, rule.argument): rule.dtypes for rule in rules}
    return next((by_place[place] for place in order if place in by_place), ())


def promoted(dtypes: Iterable[str]) -> tuple[str, ...]:
    """Those of some that are floats, and what two of them are together."""
    found = {*dtypes} & {*FLOATS}
    if {"Half", "BFloat16"} <= found:
        found.add("Float")
    return tuple(dtype for dtype in FLOATS if dtype in found)


def rules_of_derived(
    source: Operator,
    rules: tuple[DtypeRule, ...],
    floats: tuple[str, ...] | None,
    results: Iterable[Tree],
    func: Schema,
) -> tuple[DtypeRule, ...]:
    """`dtypes:` of an operator that is derived from one, whose results these are; floats: in which
    that is computed."""
    if floats is None:
        return ()
    casts = [SMOOTH_CASTS.get(tree.dtype, "") for tree in results if isinstance(tree, Cast)]
    others = promoted([*floats, *casts])
    own = {argument.name for argument in source.func.arguments}
    lists = {
        argument.name: listed(rules, argument.name) if argument.name in own else others
        for argument in func.arguments
        if argument.type.is_tensor_like
    }
    place = rules[0].location
    if len({*lists.values()}) == 1:
        return (DtypeRule(place, next(iter(lists.values()))),)
    return tuple(DtypeRule(place, dtypes, None, name) for name, dtypes in lists.items() if dtypes)
