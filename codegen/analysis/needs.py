# SPDX-License-Identifier: BSD-3-Clause
"""The optional arguments that the expressions of a rule cannot do without."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Needs:
    """What an expression asks for, in the order in which it is evaluated.

    A condition reads nothing but what is asked for before it: so both texts of C++ below look at
    no argument that is missing.
    """

    names: frozenset[str] = frozenset()  # parameters that are read in any case
    guarded: tuple[tuple[str, Needs], ...] = ()  # C++ of a condition, what is read where it holds

    @staticmethod
    def of(*names: str) -> Needs:
        """What is read in any case."""
        return Needs(frozenset(names))

    @staticmethod
    def all(several: Iterable[Needs]) -> Needs:
        """What expressions ask for together, evaluated one after the other."""
        found = Needs()
        for needs in several:
            found |= needs
        return found

    def __bool__(self) -> bool:
        return bool(self.names or self.guarded)

    def __or__(self, later: Needs) -> Needs:
        guarded = dict.fromkeys((*self.guarded, *later.guarded))
        return Needs(self.names | later.names, tuple(guarded))

    def without(self, known: frozenset[str]) -> Needs:
        """The same where some arguments are known to be there."""
        guarded = ((when, needs.without(known)) for when, needs in self.guarded)
        return Needs(self.names - known, tuple(pair for pair in guarded if pair[1]))

    def within(self, condition: str) -> Needs:
        """The same of an expression that is looked at where a condition holds."""
        return Needs(guarded=((condition, self),)) if self else self

    @property
    def every_name(self) -> list[str]:
        """The parameters that may be read, sorted."""
        return sorted(self.names.union(*(needs.every_name for _, needs in self.guarded)))

    @property
    def given(self) -> str:
        """C++: whether all that is asked for is there."""
        parts = [f"shape::is_there({name})" for name in sorted(self.names)]
        for when, needs in self.guarded:
            # a condition on symbols is decided where an argument is missing only
            first, second = (f"!{when}", needs.given)
            if not needs.guarded:
                first, second = second, first
            parts.append(f"({first} || {second})")
        return parts[0] if len(parts) == 1 else f"({' && '.join(parts)})"

    def required(self) -> Iterator[str]:
        """The statements that refuse what is asked for and missing."""
        for name in sorted(self.names):
            yield f'shape::require(op, "{name}", {name});'
        for when, needs in self.guarded:
            statements = list(needs.required())
            if len(statements) == 1:
                yield f"if ({when}) {statements[0]}"
                continue
            yield f"if ({when}) {{"
            yield from (f"  {statement}" for statement in statements)
            yield "}"
