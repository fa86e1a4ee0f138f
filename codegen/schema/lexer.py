# SPDX-License-Identifier: BSD-3-Clause
"""Tokens of schemas, and the reader that recursive descent stands on."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<ident>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?j?)
      | (?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
      | (?P<op>->|\.\.\.|[()\[\],.:=?!*|-])""",
    re.VERBOSE | re.ASCII,
)

# Words that the dispatcher's lexer takes for itself; `None` is a type, the others name nothing.
_RESERVED = frozenset(
    "False None True and as assert break class continue def del elif else for global if import in "
    "is not or pass raise return while with".split()
)


class SchemaError(Exception):
    """A schema that cannot be read: what is wrong, and the offset of the first wrong character."""

    def __init__(self, offset: int, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.offset, self.message, self.hint = offset, message, hint


@dataclass(frozen=True)
class Token:
    kind: str
    text: str
    offset: int


def tokenize(text: str) -> list[Token]:
    tokens, offset = [], 0
    while offset < len(text):
        match = _TOKEN.match(text, offset)
        if not match:
            raise SchemaError(offset, f"unexpected character {text[offset]!r} in schema")
        if match.lastgroup != "space":
            tokens.append(Token(match.lastgroup or "", match.group(), offset))
        offset = match.end()
    return [*tokens, Token("end", "", len(text.rstrip()))]


_Item = TypeVar("_Item")


class TokenReader:
    """A place in the tokens of one schema, and the steps that every rule is made of."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens, self.index = text, tokenize(text), 0

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    def fail(
        self, message: str, hint: str | None = None, token: Token | None = None
    ) -> SchemaError:
        return SchemaError((token or self.token).offset, message, hint)

    def next(self) -> Token:
        token = self.token
        self.index += token.kind != "end"
        return token

    def accept(self, text: str) -> bool:
        found = self.token.kind == "op" and self.token.text == text
        self.index += found
        return found

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise self.fail(f"expected '{text}' in schema, got {self.describe()}")

    def describe(self) -> str:
        return "the end" if self.token.kind == "end" else f"'{self.token.text}'"

    def ident(self, what: str) -> str:
        is_reserved = self.token.text in _RESERVED and what != "a type"
        if self.token.kind != "ident" or is_reserved:
            raise self.fail(f"expected {what} in schema, got {self.describe()}")
        return self.next().text

    def end(self) -> None:
        if self.token.kind != "end":
            raise self.fail(f"unexpected '{self.token.text}' after the end of the schema")

    def items(self, close: str, item: Callable[[], _Item]) -> list[_Item]:
        """`item, item, ... close`, the opening bracket read already."""
        found: list[_Item] = []
        if not self.accept(close):
            found.append(item())
            while self.accept(","):
                found.append(item())
            if not self.accept(close):
                raise self.fail(f"expected ',' or '{close}' in schema, got {self.describe()}")
        return found
