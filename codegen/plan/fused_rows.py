# SPDX-License-Identifier: BSD-3-Clause
"""The part of the Plan that is about expressions of rows: in which order a row is gone over."""

from __future__ import annotations

from dataclasses import dataclass

from ..fused.tree import Call, Tree


@dataclass(frozen=True)
class Pass:
    """What is computed of a row once, and then of each of its elements."""

    of_row: tuple[Tree, ...]  # each behind those that it needs
    reads: tuple[Tree, ...]  # the inputs whose elements are needed
    uses_row: tuple[int, ...]  # the numbers of the row that elements are computed with
    uses_kept: tuple[int, ...]  # parts that an earlier pass has kept
    steps: tuple[Tree, ...]
    kept: tuple[int, ...]  # of the steps those that a later pass needs
    reductions: tuple[Call, ...]  # each of one part
    results: tuple[int, ...]  # of elements


@dataclass(frozen=True)
class RowsPlan:
    """How an expression of rows is computed, row by row."""

    read: frozenset[Tree]  # inputs of which more counts than whether they are there
    indices: frozenset[Tree]  # those that choose an element
    uses_positions: bool
    passes: tuple[Pass, ...]
    last: tuple[Tree, ...]  # what is computed of a row behind all
    kept: tuple[Tree, ...]  # what is kept of each element between passes
    numbers: tuple[Tree, ...]  # all that rows have one number of
    conditions: tuple[Tree, ...]
    inlined: frozenset[Tree]  # what is computed only where it is chosen
    sizes: tuple[Tree | None, ...]  # inputs that results are summed to the size of
    row_results: tuple[bool, ...]  # whether rows have one number of a result
    may_be_inputs: tuple[bool, ...]  # whether a result may be an argument itself
    refuses_empty: bool  # a row without elements has no result
    counts_elements: bool  # integers are computed that are as large as a row is long
    needs_counts: bool  # and must be exact, though places are compared as integers
