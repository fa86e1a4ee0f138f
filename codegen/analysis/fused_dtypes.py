# SPDX-License-Identifier: BSD-3-Clause
"""The dtypes that the kernels of an expression are compiled for, and what they know of dtypes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..cpp import names as cpp_names
from ..fused.dtypes import Category, Dtype, compared, of_some
from ..fused.entries import Expressions
from ..fused.floats import FLOATS
from ..fused.functions import functions
from ..fused.tree import Call, Number, Tree, in_order, names
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


def real_parts_of(expressions: Expressions, before: set[Tree]) -> dict[Tree, Dtype]:
    """What is computed of real numbers where the arguments that it names are real, though others
    are complex; nothing of what is computed before any element."""
    if not expressions.complex:
        return {}
    found = of_some(expressions.results, expressions.kinds, expressions.common)
    return {part: dtype for part, dtype in found.items() if part not in before}


def complex_numbers_of(part: Tree, expressions: Expressions) -> Iterator[str]:
    """The numbers that an expression is made of and that may be complex: parameters."""
    for name in names(part) if expressions.complex else ():
        if expressions.kinds[name] == "Scalar":
            yield cpp_names.parameter_name(name)


def is_of_integers(part: Tree, kinds: Mapping[str, str]) -> bool:
    """Whether numbers are computed of integers alone."""
    inner = in_order(part)
    is_whole = all(kinds[name] in ("int", "bool") for name in names(part))
    literals = (one.value for one in inner if isinstance(one, Number))
    calls = (functions()[one.function] for one in inner if isinstance(one, Call))
    has_floats = any(isinstance(value, float) for value in literals)
    return is_whole and not has_floats and not any(function.is_real for function in calls)
