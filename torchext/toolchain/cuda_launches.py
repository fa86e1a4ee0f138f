# SPDX-License-Identifier: BSD-3-Clause
"""Launches of kernels, as calls of what torchext/cuda_on_host/launch.h has.

k<<<grid, block>>>(x)       launch("k", TORCHEXT_KERNEL(k), [&](const auto&... a) {k(a...);},
                                   Configuration(grid, block))(x)
(*p)<<<grid, block>>>(x)    launch("(*p)", ((*p)), Configuration(grid, block))(x)
#define ON(g) <<<g, 32>>>   #define ON(g) ->*chevrons(Configuration(g, 32))
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .cuda_tokens import (
    CLOSING,
    NAMESPACE,
    OPENING,
    Token,
    TranslationError,
    angle_openings,
    behind,
    matching,
    previous,
    text_at,
)

# What a launch, which has no value, can follow.
_BEFORE_LAUNCHES = frozenset(("", ";", "{", "}", "(", ")", "?", ":", "]"))


def rewrite_launches(tokens: list[Token], path: str) -> None:
    """Rewrite every launch of a file; `path` for messages.

    Raises TranslationError for one whose kernel or end is not found.
    """
    for index, token in enumerate(tokens):
        if token.text != "<<<" or token.part < 0:
            continue
        place = f"{path}:{token.line}: this launch cannot be read"
        end = _end_of_chevrons(tokens, index)
        if end < 0:
            raise TranslationError(f"{place}: write kernel<<<grid, block>>>(arguments)")
        before = previous(tokens, index)
        if before < 0 and token.part > 0:
            begin = f" ->*{NAMESPACE}::chevrons({NAMESPACE}::Configuration("
        else:
            start = _start_of_kernel(tokens, before)
            if start < 0 or text_at(tokens, behind(tokens, end + 2)) != "(":
                raise TranslationError(f"{place}: write the kernel in brackets before <<<")
            begin = _name_kernel(tokens, start, index)
        token.text = begin
        tokens[end].text, tokens[end + 1].text, tokens[end + 2].text = "))", "", ""


def _end_of_chevrons(tokens: list[Token], index: int) -> int:
    """The first of the three `>` that end what `<<<` at `index` begins; -1 where none do."""
    place = behind(tokens, index)
    while place < len(tokens):
        text = tokens[place].text
        if text in CLOSING:
            place = matching(tokens, place)
        if place < 0 or text in OPENING or text == ";":
            return -1
        if text == ">":
            end = place
            while text_at(tokens, end + 1) == ">":
                end += 1
            follows = text_at(tokens, behind(tokens, end))
            if end - place >= 2 and (follows == "(" or not follows and tokens[end].part > 0):
                return end - 2
            place = end
        place = behind(tokens, place)
    return -1


def _name_kernel(tokens: list[Token], start: int, chevrons: int) -> str:
    """Begin the call ahead of the kernel's name, and return what stands for `<<<`."""
    kernel = tokens[start:chevrons]
    text = "".join(" " if t.kind == "comment" or t.text == "\\\n" else t.text for t in kernel)
    name = " ".join(text.split())
    begin = f"{NAMESPACE}::launch({_shown(tokens, start, chevrons)}, "
    configuration = f"{NAMESPACE}::Configuration("
    if not _is_name(tokens, start, chevrons):
        tokens[start].ahead += f"{begin}("
        return f"), {configuration}"
    # which kernel it is, the arguments may have to say
    tokens[start].ahead += (
        f"{begin}TORCHEXT_KERNEL({name}), "
        f"[&](const auto&... torchext_a) -> decltype({name}(torchext_a...)) {{ "
    )
    return f"(torchext_a...); }}, {configuration}"


def _is_name(tokens: list[Token], start: int, end: int) -> bool:
    """Whether it is a name with namespaces and template arguments, and no other expression."""
    place = start
    while place < end:
        token = tokens[place]
        if token.text == "<":
            closing = [i for i in range(place, end) if place in angle_openings(tokens, i)]
            place = closing[-1]
        elif token.is_solid and token.kind != "name" and token.text not in ("::", "##"):
            return False
        place += 1
    return True


def _shown(tokens: list[Token], start: int, end: int) -> str:
    """The kernel's name as a literal, in which a macro's parameters are what they stand for."""
    parameters = _parameters(tokens, start)
    found = ""
    for token in tokens[start:end]:
        if token.text in parameters:
            found += f'" #{token.text} "'
        elif token.kind in ("space", "comment") or token.text == "\\":
            found += " "
        elif token.text != "##":
            found += token.text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{re.sub(" +", " ", found).strip()}"'


def _parameters(tokens: list[Token], index: int) -> frozenset[str]:
    """The names of the parameters of the macro that a token belongs to."""
    part = tokens[index].part
    head = [t for t in tokens[:index] if part > 0 and t.part == -part and t.is_solid]
    names = {t.text for t in head[4:] if t.kind == "name"}
    return frozenset(names | {"__VA_ARGS__"} if any(t.text == "." for t in head) else names)


def _start_of_kernel(tokens: list[Token], end: int) -> int:
    """Where the expression before `<<<` begins, which ends at `end`; -1 where there is none."""
    behind_comma = -1  # which may be one between template arguments
    for start in _starts(tokens, end) if end >= 0 else ():
        before = previous(tokens, start)
        if text_at(tokens, before) == ",":
            behind_comma = start if behind_comma < 0 else behind_comma
        elif text_at(tokens, before) in _BEFORE_LAUNCHES or tokens[before].kind == "name":
            return start
    return behind_comma


def _starts(tokens: list[Token], index: int) -> Iterator[int]:
    """Where an expression of names, calls and subscripts may begin that ends at `index`."""
    text = tokens[index].text
    if text in (")", "]"):
        opening = matching(tokens, index)
        before = previous(tokens, opening) if opening >= 0 else -1
        if before >= 0 and _ends_an_operand(tokens, before):
            yield from _starts(tokens, before)
        if text == ")" and opening >= 0:
            yield opening
    elif text == ">":
        for opening in angle_openings(tokens, index):
            yield from _starts(tokens, previous(tokens, opening))
    elif tokens[index].is_word:
        yield from _qualified_starts(tokens, index)


def _qualified_starts(tokens: list[Token], index: int) -> Iterator[int]:
    """The same for a name, with what it is a member of."""
    before = previous(tokens, index)
    if text_at(tokens, before) == "template":
        before = previous(tokens, before)
    if text_at(tokens, before) not in ("::", ".", "->", "##"):
        yield index
        return
    scope = previous(tokens, before)
    if scope >= 0 and _ends_an_operand(tokens, scope):
        yield from _starts(tokens, scope)
    elif tokens[before].text == "::":
        yield before  # of the global namespace


def _ends_an_operand(tokens: list[Token], index: int) -> bool:
    """Whether what ends here is called, indexed or has members, and is no head of a statement."""
    if tokens[index].text == ")":
        opening = matching(tokens, index)
        head = text_at(tokens, previous(tokens, opening)) if opening >= 0 else "if"
        return head not in ("if", "while", "for", "switch", "constexpr")
    return tokens[index].is_word or tokens[index].text in ("]", ">")
