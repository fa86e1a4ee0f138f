# SPDX-License-Identifier: BSD-3-Clause
"""Whether a formula reads as one C++ expression, and how many values it gives.

A reader of just enough of C++'s grammar to refuse what no expression can be; types and names are
left to the compiler, and the body of a lambda is looked at for balance only.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

from ..cpp.literals import why_no_literal
from .tokens import template_end, tokens_of

_CLOSING = {"(": ")", "[": "]", "{": "}"}
_PREFIX = ("+", "-", "*", "&", "!", "~", "not", "compl")
_BINARY = (
    "&&", "||", "==", "!=", "<=", ">=", "<<", ">>", "+", "-", "*", "/", "%", "&", "|", "^", "<",
    ">", "and", "or", "xor", "bitand", "bitor", "not_eq",
)  # fmt: skip
_STATEMENTS = frozenset(
    "break case catch continue do else for goto if return switch throw try while".split()
)
# Words of types that stand before one another, and before what they are applied to.
_SPECIFIERS = frozenset(
    "alignof char const double float int long new short signed sizeof typename unsigned".split()
)
_FOREIGN = re.compile(r"[^\x20-\x7e]|[$@`#\\]")
_TUPLE, _MAKE_TUPLE = "tuple", "make_tuple"
# What can follow an expression, and why it must not.
_LEFT = {",": "',' outside of parentheses", ";": "';' ends a statement", "=": "'=' assigns"}


class _NoExpression(Exception):
    """Why a text is no expression."""


@dataclass(frozen=True)
class Mistake:
    """Why a text is no expression, and at which of its characters that shows."""

    why: str
    offset: int


def mistake(text: str) -> Mistake | None:
    """Why a text is no C++ expression; None where it may be one."""
    reader = _Reader(text)
    try:
        reader.whole()
    except _NoExpression as error:
        return Mistake(str(error), reader.offset)
    except RecursionError:
        return Mistake("it is nested too deeply", 0)
    return None


def value_count(text: str) -> int | None:
    """How many values an expression gives, as far as its tokens tell."""
    try:
        return _Reader(text).whole()
    except (_NoExpression, RecursionError):
        return None


class _Reader:
    """Reads tokens from left to right. Rules return how many values they give, None: unknown."""

    def __init__(self, text: str) -> None:
        self.tokens, self.length = tokens_of(text), len(text)
        self.index = 0

    @property
    def offset(self) -> int:
        """Where the next token stands."""
        return self.tokens[self.index].start() if self.index < len(self.tokens) else self.length

    def whole(self) -> int | None:
        for self.index, token in enumerate(self.tokens):
            _check_characters(token, self.tokens[self.index + 1 : self.index + 2])
        self.index = 0
        count = self.expression()
        if (left := self.peek()) == "":
            return count
        if left in _CLOSING.values():
            raise _NoExpression(f"'{left}' closes nothing")
        raise _NoExpression(_LEFT.get(left, f"an operator is missing before '{left}'"))

    def peek(self) -> str:
        return self.tokens[self.index].group() if self.index < len(self.tokens) else ""

    def kind(self) -> str | None:
        return self.tokens[self.index].lastgroup if self.index < len(self.tokens) else None

    def accept(self, text: str) -> bool:
        found = self.peek() == text
        self.index += found
        return found

    def expression(self) -> int | None:
        count = self.binary()
        if not self.accept("?"):
            return count
        first = self.expression()
        if not self.accept(":"):
            raise _NoExpression("'?' without ':'")
        known = {first, self.expression()} - {None}
        return known.pop() if len(known) == 1 else None

    def binary(self) -> int | None:
        count = self.unary()
        while operator := self.operator():
            self.index += 1 if operator[0].isalpha() else len(operator)
            self.unary()
            count = 1
        return count

    def operator(self) -> str:
        """The binary operator that comes next; those of two characters are two tokens."""
        if self.index + 1 < len(self.tokens):
            first, second = self.tokens[self.index : self.index + 2]
            pair = first.group() + second.group()
            if first.end() == second.start() and pair in _BINARY:
                return pair
        return self.peek() if self.peek() in _BINARY else ""

    def unary(self) -> int | None:
        if (char := self.peek()) in _PREFIX:
            self.index += 1
            self.unary()
            return None if char == "*" else 1
        return self.postfix()

    def postfix(self) -> int | None:
        start = self.index
        count = self.primary()
        callee = self.index > start and self.tokens[self.index - 1].group()
        while (char := self.peek()) in ("(", "[", ".", "->") or (char == "{" and callee):
            self.index += 1
            if char in (".", "->"):
                self.accept("template")
                if self.kind() != "name":
                    raise _NoExpression(f"a name is missing behind '{char}'")
                self.name()
                count = None
            elif char == "[":
                self.expression()
                self.close("]")
                count = 1 if callee == "grads" else None
            else:
                end = self.index - 1
                given = self.items(_CLOSING[char])
                count = self.tuple_size(start, end, given) if callee else None
            callee = ""
        return count

    def tuple_size(self, start: int, end: int, given: int) -> int | None:
        """How many values the tuple has that a call of these tokens makes; None: it is another."""
        if (last := self.tokens[end - 1].group()) == _MAKE_TUPLE:
            return given
        words = [token.group() for token in self.tokens[start : end if last == ">" else start]]
        if _TUPLE not in words[:4]:
            return None
        levels = itertools.accumulate({"<": 1, ">": -1}.get(word, 0) for word in words)
        return 1 + sum(word == "," and level == 1 for word, level in zip(words, levels))

    def primary(self) -> int | None:
        """A number, text, name, parenthesis, lambda or list in braces."""
        char, kind = self.peek(), self.kind()
        if kind == "number":
            self.index += 1
            return 1
        if kind == "string":
            while self.kind() == "string":
                self.index += 1
            return 1
        if kind == "name" or char == "::":
            if char in _STATEMENTS:
                raise _NoExpression(f"'{char}' begins a statement")
            self.name()
            return 1
        if char == "(":
            return self.parenthesis()
        if char == "[":
            self.lambda_()
            return None
        if char == "{":
            self.index += 1
            return self.items("}")
        where = f"before '{char}'" if char else "at the end"
        raise _NoExpression(f"an operand is missing {where}")

    def name(self) -> None:
        """A name with its namespaces and template arguments."""
        self.accept("::")
        last = ""
        while self.kind() == "name":
            last = self.peek()
            self.index += 1
            if self.peek() == "<" and (end := template_end(self.tokens, self.index)):
                self.index = end
            if last in _SPECIFIERS and (self.kind() == "name"):
                continue
            if not self.accept("::"):
                return
        raise _NoExpression(f"a name is missing behind '{last or '::'}'")

    def parenthesis(self) -> int | None:
        """`(expression)`, or the cast `(type) operand`."""
        start = self.index
        self.index += 1
        try:
            count = self.expression()
            while self.accept(","):
                self.expression()
                count = None
            self.close(")")
        except _NoExpression:
            failed, self.index = self.index, start
            if not self.cast_type():
                self.index = failed
                raise
            self.unary()
            return None
        is_word = self.kind() in ("name", "number", "string") and not self.operator()
        if is_word or self.peek() in ("!", "~"):
            end, self.index = self.index, start
            if not self.cast_type() or self.index != end:
                self.index = end
                return count  # the caller meets the operand
            self.unary()
            return None
        return count

    def cast_type(self) -> bool:
        """Step over `(type)`, where it can be one."""
        end = self.index + 1
        while end < len(self.tokens) and self.tokens[end].group() != ")":
            token, before = self.tokens[end], self.tokens[end - 1].group()
            if token.lastgroup != "name" and token.group() not in ("::", "<", ">", ",", "*", "&"):
                return False
            if before in ("*", "&") and token.group() not in ("*", "&", ">", ",", "const"):
                return False
            end += 1
        is_type = self.index + 1 < end < len(self.tokens)
        self.index = end + 1 if is_type else self.index
        return is_type

    def lambda_(self) -> None:
        """`[captures](parameters) -> type { body }`, for its brackets."""
        self.balanced()
        while self.peek() not in ("{", ""):
            if self.peek() == "(":
                self.balanced()
            elif self.peek() == "<":
                self.angles()
            elif self.peek() in (")", "]", "}", ";", ",", "?"):
                break
            else:
                self.index += 1
        if self.peek() != "{":
            raise _NoExpression("'[' begins a lambda that has no body")
        self.balanced()

    def angles(self) -> None:
        """Step over template parameters or arguments."""
        level = 0
        while char := self.peek():
            self.index += 1
            level += {"<": 1, ">": -1}.get(char, 0)
            if level == 0:
                return

    def balanced(self) -> None:
        """Step over a bracket and all that it holds."""
        closing: list[str] = []
        while char := self.peek():
            self.index += 1
            if char in _CLOSING:
                closing.append(_CLOSING[char])
            elif char in _CLOSING.values() and char != closing.pop():
                raise _NoExpression(f"'{char}' closes nothing")
            if not closing:
                return
        raise _NoExpression(f"'{closing[-1]}' is missing")

    def items(self, close: str) -> int:
        """`expression, expression, ... close`: how many there are."""
        count = 0
        if self.accept(close):
            return count
        while True:
            self.expression()
            count += 1
            if not self.accept(","):
                self.close(close)
                return count

    def close(self, char: str) -> None:
        if not self.accept(char):
            other = self.peek()
            if other and other not in _CLOSING.values():
                raise _NoExpression(f"an operator is missing before '{other}'")
            raise _NoExpression(f"'{char}' is missing")


def _check_characters(token: re.Match[str], rest: list[re.Match[str]]) -> None:
    """What would end the text of a formula early, and what C++ has no use for."""
    char = token.group()
    is_literal = token.lastgroup in ("number", "string") or char in ("'", '"')
    if is_literal and (why := why_no_literal(char)) is not None:
        raise _NoExpression(why)
    after = rest[0].group() if rest and rest[0].start() == token.end() else ""
    if char == "/" and after in ("/", "*"):
        what = "begins a comment" if after == "/" else "begins a comment that has no end"
        raise _NoExpression(f"'/{after}' {what}")
    if token.lastgroup == "op" and _FOREIGN.search(char):
        raise _NoExpression(f"{char!r} is no character of C++")
