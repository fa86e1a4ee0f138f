# SPDX-License-Identifier: BSD-3-Clause
"""The dtypes that the kernels of an expression are compiled for, and what they know of dtypes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set

from ..fused.branches import is_known
from ..fused.complexes import takes_part
from ..fused.dtypes import Category, Dtype, compared
from ..fused.entries import Expressions
from ..fused.floats import FLOATS
from ..fused.functions import functions, is_condition
from ..fused.tree import Call, Choice, Name, Number, Tree, in_order, names
from ..plan.fused import IsReal, Shared
from ..spec.dtypes import GROUPS

_WHOLE = GROUPS["Integral"]


def types_of(expressions: Expressions) -> tuple[str, ...]:
    """The dtypes that an expression is computed in, names of c10."""
    return (*_real_types(expressions), *expressions.complex)


def _real_types(expressions: Expressions) -> tuple[str, ...]:
    if expressions.floats is not None:
        return expressions.floats
    least = expressions.common.least
    has_rows = expressions.of_rows is not None
    if least == Category.FLOAT or expressions.is_derivative or has_rows:
        return FLOATS
    parts = (part for part in in_order(*expressions.results) if isinstance(part, Call))
    of_bools = all(functions()[part.function].takes_bools for part in parts)
    bools = ("Bool",) if least == Category.BOOL and of_bools else ()
    return (*FLOATS, *_WHOLE, *bools)


def comparisons_of(expressions: Expressions) -> Iterator[Dtype]:
    """The dtypes in which numbers are compared, where that is another than all are computed in."""
    # What a derivative compares was computed in this dtype where the operator was.
    if not expressions.is_derivative:
        for dtype in compared(expressions.results, expressions.kinds):
            if set(dtype.tensors) - (expressions.of_rows or set()):
                yield dtype


def real_parts_of(
    expressions: Expressions, numbers: Iterable[Shared], before: Set[Tree]
) -> dict[Tree, IsReal]:
    """When a call is one of real numbers, though others are complex; none is that all arguments
    are real for, or that is computed before any element. numbers: what is, and may be complex."""
    if not expressions.complex:
        return {}
    shared = {one.tree: one.may_be_complex for one in numbers}
    found: dict[Tree, IsReal] = {}
    for part in in_order(*expressions.results):
        found[part] = _is_real(part, found, expressions.kinds, shared)
    all_of_them = IsReal(frozenset().union(*(when.leaves for when in found.values())))
    return {
        part: when
        for part, when in found.items()
        if isinstance(part, Call) and not is_condition(part) and part not in before
        if when != all_of_them
    }


def _is_real(
    part: Tree,
    made: Mapping[Tree, IsReal],
    kinds: Mapping[str, str],
    shared: Mapping[Tree, bool],
) -> IsReal:
    if part in shared:
        return IsReal(frozenset([part] if shared[part] else []))
    if isinstance(part, Name) and kinds[part.name].startswith("tensor"):
        return IsReal(frozenset([part]))
    if isinstance(part, Choice) and is_known(part.condition, kinds):
        both = made[part.then], made[part.other]
        return both[0] if both[0] == both[1] else IsReal(choices=((part.condition, *both),))
    if isinstance(part, Choice):
        return _all([made[part.then], made[part.other]])
    if takes_part(part):
        return made[part.arguments[0]]
    if isinstance(part, Call) and not is_condition(part):
        return _all([made[argument] for argument in part.arguments])
    return IsReal()


def _all(several: Iterable[IsReal]) -> IsReal:
    several = tuple(several)
    choices = dict.fromkeys(choice for one in several for choice in one.choices)
    return IsReal(frozenset().union(*(one.leaves for one in several)), tuple(choices))


def has_complex_number(part: Tree, expressions: Expressions) -> bool:
    """Whether a number is computed of one that may be complex."""
    return bool(expressions.complex) and any(expressions.kinds[n] == "Scalar" for n in names(part))


def is_of_integers(part: Tree, kinds: Mapping[str, str]) -> bool:
    """Whether numbers are computed of integers alone."""
    inner = in_order(part)
    is_whole = all(kinds[name] in ("int", "bool") for name in names(part))
    literals = (one.value for one in inner if isinstance(one, Number))
    calls = (functions()[one.function] for one in inner if isinstance(one, Call))
    has_floats = any(isinstance(value, float) for value in literals)
    return is_whole and not has_floats and not any(function.is_real for function in calls)
