# SPDX-License-Identifier: BSD-3-Clause
"""How an expression of rows is computed: how often a row is gone over, and what is kept meanwhile.

A reduction is known behind the pass over the elements that it is made of, which may need others
that are known by then. What is computed with functions that take long, and is needed in several
passes, is computed in the first of them and kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from ..fused.dtypes import counts_elements
from ..fused.extents import Extent, extents
from ..fused.functions import (
    functions,
    indices_of,
    is_condition,
    positions,
    refuses_empty,
    size_of,
)
from ..fused.tree import (
    ELEMENT,
    Call,
    Choice,
    IsMissing,
    Name,
    Number,
    OfRow,
    Slice,
    Tree,
    in_order,
    parts,
)
from ..plan.fused_rows import Pass, RowsPlan


def rows_plan(
    results: tuple[Tree, ...],
    whole: tuple[Tree, ...],
    kinds: Mapping[str, str],
    read: frozenset[Tree],
    before: Set[Tree],
) -> RowsPlan:
    """The plan of results that are made of primitives. whole: the results that they are rows of, or
    themselves; read: the inputs of which more counts than whether they are there; before: the
    parts that are known once a call."""
    extent = extents(kinds, *whole)
    row_results = tuple(extent[tree] is not Extent.ELEMENT for tree in whole)
    sizes = tuple(map(size_of, whole))
    is_refused = any(row_results) and any(map(refuses_empty, in_order(*whole)))
    counts = counts_elements(dict.fromkeys(whole), kinds)
    return _Rows(results, row_results, kinds, before).plan(sizes, read, is_refused, counts)


class _Rows:
    """One operator's expressions."""

    def __init__(
        self,
        results: tuple[Tree, ...],
        row_results: tuple[bool, ...],
        kinds: Mapping[str, str],
        before: Set[Tree],
    ) -> None:
        self.results, self.row_results = results, row_results
        self.extent = extents(kinds, *results)
        self.order = _outside(results, before)
        self.stage = self._stages()
        self.reductions = [p for p in self.order if isinstance(p, Call) and _is_reduction(p)]
        of_elements = [r for r, is_row in zip(results, row_results) if not is_row]
        ends = [self.stage[part] - 1 for part in self.reductions]
        # One for the arrays of what each pass does, where there is nothing to do.
        self.count = 1 + max([*ends, *(self.stage[part] for part in of_elements)], default=0)
        self.row_parts = [part for part in self.order if self._is_of_row(part)]
        self.inlined = self._inlined()
        slots = [part for part in self.row_parts if part not in self.inlined]
        self.numbers = tuple(part for part in slots if not is_condition(part))
        self.conditions = tuple(part for part in slots if is_condition(part))

    def _stages(self) -> dict[Tree, int]:
        """The pass in which the elements of each part are computed, or before which a number is."""
        found: dict[Tree, int] = {}
        for part in in_order(*self.results):
            own = max((found[inner] for inner in _needed(part)), default=0)
            found[part] = own + _is_reduction(part)
        return found

    def _is_of_row(self, part: Tree) -> bool:
        return self.extent[part] is not Extent.ELEMENT and not isinstance(part, (Number, IsMissing))

    def _inlined(self) -> set[Tree]:
        """Elements that are chosen by an index, and what is made of them, where that is wanted only
        under a condition: the index may be none."""
        slots = {r for r in self.results if r in self.row_parts}
        for part in self.order:
            if not self._is_of_row(part) or _is_reduction(part):
                slots.update(_needed(part))
        found: set[Tree] = set()
        for part in self.row_parts:
            is_element = isinstance(part, Call) and part.function == ELEMENT
            has_some = any(inner in found for inner in _needed(part))
            if (is_element or has_some) and part not in slots and not _is_reduction(part):
                found.add(part)
        return found

    def plan(
        self,
        sizes: tuple[Tree | None, ...],
        read: frozenset[Tree],
        is_refused: bool,
        counts: tuple[bool, bool],
    ) -> RowsPlan:
        raw = [self._steps(index, set()) for index in range(self.count)]
        first: dict[Tree, int] = {}
        for index, steps in enumerate(raw):
            for part in steps:
                first.setdefault(part, index)
        slow = {p for p in first if _is_slow(p) and sum(p in steps for steps in raw) > 1}
        all_steps = [
            self._steps(index, {part for part in slow if first[part] < index})
            for index in range(self.count)
        ]
        used = [self._leaves(index, steps) for index, steps in enumerate(all_steps)]
        kept = [part for part in self.order if part in slow and any(part in u for u in used)]
        return RowsPlan(
            read=read,
            indices=frozenset(indices_of(*self.order)),
            uses_positions=positions() in self.order,
            passes=tuple(
                self._pass(index, steps, used[index], kept) for index, steps in enumerate(all_steps)
            ),
            last=self._of_row(self.count),
            kept=tuple(kept),
            numbers=self.numbers,
            conditions=self.conditions,
            inlined=frozenset(self.inlined),
            sizes=sizes,
            row_results=self.row_results,
            may_be_inputs=tuple(map(_may_be_input, self.results)),
            refuses_empty=is_refused,
            counts_elements=counts[0],
            needs_counts=counts[1],
        )

    def _pass(self, index: int, steps: list[Tree], used: set[Tree], kept: list[Tree]) -> Pass:
        return Pass(
            of_row=self._of_row(index),
            reads=tuple(
                part for part in self.order if part in used and isinstance(part, (Name, Slice))
            ),
            uses_row=tuple(i for i, part in enumerate(self.numbers) if part in used),
            uses_kept=tuple(i for i, part in enumerate(kept) if part in used),
            steps=tuple(steps),
            kept=tuple(i for i, part in enumerate(kept) if part in steps),
            reductions=tuple(p for p in self.reductions if self.stage[p] == index + 1),
            results=tuple(
                i
                for i, (part, is_row) in enumerate(zip(self.results, self.row_results))
                if not is_row and self.stage[part] == index
            ),
        )

    def _of_row(self, index: int) -> tuple[Tree, ...]:
        """What is computed of a row before a pass, or behind the last one."""
        return tuple(
            part
            for part in self.row_parts
            if self.stage[part] == index
            and isinstance(part, (Call, Choice))
            and not _is_reduction(part)
            and part not in self.inlined
        )

    def _ends(self, index: int) -> list[Tree]:
        """What a pass is for."""
        found = [p.arguments[0] for p in self.reductions if self.stage[p] == index + 1]
        for part, is_row in zip(self.results, self.row_results):
            if not is_row and self.stage[part] == index:
                found.append(part)
        return found

    def _steps(self, index: int, known: Set[Tree]) -> list[Tree]:
        """The parts that a pass computes of each element, each behind those that it needs."""
        found: set[Tree] = set()
        waiting = [part for part in self._ends(index) if self._is_step(part, known)]
        while waiting:
            part = waiting.pop()
            if part not in found:
                found.add(part)
                waiting += [inner for inner in parts(part) if self._is_step(inner, known)]
        return [part for part in self.order if part in found]

    def _is_step(self, part: Tree, known: Set[Tree]) -> bool:
        is_made = part in self.extent and isinstance(part, (Call, Choice)) and part not in known
        return is_made and self.extent[part] is Extent.ELEMENT and part != positions()

    def _leaves(self, index: int, steps: list[Tree]) -> set[Tree]:
        """What a pass has from elsewhere: elements of inputs, or that were kept, and numbers."""
        found = {inner for part in steps for inner in parts(part)} | set(self._ends(index))
        return found.difference(steps)


def _outside(results: Iterable[Tree], before: Set[Tree]) -> list[Tree]:
    """The parts of results, but for those that are known before, and what only they are made of."""
    found: set[Tree] = set()
    waiting = list(results)
    while waiting:
        part = waiting.pop()
        if part not in found and part not in before:
            found.add(part)
            waiting += parts(part)
    return [part for part in in_order(*results) if part in found]


def _may_be_input(part: Tree) -> bool:
    if isinstance(part, Choice):
        return _may_be_input(part.then) or _may_be_input(part.other)
    return isinstance(part, (Name, OfRow, Slice))


def _is_reduction(part: Tree) -> bool:
    return isinstance(part, Call) and bool(functions()[part.function].reduces)


def _needed(part: Tree) -> tuple[Tree, ...]:
    """What a part is computed of, but for the elements of a row that it chooses one of."""
    is_element = isinstance(part, Call) and part.function == ELEMENT
    return parts(part)[1:] if is_element else parts(part)


def _is_slow(part: Tree) -> bool:
    return isinstance(part, Call) and functions()[part.function].is_slow
