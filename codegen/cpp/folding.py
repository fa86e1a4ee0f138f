# SPDX-License-Identifier: BSD-3-Clause
"""Breaks long lines of generated C++ the way the project's .clang-format does."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

WIDTH = 100
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'')
_LIST = re.compile(r"[({](?=[^)}])")
_BRACKET = re.compile(rf"{_STRING.pattern}|->|[()\[\]{{}}<>,]")
_INDENT = "    "


def fold(text: str) -> str:
    """The text with every line that is too long broken at its outermost argument list."""
    lines = text.split("\n")
    return "\n".join(
        [
            line if len(line) <= WIDTH else _fold_line(line, before.startswith("#line"))
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


def _fold_line(line: str, is_formula: bool = False) -> str:
    if line.startswith("#"):
        return line
    if line.lstrip().startswith("//"):
        return _fold_comment(line)
    indent = line[: len(line) - len(line.lstrip())]
    if is_formula or " ? " in line:  # as its author wrote it, all on the line of the spec
        return f"{indent}// clang-format off\n{line}\n{indent}// clang-format on"
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
    opening = _LIST.search(_STRING.sub(lambda match: "_" * len(match.group()), line))
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
