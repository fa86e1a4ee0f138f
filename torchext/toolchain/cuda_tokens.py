# SPDX-License-Identifier: BSD-3-Clause
"""The tokens of a file of CUDA's C++, and how they nest."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

NAMESPACE = "::torchext::cuda_on_host"  # of what files are translated to
_TOKEN = re.compile(
    r"""
    (?P<space>\\\n|\s+)
  | (?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)
  | (?P<text>(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"
      |(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"|(?:u8|[uUL])?'(?:\\.|[^'\\\n])+')
  | (?P<number>\.?\d(?:'?[\w.]|[eEpP][+-])*)
  | (?P<name>[^\W\d]\w*)
  | (?P<sign><<<|<<=|<<|<=|>=|==|!=|&&|\|\||::|->|\#\#|\S)
    """,
    re.VERBOSE | re.DOTALL,
)
CLOSING = {"(": ")", "[": "]", "{": "}"}
OPENING = {close: open_ for open_, close in CLOSING.items()}
# Names that no expression ends with.
KEYWORDS = frozenset(
    "return case else do throw sizeof co_return and or not goto new delete typename".split()
)


class TranslationError(Exception):
    """What a file has that cannot run on the host, or that is no C++: FILE:LINE: why."""


@dataclass
class Token:
    """A name, a sign, a text, a number, or what stands between.

    A file is the `ahead` and `text` of all, which may be replaced. `>` is a token of its own
    wherever it stands in `>>` or `>>>`.
    """

    kind: str  # space, comment, text, number, name or sign
    text: str
    line: int
    # Which code it belongs to: 0: the file's; n: the replacement of the n-th directive, where that
    # is a macro; -n: the rest of that directive
    part: int = 0
    ahead: str = ""

    @property
    def is_solid(self) -> bool:
        return self.kind not in ("space", "comment") and self.text != ""

    @property
    def is_word(self) -> bool:
        """Whether an expression may end with this name."""
        return self.kind == "name" and self.text not in KEYWORDS


def tokens_of(code: str) -> Iterator[Token]:
    """All of a file's, in its order: their texts are the file."""
    line = 1
    for found in _TOKEN.finditer(code):
        kind = found.lastgroup or "sign"
        kind = "text" if kind == "mark" else kind
        yield Token(kind, found[0], line)
        line += found[0].count("\n")


def mark_directives(tokens: list[Token]) -> None:
    """Say of each token which directive it belongs to."""
    number = 0
    is_first = True  # in its line
    index = 0
    while index < len(tokens):
        token = tokens[index]
        if token.text == "#" and is_first:
            number += 1
            index = _mark_directive(tokens, index, number)
            continue
        is_first = _ends_a_line(token) or is_first and not token.is_solid
        index += 1


def _mark_directive(tokens: list[Token], index: int, number: int) -> int:
    """Mark a directive, and return where it ends."""
    end = index
    while end < len(tokens) and not _ends_a_line(tokens[end]):
        tokens[end].part = -number
        end += 1
    solid = [i for i in range(index, end) if tokens[i].is_solid]
    if len(solid) < 3 or tokens[solid[1]].text != "define":
        return end
    body = solid[2] + 1
    if body < end and tokens[body].text == "(":  # the macro's parameters
        body = 1 + next((i for i in range(body, end) if tokens[i].text == ")"), end - 1)
    for token in tokens[body:end]:
        token.part = number
    return end


def _ends_a_line(token: Token) -> bool:
    return token.kind == "space" and "\n" in token.text and token.text != "\\\n"


def behind(tokens: list[Token], index: int) -> int:
    """The next token of the same code that is no space; the end where there is none."""
    part = tokens[index].part
    for place in range(index + 1, len(tokens)):
        if tokens[place].part == part and tokens[place].is_solid:
            return place
        if part != 0 and tokens[place].part != part:
            break
    return len(tokens)


def previous(tokens: list[Token], index: int) -> int:
    """The last token of the same code before `index` that is no space; -1 where there is none."""
    part = tokens[index].part
    for place in range(index - 1, -1, -1):
        if tokens[place].part == part and tokens[place].is_solid:
            return place
        if part != 0 and tokens[place].part != part:
            break
    return -1


def text_at(tokens: list[Token], index: int) -> str:
    """The text of a token, empty where there is none."""
    return tokens[index].text if 0 <= index < len(tokens) else ""


def matching(tokens: list[Token], index: int) -> int:
    """The bracket that belongs to the one at `index`, of ()[]{}; -1 where none does."""
    opening = tokens[index].text
    step, closing = (1, CLOSING[opening]) if opening in CLOSING else (-1, OPENING[opening])
    part, depth = tokens[index].part, 0
    while 0 <= index < len(tokens):
        if tokens[index].part == part:
            depth += {opening: 1, closing: -1}.get(tokens[index].text, 0)
            if depth == 0:
                return index
        index += step
    return -1


def opener(tokens: list[Token], index: int) -> int:
    """The innermost bracket of ()[]{} that `index` stands in; -1 where it stands in none."""
    place = previous(tokens, index)
    while place >= 0 and tokens[place].text not in CLOSING:
        if tokens[place].text in OPENING:
            place = matching(tokens, place)
            if place < 0:
                return -1
        place = previous(tokens, place)
    return place


def angle_ends(tokens: list[Token], index: int) -> Iterator[int]:
    """Where template arguments may end that the `<` at `index` begins, the likeliest first.

    Another `<` behind a name opens arguments of its own where what follows balances, else it is
    less-than.
    """
    seen: set[tuple[int, int]] = set()

    def read(place: int, depth: int) -> Iterator[int]:
        while place < len(tokens) and (place, depth) not in seen:
            seen.add((place, depth))
            text = tokens[place].text
            if text in CLOSING:
                place = matching(tokens, place)
            if place < 0 or text in OPENING or text in (";", "<<<"):
                return
            if text == ">":
                depth -= 1
                if depth == 0:
                    yield place
                    return
            elif text == "<" and tokens[previous(tokens, place)].is_word:
                yield from read(behind(tokens, place), depth + 1)
            place = behind(tokens, place)

    return read(behind(tokens, index), 1)


def angle_openings(tokens: list[Token], index: int) -> Iterator[int]:
    """Where template arguments may begin that the `>` at `index` ends, the innermost first."""
    place = previous(tokens, index)
    while place >= 0:
        text = tokens[place].text
        if text in OPENING:
            place = matching(tokens, place)
        if place < 0 or text in CLOSING or text == ";":
            return
        before = previous(tokens, place)
        if text == "<" and before >= 0 and tokens[before].is_word:
            if index in angle_ends(tokens, place):
                yield place
        place = before
