# SPDX-License-Identifier: BSD-3-Clause
"""Conditions that are known when an operator is called: of what is given, and of numbers alone.

They choose between expressions as Python does: what stands in the branch that is not taken is not
there, and nothing of its gradient is. So `x if w is None else x / w` has a gradient where `w` is
missing. (A condition of elements chooses between values that both are there, as torch.where does.)
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass

from .constants import chosen, compared, joined, negated
from .functions import functions
from .tree import (
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
    with_parts,
)

_ALWAYS, _ZERO = Number(True), Number(0)
_JOINING = ("and", "or", "not")
# Of a condition of more parts a choice stays one: what is chosen would stand there as often.
_MOST_SPLIT = 16


def is_known(condition: Tree, kinds: Mapping[str, str]) -> bool:
    """Whether it is the same for all elements; what has no kind is a tensor."""
    for part in in_order(condition):
        if isinstance(part, Call) and functions()[part.function].is_of_rows:
            return False
        if isinstance(part, (Name, OfRow, Slice)):
            if kinds.get(part.name, "tensor").startswith("tensor"):
                return False
    return True


def chosen_as_known(condition: Tree, then: Tree, other: Tree, kinds: Mapping[str, str]) -> Tree:
    """A choice of which the parts that are known choose by themselves: in `w is None or x > w` one
    does where w is missing, and what it leaves out is not there."""
    if len(list(itertools.islice(_joined_parts(condition), _MOST_SPLIT + 1))) > _MOST_SPLIT:
        return chosen(condition, then, other)
    return _split(condition, then, other, kinds)


def _joined_parts(condition: Tree) -> Iterator[Tree]:
    """What 'and', 'or' and 'not' join, as often as it stands there."""
    waiting = [condition]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Call) and part.function in _JOINING:
            waiting += part.arguments
        else:
            yield part


def _split(condition: Tree, then: Tree, other: Tree, kinds: Mapping[str, str]) -> Tree:
    has_parts = any(_has_known_parts(part, kinds) for part in _joined_parts(condition))
    if not has_parts or is_known(condition, kinds):
        return chosen(condition, then, other)
    if isinstance(condition, Choice):
        both = (_split(part, then, other, kinds) for part in (condition.then, condition.other))
        return chosen(condition.condition, *both)
    assert isinstance(condition, Call)
    if condition.function == "not":
        return _split(condition.arguments[0], other, then, kinds)
    if condition.function in _JOINING:
        first, second = condition.arguments
        inner = _split(second, then, other, kinds)
        both = (then, inner) if condition.function == "or" else (inner, other)
        return _split(first, *both, kinds)
    known, comparisons = _of_each(condition, kinds)
    return chosen(known, *(_split(part, then, other, kinds) for part in comparisons))


def with_known_apart(trees: Iterable[Tree], kinds: Mapping[str, str]) -> tuple[Tree, ...]:
    """Expressions whose choices are split as those are that are read."""
    made: dict[Tree, Tree] = {}
    results = tuple(trees)
    for part in in_order(*results):
        made[part] = with_parts(part, made)
        if isinstance(part, Choice):
            both = made[part.then], made[part.other]
            made[part] = chosen_as_known(made[part.condition], *both, kinds)
    return tuple(made[tree] for tree in results)


def _has_known_parts(condition: Tree, kinds: Mapping[str, str]) -> bool:
    """Whether a condition that joins no others is known, or what it compares is chosen by one."""
    if isinstance(condition, Choice):
        return is_known(condition.condition, kinds)
    if is_known(condition, kinds):
        return True
    comparisons = _of_each(condition, kinds)[1] if isinstance(condition, Call) else ()
    return any(is_known(part, kinds) for part in comparisons)


def _of_each(comparison: Call, kinds: Mapping[str, str]) -> tuple[Tree, tuple[Tree, ...]]:
    """A known condition by which an argument of a comparison is chosen, and the comparison of each
    value that it chooses."""
    for place, part in enumerate(comparison.arguments):
        if isinstance(part, Choice) and is_known(part.condition, kinds):
            before, behind = comparison.arguments[:place], comparison.arguments[place + 1 :]
            both = ((*before, value, *behind) for value in (part.then, part.other))
            return part.condition, tuple(compared(comparison.function, each) for each in both)
    return comparison, ()


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
