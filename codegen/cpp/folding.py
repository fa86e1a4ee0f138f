# SPDX-License-Identifier: BSD-3-Clause
"""Breaks long lines of generated C++ the way the project's .clang-format does."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

WIDTH = 100
# What is no code of its own: a text, a character, a comment.
_OPAQUE = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|/\*.*?\*/')
_ONE_STRING = re.compile(r' *"(?P<text>(?:[^"\\]|\\.)*)"(?P<tail>[,);]*)')
_LIST = re.compile(r"[({](?=[^)}])")
_BRACKET = re.compile(rf"{_OPAQUE.pattern}|->|[()\[\]{{}}<>,]")
_INDENT = "    "
_DIRECTIVE = "#line "
# Words between which a line may be broken: a space in a string or comment is none, a quote in a
# number or comment opens none.
_WORDS = re.compile(rf"(?:(?<!\w)\.?\d(?:'?\w)*|{_OPAQUE.pattern}|\S)+")
# Macros, in whose arguments no directive may stand, and raw strings, in which a space is one.
_UNBROKEN = re.compile(r"\b[A-Z][A-Z0-9_]{3,}\s*\(|R\"")


def fold(text: str) -> str:
    """The text with every line that is too long broken: at its outermost argument list, or, where
    it is a formula, between words, each part on the formula's line of its spec."""
    lines = text.split("\n")
    return "\n".join(
        [
            line if len(line) <= WIDTH else _fold_line(line, before)
            for before, line in zip(["", *lines], lines)
        ]
    )


def packed(parts: Iterable[str]) -> str:
    """Parts of a list between its brackets, as many in a line as there is room for."""
    lines = [""]
    for part in parts:
        line = f"{lines[-1]} {part}," if lines[-1] else f"{_INDENT}{part},"
        if len(line) <= WIDTH:
            lines[-1] = line
        else:
            lines.append(f"{_INDENT}{part},")
    return "\n".join(["", *lines])[:-1]


def _fold_line(line: str, before: str = "") -> str:
    if line.startswith("#"):
        return line
    if line.lstrip().startswith("//"):
        return _fold_comment(line)
    indent = line[: len(line) - len(line.lstrip())]
    if before.startswith(_DIRECTIVE):
        return line if _UNBROKEN.search(line) else _fold_formula(line, indent, before)
    if " ? " in line:
        return _fold_words(line)
    if match := _ONE_STRING.fullmatch(line):
        return _fold_string(indent, match["text"], match["tail"])
    if (assigned := _after_assignment(line, indent)) is not None:
        return assigned
    if line.startswith("struct ") and " : " in line:
        name, _, base = line.partition(" : ")
        return f"{name}\n{fold(f'{_INDENT}: {base}')}"
    split = _argument_list(line)
    if split is None:
        return line
    head, arguments, tail = split
    together = f"{indent}{_INDENT}{', '.join(arguments)}{tail}"
    if len(together) <= WIDTH:
        return f"{head}\n{together}"
    lines = [fold(f"{indent}{_INDENT}{argument},") for argument in arguments]
    return "\n".join([head, *lines])[:-1] + tail


def _fold_formula(line: str, indent: str, directive: str) -> str:
    if (assigned := _after_assignment(line, indent)) is not None:
        return assigned.replace("\n", f"\n{directive}\n")
    return _fold_words(line, f"\n{directive}")


def _fold_words(line: str, directive: str = "") -> str:
    """A line that goes on where it is full, with a directive between."""
    indent = line[: len(line) - len(line.lstrip())]
    lines = [""]
    for word in _WORDS.findall(line):
        longer = f"{lines[-1]} {word}" if lines[-1] else f"{indent}{word}"
        if lines[-1] and len(longer) > WIDTH:
            longer = f"{indent}{_INDENT}{word}"
            lines.append("")
        lines[-1] = longer
    return f"{directive}\n".join(lines)


def _fold_string(indent: str, text: str, tail: str) -> str:
    """A string as several that the compiler joins."""
    parts = [""]
    for word in re.split(r"(?<= )", text):
        if parts[-1] and len(f'{indent}"{parts[-1]}{word}"{tail}') > WIDTH:
            parts.append("")
        parts[-1] += word
    return "\n".join(f'{indent}"{part}"' for part in parts) + tail


def _fold_comment(line: str) -> str:
    """A comment whose words go on in the next line."""
    begin = line[: line.index("//") + 2]
    words = {"break_long_words": False, "break_on_hyphens": False}
    lines = textwrap.wrap(line, WIDTH, subsequent_indent=f"{begin}     ", **words)
    return "\n".join(lines)


def _after_assignment(line: str, indent: str) -> str | None:
    """`name =`, and its value on the next line, where that is enough."""
    name, equals, value = line.partition(" = ")
    if not equals or "(" in name or value.startswith("{"):
        return None
    rest = f"{indent}{_INDENT}{value}"
    return f"{name} =\n{rest}" if len(rest) <= WIDTH else None


def _argument_list(line: str) -> tuple[str, list[str], str] | None:
    """`head(`, the arguments, `)tail` of the first argument or brace list that is not empty."""
    opening = _LIST.search(_OPAQUE.sub(lambda match: "_" * len(match.group()), line))
    if opening is None:
        return None
    begin, depth = opening.end(), 1
    arguments: list[str] = []
    for match in _BRACKET.finditer(line, begin):
        char = match.group()
        if char == "," and depth == 1:
            arguments.append(line[begin : match.start()].strip())
            begin = match.end()
        elif char in ("(", "[", "{", "<"):
            depth += 1
        elif char in (")", "]", "}", ">"):
            depth -= 1
            if depth == 0:
                arguments.append(line[begin : match.start()].strip())
                return line[: opening.end()], arguments, line[match.start() :]
    return None
