# SPDX-License-Identifier: BSD-3-Clause
"""Slices of rows: one of equal parts, whose bounds are said by the length of the row."""

from __future__ import annotations

import ast
from fractions import Fraction

from .tree import LENGTH, Name, Slice

MOST = 16  # slices of a row
WRITTEN = f"as [:{LENGTH} // 2], [{LENGTH} // 2:] or [{LENGTH} // 3:2 * {LENGTH} // 3]"


def slice_of(name: str, bounds: ast.Slice) -> Name | Slice | None:
    """The slice of an argument between bounds; None where it is no part of several equal ones."""
    begin, end = _fraction(bounds.lower, 0), _fraction(bounds.upper, 1)
    if begin is None or end is None or bounds.step or end <= begin:
        return None
    part = end - begin
    if part.numerator > 1 or begin % part:
        return None
    is_whole = part == 1
    return Name(name) if is_whole else Slice(name, int(begin / part), part.denominator)


def _fraction(bound: ast.expr | None, otherwise: int) -> Fraction | None:
    """Where a slice begins or ends, of the length of the row; None where that is not said so."""
    match bound:
        case None:
            return Fraction(otherwise)
        case ast.BinOp(ast.Name(name), ast.FloorDiv(), ast.Constant(int(count))):
            times = 1
        case ast.BinOp(
            ast.BinOp(ast.Constant(int(times)), ast.Mult(), ast.Name(name)),
            ast.FloorDiv(),
            ast.Constant(int(count)),
        ):
            pass
        case _:
            return None
    is_within = name == LENGTH and 0 < times < count <= MOST
    return Fraction(times, count) if is_within else None
