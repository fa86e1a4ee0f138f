# SPDX-License-Identifier: BSD-3-Clause
"""Where a mistake stands in a spec, how it is reported, and how all of a run are collected.

Every mistake of a user becomes a Diagnostic with a Location; a run collects them in Errors and
raises one SpecError with all of them. Python's own exceptions are for our mistakes only.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import NoReturn

_LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")


@dataclass(frozen=True)
class Source:
    """One spec file as text: the name that messages show, and its lines."""

    name: str
    text: str

    @functools.cached_property
    def lines(self) -> list[str]:
        """The lines, broken where YAML breaks them."""
        return _LINE_BREAK.split(self.text)

    def place(self, offset: int) -> Location:
        """Where the character with this offset stands."""
        lines = _LINE_BREAK.split(self.text[:offset])
        return Location(self, len(lines), len(lines[-1]) + 1)

    def line(self, number: int) -> str:
        """The line with this 1-based number, without its line break."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""


@dataclass(frozen=True)
class Location:
    """A place in a spec file; line and column count from 1, in characters."""

    source: Source = field(repr=False)
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.source.name}:{self.line}:{self.column}"

    def after(self, offset: int) -> Location:
        """The place so many characters later; this one where the line ends before, since the text
        goes on in another."""
        column = self.column + offset
        return replace(self, column=column) if column <= len(self.text) + 1 else self

    @property
    def text(self) -> str:
        """The line of the file."""
        return self.source.line(self.line)

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
        line = self.location.text
        if line.strip():
            column = self.location.column - 1
            indent = "".join(c if c == "\t" else " " for c in line[:column])
            text += [f"  {line}", f"  {indent}^"]
        if self.hint:
            text.append(f"  hint: {self.hint}")
        return "\n".join(text)


class SpecError(Exception):
    """The mistakes found in the specs of one run, in file order."""

    def __init__(self, diagnostics: Iterable[Diagnostic], is_complete: bool = True) -> None:
        self.diagnostics = tuple(sorted(diagnostics, key=lambda d: d.location.order))
        self.is_complete = is_complete
        super().__init__("\n".join(map(str, self.diagnostics)))


class Errors:
    """Collects the mistakes of a run, so that one run reports them all, up to `limit`."""

    def __init__(self, limit: int | None = None) -> None:
        self._found: dict[Diagnostic, None] = {}
        self._concerned: set[str] = set()
        self._operator: str | None = None
        self._limit = limit
        # entries of operators could not be read, so that a name that is not there says nothing
        self.misses_operators = False

    @property
    def diagnostics(self) -> list[Diagnostic]:
        return list(self._found)

    @property
    def count(self) -> int:
        """How many have been noted."""
        return len(self._found)

    @contextlib.contextmanager
    def about(self, operator: str | None) -> Iterator[None]:
        """What is noted inside concerns this operator's entry."""
        before, self._operator = self._operator, operator
        try:
            yield
        finally:
            self._operator = before

    def add(self, location: Location, message: str, hint: str | None = None) -> None:
        """Note one mistake; the same one is noted once. Raises SpecError at the limit."""
        self._found[Diagnostic(location, message, hint, self._operator)] = None
        if self._operator is not None:
            self._concerned.add(self._operator)
        if len(self._found) == self._limit:
            raise SpecError(self._found, is_complete=False)

    def concern(self, operator: str) -> bool:
        """Whether a mistake of this operator's entry was noted."""
        return operator in self._concerned

    def concerns_base(self, base: str) -> bool:
        """Whether a mistake of an entry of this name, of any overload, was noted."""
        return any(name.partition(".")[0] == base for name in self._concerned)

    def stop(self, location: Location, message: str) -> NoReturn:
        """Note a mistake after which nothing can be read, and raise SpecError."""
        self.add(location, message)
        raise SpecError(self._found, is_complete=False)

    def raise_if_any(self) -> None:
        """Raise SpecError with everything noted so far, if anything was."""
        if self._found:
            raise SpecError(self._found)


def did_you_mean(word: str, allowed: Iterable[str], listing: str | None = None) -> str | None:
    """A hint that names the allowed word closest to `word`, else (with `listing`) all of them."""
    allowed = list(allowed)
    close = difflib.get_close_matches(word, allowed, n=1)
    if close:
        return f"did you mean '{close[0]}'?"
    return f"{listing}: {', '.join(sorted(allowed))}" if listing and allowed else None
