# SPDX-License-Identifier: BSD-3-Clause
"""The part of the Plan that is about the rules of `meta:`: what their expressions compute.

A tree of these has every decision taken, over the functions of torchext/shape.h; how it is written
in C++ is the emitters' business.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Named:
    """A parameter of a meta function, or what a loop calls the value that it is at."""

    name: str


@dataclass(frozen=True)
class Constant:
    """A number, a bool or a text."""

    value: bool | int | float | str


@dataclass(frozen=True)
class Dtype:
    """A dtype that is written out."""

    name: str  # as c10 names it


@dataclass(frozen=True)
class Call:
    """A function of shape.h, or an operator of both languages."""

    function: str
    arguments: tuple[Expression | None, ...]  # None: one that is left out
    text: str = ""  # what its errors call it, for functions that raise


@dataclass(frozen=True)
class Negative:
    """An integer or, where it may be none, a number with the other sign."""

    value: Expression
    of_numbers: bool


@dataclass(frozen=True)
class Attribute:
    """`shape`, `dim`, `numel` or `dtype` of a tensor."""

    tensor: Expression
    name: str
    may_be_missing: bool = False


@dataclass(frozen=True)
class Element:
    """One of a list of bools."""

    values: Expression
    index: int


@dataclass(frozen=True)
class Listed:
    """A shape whose sizes are written out."""

    sizes: tuple[Expression, ...]


@dataclass(frozen=True)
class DynamicSize:
    """A size of a result that only the values of tensors tell, and its bound."""

    result: str
    tensors: tuple[str, ...]  # whose device traces it
    most: Expression | None = None


@dataclass(frozen=True)
class Comparison:
    """An ordering of two integers or, where one may be none, of two numbers."""

    function: str  # of shape.h
    left: Expression
    right: Expression
    of_numbers: bool = False


@dataclass(frozen=True)
class Joined:
    """Two conditions, of which the second is looked at where the first leaves it open."""

    function: str  # both, either
    first: Expression
    second: Expression


@dataclass(frozen=True)
class Choice:
    """One of two values, by a condition."""

    condition: Expression
    then: Expression
    other: Expression


@dataclass(frozen=True)
class Default:
    """A value that may be missing, or another one."""

    value: Expression
    other: Expression
    is_integer: bool  # else it is a dtype


@dataclass(frozen=True)
class IsThere:
    """Whether a value that may be missing is there, or is not."""

    value: Expression
    negated: bool = False


@dataclass(frozen=True)
class Present:
    """A tensor that may be missing where it is there."""

    tensor: Expression


Expression = (
    Named | Constant | Dtype | Call | Negative | Attribute | Element | Listed | DynamicSize
    | Comparison | Joined | Choice | Default | IsThere | Present
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """When an expression is looked at: where a condition holds, or where it does not; `value or
    other` looks at the other where the value is missing, or 0."""

    condition: Expression
    holds: bool = True
    of_default: bool = False  # the condition is the value of a Default

    @property
    def opposite(self) -> Case:
        return Case(self.condition, not self.holds, self.of_default)


@dataclass(frozen=True)
class Needs:
    """The optional arguments that an expression cannot do without, in the order in which it is
    evaluated: a condition reads nothing but what is asked for before it."""

    names: frozenset[str] = frozenset()  # parameters that are read in any case
    guarded: tuple[tuple[Case, Needs], ...] = ()  # and what is read in a case

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
        guarded = ((case, needs.without(known)) for case, needs in self.guarded)
        return Needs(self.names - known, tuple(pair for pair in guarded if pair[1]))

    def within(self, case: Case) -> Needs:
        """The same of an expression that is looked at in a case."""
        return Needs(guarded=((case, self),)) if self else self

    @property
    def every_name(self) -> list[str]:
        """The parameters that may be read, sorted."""
        return sorted(self.names.union(*(needs.every_name for _, needs in self.guarded)))


@dataclass(frozen=True)
class Shown:
    """A value in the words of an error."""

    value: Expression
    is_formatted: bool  # as Python has it
    may_fail: bool = False  # it may have no value, which is shown as None
    needs: Needs = Needs()  # without which it is shown as None


@dataclass(frozen=True)
class Operator:
    """The name of the operator whose rule it is."""


@dataclass(frozen=True)
class Quoted:
    """A text of the spec, on one line."""

    text: str


@dataclass(frozen=True)
class Compare:
    """A function of shape.h that compares two integers."""

    function: str


@dataclass(frozen=True)
class Message:
    """The words of an error, made where it is raised."""

    parts: tuple[Operator | Quoted | Shown, ...]


@dataclass(frozen=True)
class RuleCheck:
    """A call of a function of shape.h that raises where a condition does not hold."""

    function: str
    arguments: tuple[Expression | Operator | Quoted | Compare | Message, ...]
    needs: Needs = Needs()  # without which the check is left out


@dataclass(frozen=True)
class RuleLoop:
    """What a list of results is made of: so many numbers, or the values of a list."""

    name: str
    count: Expression | None = None
    values: Expression | None = None


@dataclass(frozen=True)
class RuledResult:
    """What a rule says of one result."""

    sizes: Expression
    dtype: Expression
    tensors: tuple[Expression, ...]  # the first that is there gives the device
    needs: Needs  # what must be there
    strides: Expression | None = None  # that the kernel needs
    is_contiguous: bool = False  # else any strides that it is given will do
    when: Expression | None = None  # whether the result is there
    when_needs: Needs = Needs()
    loop: RuleLoop | None = None
