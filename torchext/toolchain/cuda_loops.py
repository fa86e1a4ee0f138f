# SPDX-License-Identifier: BSD-3-Clause
"""Loops that may be without end, so that each round is a step of the thread.

The compiler counts blocks of code, and of a loop without any it leaves none:

    while (true), for (;;)     while (step()), for (; step();)
    while (x) {}               while (step() && (x)) {}
    goto again;                while (step()) goto again;
"""

from __future__ import annotations

from .cuda_tokens import CLOSING, NAMESPACE, Token, behind, matching, previous, text_at

_STEP = f"{NAMESPACE}::step()"


def rewrite_loops(tokens: list[Token]) -> None:
    """Rewrite every loop of a file that may have no code."""
    for index, token in enumerate(tokens):
        if token.kind != "name" or token.part < 0:
            continue
        start = behind(tokens, index)
        if token.text == "goto" and start < len(tokens) and tokens[start].kind == "name":
            token.ahead += f"while ({_STEP}) "
        if token.text not in ("while", "for") or text_at(tokens, start) != "(":
            continue
        end = matching(tokens, start)
        if end < 0:
            continue
        signs = _at_level(tokens, start, end)
        if token.text == "for":
            semicolons = [place for place in signs if tokens[place].text == ";"]
            if len(semicolons) != 2:
                continue
            start, condition_end = semicolons
        else:
            condition_end = end
        is_empty = _is_empty(tokens, end) and not _ends_a_body(tokens, index)
        _rewrite_condition(tokens, start, condition_end, is_empty)


def _rewrite_condition(tokens: list[Token], start: int, end: int, is_empty: bool) -> None:
    """The condition between two signs, of a loop whose body may be empty."""
    inside = [place for place in _at_level(tokens, start, end)]
    texts = [tokens[place].text for place in inside]
    if not inside:
        tokens[end].ahead += f" {_STEP}"
    elif len(inside) == 1 and (texts == ["true"] or _is_number_but_zero(tokens[inside[0]])):
        tokens[inside[0]].text = _STEP
    elif is_empty and "=" not in texts and not _is_declaration(tokens, inside):
        tokens[inside[0]].ahead += f"{_STEP} && ("
        tokens[end].ahead += ")"


def _at_level(tokens: list[Token], start: int, end: int) -> list[int]:
    """The tokens between two that stand in no brackets of their own; of brackets the first."""
    found = []
    place = behind(tokens, start)
    while place < end:
        found.append(place)
        if tokens[place].text in CLOSING:
            place = matching(tokens, place)
            if place < 0:
                break
        place = behind(tokens, place)
    return found


def _is_empty(tokens: list[Token], end: int) -> bool:
    """Whether no statement follows, as behind `do`."""
    place = behind(tokens, end)
    if text_at(tokens, place) == "{":
        return text_at(tokens, behind(tokens, place)) == "}"
    return text_at(tokens, place) == ";"


def _ends_a_body(tokens: list[Token], index: int) -> bool:
    """Whether `while` ends a loop that begins with `do` and has code."""
    end = previous(tokens, index)
    if text_at(tokens, end) != "}":
        return False
    start = matching(tokens, end)
    is_of_do = start >= 0 and text_at(tokens, previous(tokens, start)) == "do"
    return is_of_do and behind(tokens, start) != end


def _is_number_but_zero(token: Token) -> bool:
    return token.kind == "number" and token.text.rstrip("uUlL").isdigit() and token.text[0] != "0"


def _is_declaration(tokens: list[Token], inside: list[int]) -> bool:
    """Whether a condition declares what it tests, which has an initializer in braces."""
    return text_at(tokens, inside[-1]) == "{" and len(inside) > 2
