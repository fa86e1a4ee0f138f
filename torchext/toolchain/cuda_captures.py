# SPDX-License-Identifier: BSD-3-Clause
"""Lambdas that use shared variables, which are references here and no variables of static storage:
their captures name them, so that none is copied and all are known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .cuda_tokens import Token, behind, matching, opener, previous, text_at


@dataclass(frozen=True)
class Local:
    """A shared variable of a function, and the tokens between which its name means it."""

    name: str
    start: int
    end: int


def scope_of_local(tokens: list[Token], name: str, start: int) -> Local:
    """A variable that is declared ahead of `start`."""
    brace = opener(tokens, start) if start < len(tokens) else -1
    while brace >= 0 and tokens[brace].text != "{":
        brace = opener(tokens, brace)
    end = matching(tokens, brace) if brace >= 0 else -1
    return Local(name, start, end if end >= 0 else len(tokens))


def capture(tokens: list[Token], variables: list[Local]) -> None:
    """Name the variables in the captures of each lambda that uses them."""
    for opening, closing, parameters, body in _lambdas(tokens):
        listed = [t.text for t in tokens[opening + 1 : closing] if t.is_solid]
        takes_all = listed[:1] == ["&"] and listed[1:2] in ([], [","])
        if takes_all:
            continue
        added = dict.fromkeys(
            v.name
            for v in variables
            if v.start <= opening < v.end
            and v.name not in listed
            and not any(t.text == v.name for t in tokens[closing:parameters])
            and _uses(tokens, body, v.name)
        )
        names = ", ".join(f"&{name}" for name in added)
        if names:
            tokens[closing].ahead += f", {names}" if listed else names


def _lambdas(tokens: list[Token]) -> Iterator[tuple[int, int, int, int]]:
    """The brackets of each, where its parameters end, and where its body begins."""
    for index, token in enumerate(tokens):
        if token.text != "[" or token.kind != "sign":
            continue
        before = previous(tokens, index)
        is_subscript = before >= 0 and (tokens[before].is_word or tokens[before].text in (")", "]"))
        closing = matching(tokens, index)
        if is_subscript or closing < 0 or text_at(tokens, before) == "[":
            continue
        parameters = body = behind(tokens, closing)
        if text_at(tokens, body) == "(":
            parameters = matching(tokens, body)
            body = behind(tokens, parameters) if parameters >= 0 else len(tokens)
        while 0 <= body < len(tokens) and tokens[body].text not in ("{", ";", ")", "="):
            body = behind(tokens, body)
        if 0 <= body < len(tokens) and tokens[body].text == "{" and parameters >= 0:
            yield index, closing, parameters, body


def _uses(tokens: list[Token], body: int, name: str) -> bool:
    end = matching(tokens, body)
    return any(
        tokens[place].text == name
        and text_at(tokens, previous(tokens, place)) not in (".", "->", "::")
        for place in range(body, end)
    )
