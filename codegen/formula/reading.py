# SPDX-License-Identifier: BSD-3-Clause
"""A formula as it is read, once: the values that it names, what it calls, and what follows from
other names in their places.

A formula is a C++ expression. Only its tokens are looked at: enough to know what has to be saved.
The C++ compiler judges the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from ..cpp.names import KEYWORDS
from .tokens import local_names, template_end, tokens_of

_REMEMBERED = 256  # formulas: those of an entry are asked again and again
_MEMBER = (".", "->")
_HELPERS = ["torchext", "::", "derivatives", "::"]  # a namespace whose functions need no name of it
_OPENING, _CLOSING = ("(", "[", "{"), (")", "]", "}")


@dataclass(frozen=True)
class Name:
    """A free identifier: not a member, not a function, not part of a qualified name."""

    text: str
    offset: int


@dataclass(frozen=True)
class QualifiedName:
    """A name with its namespaces, and how many arguments it is called with; None where it is not
    called, or their number cannot be told."""

    namespaces: tuple[str, ...]
    name: str
    offset: int
    arguments: int | None


@lru_cache(_REMEMBERED)
def read(text: str) -> Reading:
    """The formula that is a text."""
    return Reading(text)


class Reading:
    """What a formula says."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens_of(text)
        self.words = [token.group() for token in self.tokens]

    def _around(self, index: int) -> tuple[str, str]:
        """The tokens before and after one; "" where there is none."""
        words = self.words
        return words[index - 1] if index else "", words[index + 1] if index + 1 < len(words) else ""

    def _is_name(self, index: int) -> bool:
        return self.tokens[index].lastgroup == "name"

    @cached_property
    def free(self) -> tuple[Name, ...]:
        """The identifiers that are values of their own; template arguments are none."""
        found: list[Name] = []
        end = 0  # of the template arguments that were read last
        for index, token in enumerate(self.tokens):
            if not self._is_name(index) or index < end:
                continue
            before, after = self._around(index)
            if after == "<" and (template := template_end(self.tokens, index + 1)):
                end = template
            elif before not in (*_MEMBER, "::") and after not in ("(", "::"):
                found.append(Name(token.group(), token.start()))
        return tuple(found)

    @cached_property
    def names(self) -> frozenset[str]:
        """The same by their names."""
        return frozenset(name.text for name in self.free)

    @cached_property
    def writes(self) -> bool:
        """Whether it calls what writes to its arguments, by the names that PyTorch gives those."""
        names = (i for i in range(len(self.words)) if self._is_name(i))
        return any(
            self.words[i].endswith(("_", "_out")) and self._around(i)[1] == "(" for i in names
        )

    def count(self, name: str) -> int:
        """How often a value is named."""
        return sum(found.text == name for found in self.free)

    @cached_property
    def local(self) -> frozenset[str]:
        """The names that lambdas in it declare."""
        return frozenset(local_names(self.tokens))

    @cached_property
    def grads(self) -> tuple[tuple[str, int], ...]:
        """What stands in the brackets of every `grads[i]`, with its offset."""
        return tuple(self._indices("grads"))

    @cached_property
    def masks(self) -> tuple[tuple[str, int], ...]:
        """The same of every `grad_input_mask[i]`."""
        return tuple(self._indices("grad_input_mask"))

    def _indices(self, name: str) -> Iterator[tuple[str, int]]:
        for index, token in enumerate(self.tokens):
            if self.words[index : index + 2] == [name, "["]:
                start = self.tokens[index + 1].end()
                closing = (t.start() for t in self.tokens[index + 2 :] if t.group() == "]")
                if (end := next(closing, None)) is not None:
                    yield self.text[start:end].strip(), token.start()

    @cached_property
    def functions(self) -> frozenset[str]:
        """The functions that it calls without a namespace, templates and helpers included."""
        found = set()
        for index in range(len(self.tokens) - 1):
            before, after = self._around(index)
            is_helper = self.words[max(index - 4, 0) : index] == _HELPERS
            is_bare = before not in (*_MEMBER, "::") or is_helper
            if self._is_name(index) and after in ("(", "<") and is_bare:
                found.add(self.words[index])
        return frozenset(found)

    @cached_property
    def calls(self) -> tuple[Name, ...]:
        """The functions that it calls without a namespace and does not declare itself."""
        own = self.local | KEYWORDS
        return tuple(
            Name(token.group(), token.start())
            for index, token in enumerate(self.tokens)
            if self._is_name(index) and self._around(index)[1] == "("
            if self._around(index)[0] not in (*_MEMBER, "::") and token.group() not in own
        )

    @cached_property
    def qualified(self) -> tuple[QualifiedName, ...]:
        """The names that have namespaces."""
        return tuple(self._qualified())

    def _qualified(self) -> Iterator[QualifiedName]:
        tokens, index = self.tokens, 0
        while index < len(tokens):
            token, before = tokens[index], self._around(index)[0]
            index += 1
            if token.lastgroup != "name" or before in _MEMBER:
                continue
            parts = [token.group()]
            while index + 1 < len(tokens) and self.words[index] == "::":
                if not self._is_name(index + 1):
                    break
                parts.append(self.words[index + 1])
                index += 2
            if len(parts) > 1:
                given = self._given(index)
                yield QualifiedName(tuple(parts[:-1]), parts[-1], token.start(), given)

    def _given(self, index: int) -> int | None:
        """How many arguments stand in the parentheses that begin at the index; None where there are
        none, or where only names that are types would tell a comma from one of a template."""
        if self.words[index : index + 1] != ["("]:
            return None
        level, commas, less = 0, 0, False
        start = index
        while index < len(self.tokens):
            char = self.words[index]
            level += (char in _OPENING) - (char in _CLOSING)
            if level == 0:
                return commas + 1 if index > start + 1 else 0
            commas += level == 1 and char == ","
            if less and char == ">":
                return None
            end = template_end(self.tokens, index) if char == "<" else 0
            less = less or (char == "<" and end == 0)
            index = end or index + 1
        return None

    @cached_property
    def by_element(self) -> frozenset[str]:
        """The names of which it reads the i-th element."""
        count = len(self.words)
        return frozenset(
            self.words[index]
            for index in range(count - 3)
            if self._is_name(index) and self.words[index + 1 : index + 4] == ["[", "i", "]"]
        )

    def wrapped(self, name: str) -> list[set[int]]:
        """The gradients that each `wrap_opt_if(name, grad_input_mask[i] || ...)` is for."""
        found, begin = [], ["wrap_opt_if", "(", name, ","]
        for index in range(len(self.words)):
            if self.words[index : index + len(begin)] == begin:
                indices, end = self._masks_from(index + len(begin))
                if indices and self.words[end : end + 1] == [")"]:
                    found.append(indices)
        return found

    def _masks_from(self, index: int) -> tuple[set[int], int]:
        """The gradients of the `grad_input_mask[i] || ...` that begins at the index, and where it
        ends."""
        found: set[int] = set()
        while self.words[index : index + 2] == ["grad_input_mask", "["]:
            number, closing = (*self.words[index + 2 : index + 4], "", "")[:2]
            if not number.isdigit() or closing != "]":
                break
            found.add(int(number))
            index += 4
            if self.words[index : index + 2] != ["|", "|"]:
                break
            index += 2
        return found, index

    def members_of(self, namespace: str) -> set[str]:
        """The names that it takes from a namespace."""
        return {
            self.words[index + 2]
            for index in range(len(self.tokens) - 2)
            if self.words[index : index + 2] == [namespace, "::"] and self._is_name(index + 2)
        }

    def renamed(self, names: Mapping[str, str]) -> str:
        """The text with other names, or expressions, in the places of free identifiers."""
        text = self.text
        for name in reversed(self.free):
            if name.text in names:
                end = name.offset + len(name.text)
                text = text[: name.offset] + names[name.text] + text[end:]
        return text

    def rooted(self, namespace: str) -> str:
        """The text with `namespace::` made `::namespace::`, so that no inner scope hides it."""
        text = self.text
        for index in reversed(range(len(self.tokens))):
            if self.words[index : index + 2] == [namespace, "::"] and self._is_name(index):
                if self._around(index)[0] not in (*_MEMBER, "::"):
                    start = self.tokens[index].start()
                    text = f"{text[:start]}::{text[start:]}"
        return text
