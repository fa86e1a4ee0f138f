# SPDX-License-Identifier: BSD-3-Clause
"""Expressions of rows in C++: what is computed of a row before each pass over it, and in the pass.

The numbers of a row lie in an array, as do its conditions; see torchext/fused/rows.h.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ...cpp.template import fill
from ...fused.functions import functions, is_condition
from ...fused.tree import ELEMENT, LENGTH, Call, Choice, Name, OfRow, Slice, Tree
from ...plan.fused import FusedPlan
from ...plan.fused_rows import Pass, RowsPlan
from .fused import Statements

_MEMBERS = """
static constexpr size_t passes = $passes, kept = $kept;
static constexpr size_t numbers_of_row = $numbers, conditions_of_row = $conditions;
static constexpr bool are_read[] = {$are_read}, of_rows[] = {$of_rows};
static constexpr bool indices[] = {$indices};
static constexpr int slots[] = {$slots}, length_slot = $length;
static constexpr bool uses_positions = $positions, refuses_empty = $refuses;
static constexpr bool counts_elements = $counts_elements, needs_counts = $needs_counts;
static constexpr ::torchext::fused::Part slices[] = {$slices};
static constexpr ::torchext::fused::Place places[] = {$places};
static constexpr int sizes[] = {$sizes};
static constexpr bool row_results[] = {$row_results}, may_be_inputs[] = {$may_be_inputs};
static constexpr bool reads[][inputs] = {$reads};
static constexpr size_t numbers_used[] = {$numbers_used}, used_numbers[][$most_used] = {$used};
static constexpr bool makes[][results] = {$makes};
static constexpr bool uses_kept[][kept + 1] = {$uses}, keeps[][kept + 1] = {$keeps};
static constexpr size_t reductions[] = {$counts};
static constexpr ::torchext::fused::Reduction reduction[][$most] = {$reductions};

$functions
template <typename S, typename G>
C10_HOST_DEVICE static void of_results(
    [[maybe_unused]] const G& given, [[maybe_unused]] S* results) {
  using F [[maybe_unused]] = ::torchext::fused::Functions<S>;
  $of_results
}
"""

_OF_ROW = """
template <typename S, typename G>
C10_HOST_DEVICE static void of_row(
    ::torchext::fused::Pass<$index>, [[maybe_unused]] const G& given, [[maybe_unused]] S* numbers,
    [[maybe_unused]] bool* holds) {
  using F [[maybe_unused]] = ::torchext::fused::Functions<S>;
  $statements
}
"""

_OF_ELEMENTS = """
template <typename V>
C10_HOST_DEVICE TORCHEXT_ALWAYS_INLINE static void elements(
    ::torchext::fused::Pass<$index>,
    [[maybe_unused]] const ::torchext::fused::GivenElements<V>& given, [[maybe_unused]] V* kept,
    [[maybe_unused]] V* terms, [[maybe_unused]] V* results) {
  using F [[maybe_unused]] = ::torchext::fused::Functions<V>;
  $statements
}
"""

# Of conditions of a row the second is not asked for where the first decides.
_JOINING = {"and": "&&", "or": "||"}


class RowStatements(Statements):
    """The statements of one function of an expression of rows."""

    def __init__(self, plan: FusedPlan, rows: RowsPlan) -> None:
        super().__init__(plan)
        self.rows = rows
        self.places = {item.tree: index for index, item in enumerate(plan.inputs)}
        self.row_conditions: dict[Tree, str] = {}
        for index, part in enumerate(rows.numbers):
            self.words[part] = f"given.numbers_of_row[{index}]"
        for index, part in enumerate(rows.conditions):
            self.row_conditions[part] = f"given.holds[{index}]"

    def condition(self, part: Tree) -> str:
        if part in self.row_conditions:
            return f"F::always({self.row_conditions[part]})"
        return super().condition(part)

    def row(self, word: str) -> str:
        return word

    def of_row(self, parts: tuple[Tree, ...]) -> list[str]:
        """What is computed of a row, in the order of the parts: into its numbers and conditions."""
        for part in parts:
            if is_condition(part):
                place = f"holds[{self.rows.conditions.index(part)}]"
            else:
                place = f"numbers[{self.rows.numbers.index(part)}]"
            self.lines.append(f"{place} = {self._of_row(part)};")
        return self.lines

    def _of_row(self, part: Tree) -> str:
        for inner in getattr(part, "arguments", ()) or _of_choice(part):
            if inner in self.rows.inlined:
                self.words[inner] = f"({self._of_row(inner)})"
        if isinstance(part, Call) and part.function == ELEMENT:
            row, index = part.arguments
            return f"given.element({self.places[row]}, {self.places[index]})"
        if isinstance(part, Call) and part.function in _JOINING:
            left, right = map(self.condition, part.arguments)
            return f"{left} {_JOINING[part.function]} {right}"
        if isinstance(part, Choice) and part.condition not in self.known:
            of = self.condition if is_condition(part) else self.number
            return f"{self.condition(part.condition)} ? {of(part.then)} : {of(part.other)}"
        return self.computed(part)

    def of_elements(self, one: Pass) -> list[str]:
        """What a pass computes of each element."""
        for index in one.uses_kept:
            self.words[self.rows.kept[index]] = f"given.kept[{index}]"
        self.add(one.steps)
        for index in one.kept:
            self.lines.append(f"kept[{index}] = {self.number(self.rows.kept[index])};")
        for index, part in enumerate(one.reductions):
            self.lines.append(f"terms[{index}] = {self.number(part.arguments[0])};")
        for index in one.results:
            self.lines.append(f"results[{index}] = {self.number(self.plan.results[index])};")
        return self.lines

    def of_results(self) -> list[str]:
        """What rows have one number of, as results."""
        for index, is_row in enumerate(self.rows.row_results):
            if is_row:
                self.lines.append(f"results[{index}] = {self.number(self.plan.results[index])};")
        return self.lines


def _of_choice(part: Tree) -> tuple[Tree, ...]:
    return (part.condition, part.then, part.other) if isinstance(part, Choice) else ()


def members(plan: FusedPlan, rows: RowsPlan) -> list[str]:
    """What the struct of an expression of rows has besides."""
    inputs = [item.tree for item in plan.inputs]
    places: dict[Tree | None, int] = {tree: index for index, tree in enumerate(inputs)}
    slots = {part: index for index, part in enumerate(rows.numbers)}
    of_inputs = [slots.get(tree, -1) if isinstance(tree, OfRow) else -1 for tree in inputs]
    counts = [len(one.reductions) for one in rows.passes]
    of_rows = [_function(_OF_ROW, i, _new(plan, rows).of_row(one.of_row)) for i, one in _each(rows)]
    last = _function(_OF_ROW, len(rows.passes), _new(plan, rows).of_row(rows.last))
    elements = [
        _function(_OF_ELEMENTS, i, _new(plan, rows).of_elements(one)) for i, one in _each(rows)
    ]
    return fill(
        _MEMBERS,
        passes=str(len(rows.passes)),
        kept=str(len(rows.kept)),
        numbers=str(len(rows.numbers)),
        conditions=str(len(rows.conditions)),
        are_read=_bools(tree in rows.read for tree in inputs),
        of_rows=_bools(isinstance(tree, OfRow) for tree in inputs),
        indices=_bools(tree in rows.indices for tree in inputs),
        slots=", ".join(map(str, of_inputs)),
        length=str(slots.get(Name(LENGTH), -1)),
        positions=_word(rows.uses_positions),
        refuses=_word(rows.refuses_empty),
        counts_elements=_word(rows.counts_elements),
        needs_counts=_word(rows.needs_counts),
        slices=", ".join(_slice(tree) for tree in inputs),
        places=", ".join(f"{{{p.result}, {p.index}, {p.count}}}" for p in plan.places),
        sizes=", ".join(str(places.get(tree, -1)) for tree in rows.sizes),
        row_results=_bools(rows.row_results),
        may_be_inputs=_bools(rows.may_be_inputs),
        reads=_table(rows, lambda one: (tree in one.reads for tree in inputs)),
        numbers_used=", ".join(str(len(one.uses_row)) for one in rows.passes),
        most_used=str(max([1, *(len(one.uses_row) for one in rows.passes)])),
        used=", ".join(f"{{{', '.join(map(str, one.uses_row))}}}" for one in rows.passes),
        makes=_table(rows, lambda one: (i in one.results for i in range(len(plan.results)))),
        uses=_table(rows, lambda one: (i in one.uses_kept for i in range(len(rows.kept) + 1))),
        keeps=_table(rows, lambda one: (i in one.kept for i in range(len(rows.kept) + 1))),
        counts=", ".join(map(str, counts)),
        most=str(max([1, *counts])),
        reductions=", ".join(f"{{{_reductions(one, slots)}}}" for one in rows.passes),
        functions="\n".join([*of_rows, last, *elements]),
        of_results=_new(plan, rows).of_results(),
    ).split("\n")


def _slice(tree: Tree) -> str:
    return f"{{{tree.index}, {tree.count}}}" if isinstance(tree, Slice) else "{0, 1}"


def _new(plan: FusedPlan, rows: RowsPlan) -> RowStatements:
    return RowStatements(plan, rows)


def _each(rows: RowsPlan) -> Iterable[tuple[int, Pass]]:
    return enumerate(rows.passes)


def _function(template: str, index: int, statements: list[str]) -> str:
    return fill(template, index=str(index), statements=statements)


def _reductions(one: Pass, slots: Mapping[Tree, int]) -> str:
    found = []
    for part in one.reductions:
        how = f"::torchext::fused::Reduce::{functions()[part.function].reduces}"
        found.append(f"{{{how}, {slots[part]}}}")
    return ", ".join(found)


def _table(rows: RowsPlan, row: Callable[[Pass], Iterable[bool]]) -> str:
    return ", ".join(f"{{{_bools(row(one))}}}" for one in rows.passes)


def _bools(values: Iterable[bool]) -> str:
    return ", ".join(map(_word, values))


def _word(value: bool) -> str:
    return "true" if value else "false"
