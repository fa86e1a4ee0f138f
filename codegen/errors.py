# SPDX-License-Identifier: BSD-3-Clause
"""Where a mistake stands in a spec, how it is reported, and how all of a run are collected.

Every mistake of a user becomes a Diagnostic with a Location; a run collects them in Errors and
raises one SpecError with all of them. Python's own exceptions are for our mistakes only.
"""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Source:
    """One spec file as text: the name that messages show, and its lines."""

    name: str
    text: str

    def line(self, number: int) -> str:
        """The line with this 1-based number, without its line break."""
        lines = self.text.splitlines()
        return lines[number - 1] if 0 < number <= len(lines) else ""


@dataclass(frozen=True)
class Location:
    """A place in a spec file; line and column count from 1, in characters."""

    source: Source = field(repr=False)
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.source.name}:{self.line}:{self.column}"

    @property
    def order(self) -> tuple[str, int, int]:
        """What places are sorted by."""
        return self.source.name, self.line, self.column

    @property
    def file_line(self) -> str:
        """FILE:LINE, as comments of generated code name it."""
        return f"{self.source.name}:{self.line}"


@dataclass(frozen=True)
class Diagnostic:
    """One mistake: where, what is wrong, and what to do about it."""

    location: Location
    message: str
    hint: str | None = None
    operator: str | None = None  # whose entry it concerns, where that is known

    def __str__(self) -> str:
        text = [f"{self.location}: error: {self.message}"]
        line = self.location.source.line(self.location.line)
        if line.strip():
            column = self.location.column - 1
            indent = "".join(c if c == "\t" else " " for c in line[:column])
            text += [f"  {line}", f"  {indent}^"]
        if self.hint:
            text.append(f"  hint: {self.hint}")
        return "\n".join(text)


class SpecError(Exception):
    """All mistakes found in the specs of one run, in file order."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(sorted(diagnostics, key=lambda d: d.location.order))
        super().__init__("\n".join(map(str, self.diagnostics)))


class Errors:
    """Collects the mistakes of a run, so that one run reports them all."""

    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []
        self._operator: str | None = None

    @contextlib.contextmanager
    def about(self, operator: str | None) -> Iterator[None]:
        """What is noted inside concerns this operator's entry."""
        before, self._operator = self._operator, operator
        try:
            yield
        finally:
            self._operator = before

    def add(self, location: Location, message: str, hint: str | None = None) -> None:
        """Note one mistake; the same one is noted once."""
        diagnostic = Diagnostic(location, message, hint, self._operator)
        if diagnostic not in self.diagnostics:
            self.diagnostics.append(diagnostic)

    def concern(self, operator: str) -> bool:
        """Whether a mistake of this operator's entry was noted."""
        return any(d.operator == operator for d in self.diagnostics)

    def raise_if_any(self) -> None:
        """Raise SpecError with everything noted so far, if anything was."""
        if self.diagnostics:
            raise SpecError(self.diagnostics)


def did_you_mean(word: str, allowed: Iterable[str], listing: str | None = None) -> str | None:
    """A hint that names the allowed word closest to `word`, else (with `listing`) all of them."""
    allowed = list(allowed)
    close = difflib.get_close_matches(word, allowed, n=1)
    if close:
        return f"did you mean '{close[0]}'?"
    return f"{listing}: {', '.join(sorted(allowed))}" if listing and allowed else None
