# SPDX-License-Identifier: BSD-3-Clause
"""The floating and complex dtypes that expressions are compiled for: those that `dtypes:` lets a
call have. Complex ones are asked for: without a word tensors are real."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from ..schema.schema import Schema
from ..spec.dtypes import GROUPS
from ..spec.model import DtypeRule, Operator
from .dtypes import SMOOTH_CASTS, Category, Dtype
from .tree import Cast, Tree

FLOATS = ("Half", "BFloat16", "Float", "Double")
COMPLEX = ("ComplexHalf", *GROUPS["Complex"])
_SIXTEEN_BITS = {"Half", "BFloat16"}
_DEVICES = ("CPU", "CUDA")  # for which expressions are compiled


def floats_of(
    rules: tuple[DtypeRule, ...],
    common: Dtype,
    results: Iterable[Dtype],
    kinds: Mapping[str, str],
    of_rows: Set[str],
) -> tuple[str, ...] | None:
    """The real dtypes in which a call can be computed; None where they may be any.

    rules: the entry's `dtypes:`. common, results: what is promoted, together and for each result.
    kinds: of the arguments. of_rows: those that rows have one number of, whose integers are read as
    such.

    Tensors that may be integers decide nothing beside one that is a float; without one they are
    computed in the default dtype, which may be any, and so is a result of theirs, or of numbers.
    """
    lists = _real_lists(rules, common.tensors)
    if lists is None:
        return None
    if any(not dtypes and kinds[name] == "tensor" for name, dtypes in lists.items()):
        return ()  # that one is complex
    real = {name for name, dtypes in lists.items() if {*dtypes} <= {*FLOATS}}

    def is_known(dtype: Dtype) -> bool:
        own = real.intersection(dtype.tensors)
        is_given = any(kinds[name] == "tensor" for name in own)
        return bool(own) and (own == {*dtype.tensors} or is_given)

    floats = (
        dtype
        for dtype in results
        if dtype.least is Category.FLOAT or dtype.numbers or not real.isdisjoint(dtype.tensors)
        if not dtype.is_bool and not dtype.cast
    )
    if not all(map(is_known, (common, *floats))):
        return None
    read = [
        dtype
        for name, dtypes in lists.items()
        for dtype in dtypes
        if dtype in FLOATS or name not in of_rows
    ]
    # What 16 bits do not have is not rounded to them, but computed in 32.
    is_mixed = len({*read}) > 1 and not _SIXTEEN_BITS.isdisjoint(read)
    return promoted([*read, "Float"] if is_mixed else read)


def _real_lists(
    rules: tuple[DtypeRule, ...], tensors: Iterable[str]
) -> dict[str, tuple[str, ...]] | None:
    """The real dtypes that tensors may have; None where one may have any, or there is none."""
    lists = {name: listed(rules, name) for name in tensors}
    if not lists or not all(lists.values()):
        return None
    return {n: tuple(d for d in dtypes if d not in COMPLEX) for n, dtypes in lists.items()}


def complex_of(rules: tuple[DtypeRule, ...], arguments: Iterable[str]) -> tuple[str, ...]:
    """The complex dtypes in which a call of arguments can be computed: none of real ones."""
    found = {dtype for name in arguments for dtype in listed(rules, name) if dtype in COMPLEX}
    return tuple(d for d in COMPLEX if d in {*found, *GROUPS["Complex"]}) if found else ()


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
    if found >= _SIXTEEN_BITS:
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
    own = [argument.name for argument in source.func.arguments]
    of_complex = complex_of(rules, own)
    if floats is None and not of_complex:
        return ()
    casts = [SMOOTH_CASTS.get(tree.dtype, "") for tree in results if isinstance(tree, Cast)]
    others = (*promoted([*(FLOATS if floats is None else floats), *casts]), *of_complex)
    lists = {
        argument.name: listed(rules, argument.name) if argument.name in own else others
        for argument in func.arguments
        if argument.type.is_tensor_like
    }
    place = rules[0].location
    if len({*lists.values()}) == 1:
        return (DtypeRule(place, next(iter(lists.values()))),)
    return tuple(DtypeRule(place, dtypes, None, name) for name, dtypes in lists.items() if dtypes)
