# SPDX-License-Identifier: BSD-3-Clause
"""What stands in the place of a tangent's formula: the C++ that upstream's words for one mean, and
that writes one where the operator wrote its result."""

from __future__ import annotations

import re

from .reading import read

_METHOD = re.compile(r"(\w+)_t\.(\w+)\((.*)\)", re.DOTALL)


def words(name: str) -> tuple[str, str]:
    """What a formula calls the tangent of an argument: one that is zeros where there is none, and
    one that is undefined there."""
    return f"{name}_t", f"{name}_t_raw"


def at_conjugate(gradient: str, argument: str, grads: list[str]) -> str:
    """A gradient's formula at the conjugate tangent of the argument, conjugated."""
    conjugate = dict.fromkeys(grads, f"{argument}_t.conj()")
    names = {**conjugate, argument: f"{argument}_p"}
    return f"({read(gradient).renamed(names)}).conj()"


def called_again(handle: str, arguments: list[str], result: int | None) -> str:
    """A call of an operator, and one of its results where it has several."""
    call = f"operators::{handle}::call({', '.join(arguments)})"
    return call if result is None else f"::std::get<{result}>({call})"


def viewed_in_place(argument: str, formula: str) -> str:
    """The tangent of an argument that was made a view of itself."""
    return f"view_in_place({argument}_t_raw, {formula})"


def written_in_place(argument: str, formula: str, operator: str) -> str:
    """A formula that writes to the argument's tangent, where there is one, as the operator of this
    base name does to the value: by the method that it is, else by a copy."""
    match = _METHOD.fullmatch(formula)
    if match and match.group(1, 2) == (argument, operator) and _stays_inside(match.group(3)):
        call = f"{argument}_t_raw.{operator}_({match.group(3)})"
        return f"{argument}_t_raw.defined() ? {call} : {formula}"
    return f"written_tangent({argument}_t_raw, {formula})"


def read_apart(word: str) -> str:
    """A tangent that is read, and written to after that."""
    return f"unshared({word})"


def without_tangent(parameter: str) -> str:
    """An argument whose tangent goes nowhere."""
    return f"without_tangent({parameter})"


def primal_of(local: str) -> str:
    """A result without its tangent."""
    return f"primal_of({local})"


def _stays_inside(text: str) -> bool:
    """Whether the first parenthesis that a call's arguments close is the call's own."""
    level = 1
    for char in text:
        level += {"(": 1, ")": -1}.get(char, 0)
        if level == 0:
            return False
    return True
