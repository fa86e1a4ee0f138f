# SPDX-License-Identifier: BSD-3-Clause
"""Which functional form the forms that write belong to: in-place, out= and others.

What `autogen:` and `structured_delegate` say goes before all names. Otherwise forms that belong
together have one base name, the same arguments and results, and one overload: `mul_.Tensor` is
that of `mul.Tensor`, `mul.Tensor_out` and `sort.values`, which writes to `values`, those of
`mul.Tensor` and `sort`. An overload that has only some words of the functional form's (`add.out`,
`add.Tensor`; `pow_.Scalar`, `pow.Tensor_Scalar`) is enough where no other functional form takes
the same arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from ..errors import Errors
from ..schema.forms import copy_form, functional_signature
from ..schema.schema import OperatorName, Return
from ..spec.model import Beside, Operator

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


class FunctionalForms:
    """The functional forms of a library, by those that write."""

    def __init__(self, operators: Iterable[Operator], errors: Errors) -> None:
        operators = [op for op in operators if not op.is_override]
        self._errors = errors
        self._by_name = {op.name: op for op in operators}
        self._found: dict[OperatorName, Operator] = {}  # by the name of the form that writes
        self._by_signature: dict[str, list[Operator]] = {}
        for operator in operators:
            if not operator.func.mutated and not operator.name.is_inplace:
                self._by_signature.setdefault(_signature(operator), []).append(operator)
        for operator in operators:
            with errors.about(str(operator.name)):
                self._take_declared(operator)
        self._take_delegates(operators)
        writing = [op for op in operators if op.func.mutated and not _is_derived_from_writing(op)]
        for operator in writing:
            with errors.about(str(operator.name)):
                self._take_own(operator)
        claims = {(form.name, _kind(self._by_name[name])) for name, form in self._found.items()}
        for operator in [op for op in writing if op.name not in self._found]:
            with errors.about(str(operator.name)):
                self._take_related(operator, claims)
        for operator in operators:
            self._take_out_of_inplace(operator)

    def of(self, operator: Operator) -> Operator | None:
        """The functional form of an operator that writes; None where it has none, or writes not."""
        return self._found.get(operator.name)

    def replacing(self, operator: Operator) -> Operator | None:
        """The functional form that returns what an operator writes, and nothing else."""
        found = self._found.get(operator.name)
        if found is None or operator.origin is found or _signature(found) == _signature(operator):
            return found
        return None

    def _take_declared(self, entry: Operator) -> None:
        """What `autogen:` says: a functional form and one that writes, of which one declares the
        other."""
        for name in entry.autogen:
            other = self._by_name.get(name)
            if other is not None and bool(other.func.mutated) != bool(entry.func.mutated):
                pair = (other, entry) if other.func.mutated else (entry, other)
                self._link(*pair, entry)

    def _link(self, writing: Operator, functional: Operator, entry: Operator) -> None:
        first = self._found.setdefault(writing.name, functional)
        if first is not functional:
            message = f"'{writing.name}' is a form of '{first.name}' already"
            hint = f"see line {first.location.line}; 'autogen' of '{functional.name}' needs another"
            self._errors.add(entry.location, message, f"{hint} name")

    def _take_delegates(self, operators: list[Operator]) -> None:
        """The forms of a structured operator belong to the functional one among them."""
        functional = {
            op.structured_delegate: op
            for op in operators
            if op.structured_delegate is not None and not op.func.mutated
        }
        for operator in operators:
            target = str(operator.name) if operator.structured else operator.structured_delegate
            if operator.func.mutated and target in functional:
                self._found.setdefault(operator.name, functional[target])

    def _take_own(self, operator: Operator) -> None:
        """Take the functional form of the same overload."""
        same = self._with_signature(operator)
        own = [op for op in same if _is_own(operator, op)]
        own = own or [op for op in same if _is_own_by_words(operator, op)]
        if len(own) == 1 and operator.name not in self._found:
            self._take(operator, own[0], _kind(operator) == "in-place")

    def _take(self, operator: Operator, functional: Operator, is_only: bool) -> None:
        """Note a form; is_only: there can be no other of its kind."""
        others = [self._by_name[name] for name, f in self._found.items() if f is functional]
        others = [op for op in others if _kind(op) == _kind(operator)]
        if others and is_only:
            first = f"'{others[0].name}' (line {others[0].location.line})"
            self._refuse(operator, [functional], f", as {first}")
        self._found[operator.name] = functional

    def _take_related(self, operator: Operator, claims: set[tuple[OperatorName, str]]) -> None:
        """Take the only functional form with these arguments that has no form of its own overload;
        where there are several, or two forms would take it, say so."""
        kind, same = _kind(operator), self._with_signature(operator)
        free = [op for op in same if (op.name, kind) not in claims and _is_related(operator, op)]
        if len(free) == len(same) == 1:
            self._take(operator, free[0], is_only=True)
        elif free:
            self._refuse(operator, free)

    def _refuse(self, operator: Operator, functional: list[Operator], more: str = "") -> None:
        if _kind(operator) == "mutable":
            return  # nothing is called in its place
        names = " or ".join(f"'{op.name}' (line {op.location.line})" for op in functional)
        message = f"'{operator.name}' may be the {_kind(operator)} form of {names}{more}"
        own = _own_name(operator, functional[0])
        hint = f"call it '{own}' if it is that of '{functional[0].name}'"
        hint += ", or give it another base name if it belongs to none"
        if operator.name == own:
            hint = "give one of the two another overload"
        self._errors.add(operator.location, message, hint)

    def _take_out_of_inplace(self, operator: Operator) -> None:
        """An out= form that an in-place one declares belongs where that belongs."""
        origin = operator.origin
        if origin is not None and origin.name.is_inplace and operator.func.is_out:
            functional = self._found.get(origin.name)
            if functional is not None:
                self._found.setdefault(operator.name, functional)

    def _with_signature(self, operator: Operator) -> list[Operator]:
        return self._by_signature.get(_signature(operator), [])


def view_copies(operators: Iterable[Operator]) -> dict[OperatorName, OperatorName]:
    """The operators that copy the views that others return: what an `autogen:` says, or what has
    the name and the arguments of such an operator."""
    operators = list(operators)
    by_schema = {str(replace(op.func, name=op.name)): op.name for op in operators}
    found = {
        op.name: by_schema[str(copy_form(op.func))]
        for op in operators
        if str(copy_form(op.func)) in by_schema
    }
    for operator in operators:
        origin, is_functional = operator.origin, not operator.func.mutated
        if origin is not None and origin.func.is_view and is_functional:
            if operator.beside in (None, Beside.COPY):
                found[origin.name] = operator.name
    return found


def _signature(operator: Operator) -> str:
    """What forms have in common; the results of one that returns nothing are what it writes."""
    func = operator.func
    if func.mutated and not func.returns:
        func = replace(func, returns=tuple(Return(a.type) for a in func.mutated))
    return functional_signature(func)


def _is_derived_from_writing(operator: Operator) -> bool:
    """Whether it is an out= form that an entry declares that writes itself."""
    return operator.func.is_out and operator.origin is not None


def _kind(operator: Operator) -> str:
    if operator.func.is_out:
        return "out="
    return "in-place" if operator.name.is_inplace else "mutable"


def _own_name(operator: Operator, functional: Operator) -> OperatorName:
    """What a form of this kind would be called that is `functional`'s beyond doubt."""
    base, overload = operator.name.base, functional.name.overload
    if operator.func.is_out:
        overload = f"{overload}_out" if overload else "out"
    return OperatorName(base, overload)


def _is_own(operator: Operator, functional: Operator) -> bool:
    return operator.name == _own_name(operator, functional)


def _is_own_by_words(operator: Operator, functional: Operator) -> bool:
    return operator.func.is_out and _words(operator) == _words(functional)


def _is_related(operator: Operator, functional: Operator) -> bool:
    return set(_words(operator)) <= set(_words(functional))


def _words(operator: Operator) -> list[str]:
    """The words of the overload, without those that say `out` or what an out= form writes to."""
    words = _split(operator.name.overload)
    if not operator.func.is_out:
        return words
    for argument in ("out", *(a.name for a in operator.func.mutated)):
        words = _without(words, _split(argument))
    return words


def _split(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]


def _without(words: list[str], part: list[str]) -> list[str]:
    """The words without the first place where those of `part` follow one another."""
    for start in range(len(words) - len(part) + 1):
        if part and words[start : start + len(part)] == part:
            return words[:start] + words[start + len(part) :]
    return words
