# SPDX-License-Identifier: BSD-3-Clause
"""What a place of a file stands in, and which statements jump past it."""

from __future__ import annotations

from .cuda_tokens import OPENING, Token, behind, matching, opener, previous, text_at

_CONTINUED = frozenset(("else", "while", "catch"))  # that a statement may go on with


def scope_of(tokens: list[Token], index: int) -> str:
    """ "file", "class" or "code": a macro's is code."""
    if tokens[index].part > 0:
        return "code"
    braces = _braces(tokens, index)
    kind = _kind(tokens, braces[0]) if braces else "namespace"
    return "file" if kind == "namespace" else kind


def is_in_unnamed_namespace(tokens: list[Token], index: int) -> bool:
    return any(_head(tokens, brace)[-1:] == ["namespace"] for brace in _braces(tokens, index))


def place_before_jump(tokens: list[Token], first: int, end: int) -> int:
    """Where the statement begins that may jump past the declaration from `first` to `end`, into
    what follows in its block; -1 where none does."""
    found = -1
    while (place := _place_before_jump(tokens, first, end)) >= 0:
        found = first = end = place  # where another one may jump past it
    return found


def _place_before_jump(tokens: list[Token], first: int, end: int) -> int:
    braces = [] if tokens[first].part > 0 else _braces(tokens, first)
    block_end = matching(tokens, braces[0]) if braces and end < len(tokens) else -1
    if block_end < 0:
        return -1
    jump = _switch(tokens, braces[0], end, block_end)
    code = [brace for brace in braces if _kind(tokens, brace) == "code"]
    if jump < 0 and code:
        jump = _goto(tokens, code[-1], first, _labels(tokens, end, block_end))
    common = next((b for b in braces if b < jump < matching(tokens, b)), -1)
    return _start_of_statement(tokens, common, jump) if common >= 0 else -1


def _braces(tokens: list[Token], index: int) -> list[int]:
    """The `{` that a place stands in, the innermost first."""
    found = []
    place = opener(tokens, index)
    while place >= 0:
        if tokens[place].text == "{":
            found.append(place)
        place = opener(tokens, place)
    return found


def _head(tokens: list[Token], brace: int) -> list[str]:
    """What stands ahead of a `{` since the last statement, without what is in brackets."""
    found: list[str] = []
    place = previous(tokens, brace)
    while place >= 0 and tokens[place].text not in (";", "{", "}"):
        found.append(tokens[place].text)
        if tokens[place].text in OPENING:
            place = matching(tokens, place)
        place = previous(tokens, place) if place >= 0 else -1
    return found[::-1]


def _kind(tokens: list[Token], brace: int) -> str:
    """Whether a `{` begins a "namespace", a "class" or "code"."""
    head = _head(tokens, brace)
    if "namespace" in head or head[:1] == ["extern"] and head[1:] == ['"C"']:
        return "namespace"
    while head[:1] == ["template"]:
        head = _without_template_head(head)
    is_class = any(word in head for word in ("struct", "class", "union", "enum"))
    is_function = head[-1:] in ([")"], ["const"], ["noexcept"], ["override"]) or "->" in head
    return "class" if is_class and not is_function else "code"


def _without_template_head(head: list[str]) -> list[str]:
    depth = 0
    for index, word in enumerate(head):
        depth += {"<": 1, ">": -1}.get(word, 0)
        if word == ">" and depth == 0:
            return head[index + 1 :]
    return []


def _switch(tokens: list[Token], brace: int, start: int, end: int) -> int:
    """The `switch` whose block begins at `brace` and that jumps between two places; -1 without."""
    head = previous(tokens, brace)
    opening = matching(tokens, head) if text_at(tokens, head) == ")" else -1
    switch = previous(tokens, opening) if opening >= 0 else -1
    place = start if text_at(tokens, switch) == "switch" else end
    while 0 <= place < end:
        text = tokens[place].text
        if text == "case" or text == "default" and text_at(tokens, behind(tokens, place)) == ":":
            return switch
        place = matching(tokens, place) if text == "{" else place
        place = behind(tokens, place) if place >= 0 else -1
    return -1


def _labels(tokens: list[Token], start: int, end: int) -> set[str]:
    """The names that `goto` may jump to, between two places."""
    return {
        tokens[place].text
        for place in range(start, end)
        if tokens[place].kind == "name"
        and text_at(tokens, behind(tokens, place)) == ":"
        and text_at(tokens, previous(tokens, place)) in (";", "{", "}", ":")
    }


def _goto(tokens: list[Token], start: int, end: int, labels: set[str]) -> int:
    """The first `goto` one of the labels between two places; -1 where none is."""
    for place in range(start, end):
        if tokens[place].text == "goto" and text_at(tokens, behind(tokens, place)) in labels:
            return place
    return -1


def _start_of_statement(tokens: list[Token], brace: int, index: int) -> int:
    """Where the statement of the block at `brace` begins that `index` stands in."""
    place = index
    while (outer := opener(tokens, place)) != brace and outer >= 0:
        place = outer
    while True:
        before = previous(tokens, place)
        if before < 0:
            return -1
        text = tokens[before].text
        if before == brace or text in (";", "}"):
            start = behind(tokens, before)
            if before == brace or tokens[start].text not in _CONTINUED:
                return start
        place = matching(tokens, before) if text in OPENING else before
