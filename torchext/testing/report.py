# SPDX-License-Identifier: BSD-3-Clause
"""The matrix of operators and checks, as text and as a page."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from .samples import Origin


class State(Enum):
    """What became of one check of one operator."""

    PASSED = "✓"
    FAILED = "✗"
    KNOWN = "K"
    REFUSED = "R"
    NOTHING = "–"
    NOT_RUN = "·"


_LEGEND = {
    State.PASSED: "passed",
    State.FAILED: "failed",
    State.KNOWN: "fails as the file of known failures says",
    State.REFUSED: "the operator refuses it with an error that says so",
    State.NOTHING: "nothing to check",
    State.NOT_RUN: "not run: this machine, or what failed before, has nothing to run it on",
}


_SHOWN_LINES = 12  # of what a failure says


@dataclass(frozen=True)
class Cell:
    """One check of one operator."""

    operator: str
    check: str
    state: State
    reason: str = ""  # why nothing is checked, what is known or refused, the error, or a note
    seconds: float = 0.0
    error: BaseException | None = field(default=None, compare=False, repr=False)


@dataclass
class Report:
    """What the checks of a library found."""

    namespace: str
    torch_version: str
    device: str
    checks: Sequence[str]
    locations: dict[str, str]  # operator -> FILE:LINE, in the order of the spec
    cells: dict[tuple[str, str], Cell] = field(default_factory=dict)
    made_samples: list[str] = field(default_factory=list)  # operators whose samples were made
    recorded_samples: list[str] = field(default_factory=list)  # or are what others call them with
    overrides: list[str] = field(default_factory=list)  # PyTorch's, which are not checked
    others: list[str] = field(default_factory=list)  # of the namespace and not of the spec

    def add(self, cell: Cell) -> None:
        """Take in a cell."""
        self.cells[cell.operator, cell.check] = cell

    def add_origin(self, operator: str, origin: Origin) -> None:
        """Take in where the samples of an operator are from."""
        if origin is Origin.MADE:
            self.made_samples.append(operator)
        elif origin is Origin.RECORDED:
            self.recorded_samples.append(operator)

    @property
    def failures(self) -> list[Cell]:
        """The cells that failed."""
        return [cell for cell in self.cells.values() if cell.state is State.FAILED]

    @property
    def passed(self) -> bool:
        """Whether nothing failed that is not known; an operator without samples fails."""
        return not self.failures

    def count(self, state: State) -> int:
        """How many cells are in a state."""
        return sum(cell.state is state for cell in self.cells.values())

    def __str__(self) -> str:
        rows = [self.row(operator) for operator in self.locations]
        return f"{self.heading()}\n{''.join(rows)}{self.summary()}"

    @property
    def _title(self) -> str:
        return f"{self.namespace} on {self.device}, torch {self.torch_version}"

    def heading(self) -> str:
        """What stands above the rows."""
        lines = [self._title, ""]
        blank = self.label("")
        for index, check in enumerate(self.checks):
            lines.append(f"{blank}{'│ ' * index}┌ {check}")
        return "\n".join(lines)

    def label(self, operator: str) -> str:
        """What stands before the marks of a row."""
        return f"{operator:{max([len(name) for name in self.locations], default=0)}}  "

    def row(self, operator: str) -> str:
        """The marks of an operator, and its failures."""
        cells = [self.cells.get((operator, check)) for check in self.checks]
        marks = "".join(f"{cell.state.value if cell else '?'} " for cell in cells)
        return f"{self.label(operator)}{marks}\n{self.failures_of(operator)}"

    def summary(self) -> str:
        """What stands below the rows: counts, what is known or refused, and where failures are."""
        lines = ["", *self._totals(), *self._lists(), *self._idle_checks()]
        for state in (State.KNOWN, State.REFUSED):
            for cell in self.cells.values():
                if cell.state is state:
                    lines.append(f"{state.value} {cell.operator} {cell.check}: {cell.reason}")
        if self.failures:
            lines += ["", *(self._place(cell) for cell in self.failures)]
        return "\n".join(lines)

    def _place(self, cell: Cell) -> str:
        return f"{self.locations[cell.operator]}: {cell.operator} fails {cell.check}"

    def failures_of(self, operator: str) -> str:
        """What stands below a row: each of its failures, with what it says; '' without one."""
        lines = []
        for cell in self.failures:
            if cell.operator == operator:
                lines.append(f"  {self._place(cell)}:")
                reason = cell.reason.splitlines()
                lines += [f"      {line}" for line in reason[:_SHOWN_LINES]]
                if len(reason) > _SHOWN_LINES:
                    more = len(reason) - _SHOWN_LINES
                    lines.append(f"      ... and {more} lines more, in report.cells and the page")
        return "".join(f"{line}\n" for line in lines)

    def _lists(self) -> list[str]:
        """What is to be said of several operators, and is no check's."""
        several = {
            f"samples {Origin.MADE.value}": self.made_samples,
            f"samples {Origin.RECORDED.value}": self.recorded_samples,
            "kernels for PyTorch's own, not checked": self.overrides,
            f"of {self.namespace} and not of its spec, not checked": self.others,
        }
        lines = [f"{what}: {', '.join(names)}" for what, names in several.items() if names]
        for cell in self.cells.values():
            if cell.check == "samples" and cell.state is State.PASSED and cell.reason:
                lines.append(f"{cell.operator}: no formula is checked with another {cell.reason}")
        return lines

    def _idle_checks(self) -> list[str]:
        """The checks that had nothing to check of any operator, and why."""
        reasons: dict[str, dict[str, None]] = {}
        busy = set()
        lost = {cell.operator for cell in self.failures if cell.check == "samples"}
        for cell in self.cells.values():
            if cell.state is State.NOT_RUN and cell.operator in lost:
                continue
            if cell.state in (State.NOTHING, State.NOT_RUN):
                reasons.setdefault(cell.check, {})[cell.reason] = None
            else:
                busy.add(cell.check)
        return [
            f"{State.NOTHING.value} {check}, every operator: {'; '.join(several)}"
            for check, several in reasons.items()
            if check not in busy
        ]

    def _totals(self) -> list[str]:
        counts = [(self.count(state), text, state.value) for state, text in _LEGEND.items()]
        return [f"{mark} {count:5}  {text}" for count, text, mark in counts if count] + [
            f"{len(self.locations)} operators, {len(self.checks)} checks, "
            f"{sum(cell.seconds for cell in self.cells.values()):.0f} s"
        ]

    def to_html(self) -> str:
        """The matrix as a page of its own; reasons and errors are shown where a cell is pointed at,
        and below."""
        head = "".join(f"<th><span>{html.escape(check)}</span></th>" for check in self.checks)
        rows = "\n".join(self._html_row(operator) for operator in self.locations)
        legend = "".join(
            f"<li><b class={state.name.lower()}>{state.value}</b> {html.escape(text)}: "
            f"{self.count(state)}</li>"
            for state, text in _LEGEND.items()
        )
        notes = "\n".join(
            f"<dt>{html.escape(self.locations[c.operator])}: {html.escape(c.operator)}, "
            f"{html.escape(c.check)}</dt><dd><pre>{html.escape(c.reason)}</pre></dd>"
            for c in self.cells.values()
            if c.state in (State.FAILED, State.KNOWN, State.REFUSED)
        )
        title = html.escape(self._title)
        lists = "".join(f"<p>{html.escape(text)}</p>\n" for text in self._lists())
        return (
            f"<!doctype html>\n<html lang=en><meta charset=utf-8><title>{title}</title>\n"
            f"<style>{_STYLE}</style>\n<h1>{title}</h1>\n<ul>{legend}</ul>\n"
            f"{lists}<table><thead><tr><th></th>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table>\n"
            f"<dl>{notes}</dl>\n</html>\n"
        )

    def _html_row(self, operator: str) -> str:
        cells = []
        for check in self.checks:
            cell = self.cells.get((operator, check))
            if cell is None:
                cells.append("<td></td>")
                continue
            title = html.escape(f"{operator} {check}: {cell.reason or cell.state.name.lower()}")
            cells.append(
                f'<td class={cell.state.name.lower()} title="{title}">{cell.state.value}</td>'
            )
        return f"<tr><th scope=row>{html.escape(operator)}</th>{''.join(cells)}</tr>"


_STYLE = """
body { font: 14px/1.4 system-ui, sans-serif; margin: 2em; }
table { border-collapse: collapse; } td { text-align: center; width: 2em; }
th[scope=row] { text-align: left; font-weight: normal; padding-right: 1em; }
thead th { height: 9em; vertical-align: bottom; }
thead span { writing-mode: vertical-rl; transform: rotate(180deg); font-weight: normal; }
tbody tr:hover { background: #eee; } ul { list-style: none; padding: 0; }
.passed { color: #1a7f37; } .failed { background: #cf222e; color: #fff; }
.known { color: #9a6700; } .refused { color: #0969da; }
.nothing, .not_run { color: #8c959f; }
pre { white-space: pre-wrap; }
"""
