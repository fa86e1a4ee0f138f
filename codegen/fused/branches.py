# SPDX-License-Identifier: BSD-3-Clause
"""Conditions that are known when an operator is called: of what is given, and of numbers alone.

They choose between expressions as Python does: what stands in the branch that is not taken is not
there, and nothing of its gradient is. So `x if w is None else x / w` has a gradient where `w` is
missing. (A condition of elements chooses between values that both are there, as torch.where does.)
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from .constants import chosen, joined, negated
from .functions import functions
from .tree import Call, Choice, IsMissing, Name, Number, OfRow, Slice, Tree, in_order, parts

_ALWAYS, _ZERO = Number(True), Number(0)


def is_known(condition: Tree, kinds: Mapping[str, str]) -> bool:
    """Whether it is the same for all elements; what has no kind is a tensor."""
    for part in in_order(condition):
        if isinstance(part, Call) and functions()[part.function].is_of_rows:
            return False
        if isinstance(part, (Name, OfRow, Slice)):
            if kinds.get(part.name, "tensor").startswith("tensor"):
                return False
    return True


@dataclass(frozen=True)
class Branch:
    """A value that is there where a known condition holds, and is no part of a sum elsewhere."""

    value: Tree
    when: Tree = _ALWAYS
    is_zero_elsewhere: bool = False  # as it is written

    def within(self, condition: Tree) -> Branch:
        return Branch(self.value, _both(self.when, condition))

    def everywhere(self) -> Tree:
        """The value, or zero."""
        if self.is_zero_elsewhere:
            return self.value
        if isinstance(self.when, Call) and self.when.function == "not":
            return chosen(self.when.arguments[0], _ZERO, self.value)
        return chosen(self.when, self.value, _ZERO)


def added(one: Branch, other: Branch) -> Branch:
    """The sum of two values, of which one alone may be there."""
    first, second = _joined(one.when), _joined(other.when)
    if first.keys() == second.keys():
        is_zero = one.is_zero_elsewhere and other.is_zero_elsewhere
        return Branch(Call("+", (one.value, other.value)), one.when, is_zero)
    apart, against = first.keys() - second.keys(), second.keys() - first.keys()
    if len(apart) == len(against) == 1:
        condition, opposite = *apart, *against
        when = _all_of(part for part in first if part != condition)
        if opposite == negated(condition):
            return Branch(Choice(condition, one.value, other.value), when)
        if condition == negated(opposite):
            return Branch(Choice(opposite, other.value, one.value), when)
    value = Call("+", (one.everywhere(), other.everywhere()))
    if not apart or not against:
        return Branch(value, other.when if apart else one.when, is_zero_elsewhere=True)
    return Branch(value, _either(one.when, other.when), is_zero_elsewhere=True)


def either_of(condition: Tree, then: Branch | None, other: Branch | None) -> Branch:
    """The choice of elements between two values, of which one alone may be there."""
    if then is None or other is None:
        (own,) = (branch for branch in (then, other) if branch is not None)
        both = (own.value, _ZERO) if other is None else (_ZERO, own.value)
        return Branch(Choice(condition, *both), own.when, own.is_zero_elsewhere)
    if _joined(then.when).keys() == _joined(other.when).keys():
        is_zero = then.is_zero_elsewhere and other.is_zero_elsewhere
        return Branch(Choice(condition, then.value, other.value), then.when, is_zero)
    value = Choice(condition, then.everywhere(), other.everywhere())
    return Branch(value, _either(then.when, other.when), is_zero_elsewhere=True)


def _joined(condition: Tree, sign: str = "and") -> dict[Tree, None]:
    """The conditions that one joins."""
    found: dict[Tree, None] = {}
    waiting = [condition]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Call) and part.function == sign:
            waiting += reversed(part.arguments)
        elif part != _ALWAYS:
            found[part] = None
    return found


def _both(one: Tree, other: Tree) -> Tree:
    """Where two conditions hold, without what of one the rest says."""
    found = _joined(one) | _joined(other)
    for part in [*found]:
        rest = found.keys() - {part}
        several = _joined(part, "or")
        if len(several) > 1 and any(_joined(own).keys() <= rest for own in several):
            del found[part]
    return _all_of(found)


def _either(one: Tree, other: Tree) -> Tree:
    """Where one of two conditions holds, without what another one of them says."""
    found = [*(_joined(one, "or") | _joined(other, "or"))]
    parts = {own: _joined(own).keys() for own in found}
    kept = [own for own in found if not any(parts[less] < parts[own] for less in found)]
    return functools.reduce(functools.partial(joined, "or"), kept)


def _all_of(conditions: Iterable[Tree]) -> Tree:
    return functools.reduce(functools.partial(joined, "and"), conditions, _ALWAYS)


def unguarded(tree: Tree, kinds: Mapping[str, str]) -> Set[str]:
    """The arguments that an expression needs and that may be missing."""
    needed: dict[Tree, frozenset[str]] = {}
    for part in in_order(tree):
        if isinstance(part, Choice):
            then = needed[part.then] - given_where(part.condition, True)
            other = needed[part.other] - given_where(part.condition, False)
            needed[part] = needed[part.condition] | then | other
        elif isinstance(part, Call) and part.function in ("and", "or"):
            first, second = part.arguments
            goes_on = part.function == "and"
            needed[part] = needed[first] | needed[second] - given_where(first, goes_on)
        elif isinstance(part, Call) and functions()[part.function].takes_sizes:
            needed[part] = needed[part.arguments[0]]
        elif isinstance(part, (Name, OfRow, Slice)):
            needed[part] = frozenset({part.name} if kinds.get(part.name) == "tensor?" else ())
        else:
            needed[part] = frozenset().union(*(needed[inner] for inner in parts(part)))
    return needed[tree]


def given_where(condition: Tree, holds: bool) -> Set[str]:
    """The arguments that are given where a condition holds, or where it does not."""
    if isinstance(condition, IsMissing):
        return frozenset() if holds else frozenset({condition.name})
    if not isinstance(condition, Call) or condition.function not in ("and", "or", "not"):
        return frozenset()
    both = [
        given_where(part, holds != (condition.function == "not")) for part in condition.arguments
    ]
    is_both = (condition.function == "and") == holds
    return frozenset.union(*both) if is_both else frozenset.intersection(*both)
