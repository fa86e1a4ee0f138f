# SPDX-License-Identifier: BSD-3-Clause
"""Declarations of variables without a first value: names, and types as the file spells them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from .cuda_tokens import CLOSING, Token, angle_ends, behind, matching, previous, text_at

_ALIGNMENTS = frozenset(("alignas", "__align__", "__attribute__"))
_TYPE_OF = frozenset(("decltype", "__typeof__", "typeof"))
_TYPE_KEYWORDS = frozenset(("struct", "class", "union", "enum"))


@dataclass(frozen=True)
class Variable:
    """A variable that is declared."""

    name: str
    type: str  # of an array without a first extent: its element's
    is_unbounded: bool  # whether it is such an array
    has_extents: bool


@dataclass(frozen=True)
class Declaration:
    """The variables of one declaration."""

    variables: list[Variable]
    alignment: str  # "alignas(16)" and the like, as they are spelled; may be empty
    type_end: int  # the `}` of a type that the declaration defines; -1 where it defines none


def read_declaration(
    tokens: list[Token], first: int, end: int, dropped: frozenset[str]
) -> Declaration | None:
    """Read what stands from `first` up to `end`, without the specifiers `dropped`; None where it is
    no declaration, or gives a first value."""
    places, alignment = _without_attributes(tokens, _solid(tokens, first, end), dropped)
    brace = next((place for place in places if tokens[place].text == "{"), -1)
    type_end, head = -1, ""
    if brace >= 0:
        type_end = matching(tokens, brace)
        head = _named(tokens, [place for place in places if place < brace], places, type_end)
        places = [place for place in places if place > type_end]
        if not head:
            return None
    variables = _variables(tokens, places, head)
    return Declaration(variables, alignment, type_end) if variables else None


def _solid(tokens: list[Token], first: int, end: int) -> list[int]:
    part = tokens[first].part
    return [i for i in range(first, end) if tokens[i].is_solid and tokens[i].part == part]


def _without_attributes(
    tokens: list[Token], places: list[int], dropped: frozenset[str]
) -> tuple[list[int], str]:
    """What is left of a declaration without attributes and specifiers, and those that align."""
    kept: list[int] = []
    alignment = []
    skip_to = -1
    depth = 0
    for place in places:
        text = tokens[place].text
        following = behind(tokens, place)
        depth += {"{": 1, "}": -1}.get(text, 0)
        if place <= skip_to:
            continue
        if depth == 0 and text in _ALIGNMENTS:
            skip_to = matching(tokens, following)
            alignment.append(spelled(tokens, range(place, skip_to + 1)))
        elif depth == 0 and text == "[" and text_at(tokens, following) == "[":
            skip_to = matching(tokens, place)
        elif depth > 0 or text not in dropped:
            kept.append(place)
    return kept, " ".join(alignment)


def _named(tokens: list[Token], head: list[int], places: list[int], type_end: int) -> str:
    """The name of a type that is defined with `head` ahead of its members; empty where none is.

    One that has none is given it.
    """
    keywords = [at for at, place in enumerate(head) if tokens[place].text in _TYPE_KEYWORDS]
    if not keywords or type_end < 0:
        return ""
    named = head[keywords[-1] + 1 :][:1]
    if named and tokens[named[0]].kind == "name":
        return tokens[named[0]].text
    declared = next((p for p in places if p > type_end and tokens[p].kind == "name"), -1)
    if declared < 0:
        return ""
    given = f"torchext_type_of_{tokens[declared].text}"
    tokens[head[keywords[-1]]].text += f" {given}"
    return given


def _variables(tokens: list[Token], places: list[int], specifiers: str) -> list[Variable]:
    """The variables of a list of declarators, behind the type's own name in the first of them."""
    found: list[Variable] = []
    for declarator in _split_at_commas(tokens, places):
        name = _name(tokens, declarator)
        if not name:
            return []
        if not found and not specifiers:
            specified = _specifiers(tokens, declarator, name[0])
            specifiers = spelled(tokens, specified)
            declarator = declarator[len(specified) :]
        if not specifiers or _gives_a_value(tokens, declarator):
            return []
        found.append(_variable(tokens, declarator, name, specifiers))
    return found


def _variable(tokens: list[Token], declarator: list[int], name: list[int], type_: str) -> Variable:
    following = behind(tokens, name[-1])
    has_extents = following in declarator and tokens[following].text == "["
    extent_end = matching(tokens, following) if has_extents else -1
    is_unbounded = has_extents and behind(tokens, following) == extent_end
    dropped = {*name, *((following, extent_end) if is_unbounded else ())}
    own = spelled(tokens, [p for p in declarator if p not in dropped])
    own = re.sub(r"\[([^\[\]]*>[^\[\]]*)\]", r"[(\1)]", own)  # where `>` ends no arguments
    space = " " if own and own[0] not in "[*&" else ""
    text = "".join(tokens[p].text for p in name)
    return Variable(text, f"{type_}{space}{own}", is_unbounded, has_extents)


def _gives_a_value(tokens: list[Token], declarator: list[int]) -> bool:
    skip_to = -1
    for place in declarator:
        if place > skip_to and tokens[place].text in ("=", "{", ":"):
            return True
        if place > skip_to and tokens[place].text in CLOSING:
            skip_to = matching(tokens, place)
    return False


def _split_at_commas(tokens: list[Token], places: list[int]) -> list[list[int]]:
    """The declarators between commas that stand in no brackets and no template arguments."""
    found: list[list[int]] = [[]]
    skip_to = -1
    for place in places:
        text = tokens[place].text
        if place > skip_to and text in CLOSING:
            skip_to = matching(tokens, place)
        elif place > skip_to and text == "<":
            skip_to = next((e for e in angle_ends(tokens, place) if e <= places[-1]), -1)
        if text == "," and place > skip_to:
            found.append([])
        else:
            found[-1].append(place)
    return found


def _name(tokens: list[Token], declarator: list[int]) -> list[int]:
    """The tokens of a declarator's name, which a macro may paste together; none without one."""
    at = len(declarator) - 1
    while at >= 0 and tokens[declarator[at]].text in ("]", ")"):
        opening = matching(tokens, declarator[at])
        if opening not in declarator:
            return []
        inside = declarator[declarator.index(opening) + 1 : at]
        if tokens[declarator[at]].text == ")" and inside and tokens[inside[0]].text in ("*", "&"):
            return _name(tokens, inside)
        at = declarator.index(opening) - 1
    if at < 0 or tokens[declarator[at]].kind != "name":
        return []
    begin = at
    while begin >= 2 and tokens[declarator[begin - 1]].text == "##":
        begin -= 2
    return declarator[begin : at + 1]


def _specifiers(tokens: list[Token], declarator: list[int], name: int) -> list[int]:
    """What stands ahead of the first declarator: the type that all share."""
    skip_to = -1
    for at, place in enumerate(declarator):
        if place <= skip_to:
            continue
        text = tokens[place].text
        is_nested = text == "(" and text_at(tokens, behind(tokens, place)) in ("*", "&")
        is_nested = is_nested and text_at(tokens, previous(tokens, place)) not in _TYPE_OF
        if place == name or text in ("*", "&", "&&") or is_nested:
            return declarator[:at]
        if text == "<":
            skip_to = next((e for e in angle_ends(tokens, place) if e < name), -1)
        elif text in CLOSING:
            skip_to = matching(tokens, place)
    return []


def spelled(tokens: list[Token], places: Iterable[int]) -> str:
    """The text from the first of some tokens to the last, on one line and without comments."""
    text = ""
    last = -1
    for place in places:
        token = tokens[place]
        if last >= 0 and any(not t.is_solid for t in tokens[last + 1 : place]):
            text += " "
        text += token.text if token.is_solid and token.text != "\\" else " "
        last = place
    return " ".join(text.split())
