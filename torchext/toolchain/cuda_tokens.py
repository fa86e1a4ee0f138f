# SPDX-License-Identifier: BSD-3-Clause
"""The words of a file of CUDA's C++, and how they nest."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

NAMESPACE = "::torchext::cuda_on_host"  # of what files are translated to
_TOKEN = re.compile(
    r"""
    (?P<space>\s+|\\\n)
  | (?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)
  | (?P<text>(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"
      |(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"|(?:u8|[uUL])?'(?:\\.|[^'\\\n])+')
  | (?P<number>\.?\d(?:'?[\w.]|[eEpP][+-])*)
  | (?P<name>[^\W\d]\w*)
  | (?P<sign><<<|>>>|::|->|\S)
    """,
    re.VERBOSE | re.DOTALL,
)


class TranslationError(Exception):
    """What a file has that cannot run on the host, or that is no C++: FILE:LINE: why."""


@dataclass
class Token:
    """A word, a sign, a text, a number, or what stands between; `text` may be replaced."""

    kind: str  # space, comment, text, number, name or sign
    text: str
    line: int

    @property
    def is_solid(self) -> bool:
        return self.kind not in ("space", "comment") and self.text != ""


def tokens_of(code: str) -> Iterator[Token]:
    """All of a file's, in its order: their texts are the file."""
    line = 1
    for found in _TOKEN.finditer(code):
        kind = found.lastgroup or "sign"
        kind = "text" if kind == "mark" else kind
        yield Token(kind, found[0], line)
        line += found[0].count("\n")


def following(tokens: list[Token], index: int) -> int:
    """The next token that is no space, from `index` on; the end where there is none."""
    while index < len(tokens) and not tokens[index].is_solid:
        index += 1
    return index


def preceding(tokens: list[Token], index: int) -> int:
    """The last token that is no space, up to `index`; -1 where there is none."""
    while index >= 0 and not tokens[index].is_solid:
        index -= 1
    return index


def matching(tokens: list[Token], index: int, step: int) -> int:
    """The bracket that belongs to the one at `index`, forward or backward; -1 where none does."""
    pairs = {"(": ")", "[": "]", "{": "}", "<": ">"}
    if step < 0:
        pairs = {close: open_ for open_, close in pairs.items()}
    opening, closing = tokens[index].text, pairs[tokens[index].text]
    depth = 0
    while 0 <= index < len(tokens):
        text = tokens[index].text
        if text == opening:
            depth += 1
        elif text == closing or (closing == ">" and text == ">>>"):
            depth -= 1
        if depth == 0:
            return index
        index += step
    return -1


def opening_angle(tokens: list[Token], index: int) -> int:
    """The `<` of template arguments that end at `index`."""
    depth = 0
    while index >= 0:
        text = tokens[index].text
        if text in (")", "]", "}"):
            index = matching(tokens, index, -1)
        elif text in (">", ">>>"):
            depth += len(text)
        elif text == "<":
            depth -= 1
            if depth == 0:
                return index
        elif text == ";":
            return -1
        index -= 1
    return -1
