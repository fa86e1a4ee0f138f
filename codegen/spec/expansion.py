# SPDX-License-Identifier: BSD-3-Clause
"""The text of a native_functions.yaml in upstream's form, with its comments: `codegen expand`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from ..errors import Errors
from .short_forms import long_form
from .yaml_nodes import Node, kind
from .yaml_reader import YamlReader

# What YAML would read as something else than the text that it is.
_ALIAS = re.compile(r"\s*:\s*\*\S+\s*")
_NOT_PLAIN = re.compile(r"""[\s{}\[\]&*!|>'"%@`,#?:-]|.*(: | #|:$|\s$)""", re.DOTALL)


def expanded(path: Path, name: str, errors: Errors) -> str:
    """The file with every entry in upstream's form; an entry that is so already stays as it is."""
    reader = YamlReader(path, name, errors)
    lines, found, done = reader.source.lines, [], 0
    for entry in reader.entries() or ():
        entries = long_form(reader, entry)
        if len(entries) == 1 and entries[0] is entry:
            continue
        block = _Block(lines, entry)
        found += lines[done : block.first]
        found += [line for made in entries for line in (*block.text(made), "")][:-1]
        done = block.last + 1
    return "\n".join([*found, *lines[done:]])


class _Block:
    """The lines of an entry, and what its keys take of them."""

    def __init__(self, lines: list[str], entry: Node) -> None:
        self.lines, self.entry = lines, entry
        self.first = entry.start_mark.line
        self.dash = lines[self.first].find("-")
        end = entry.end_mark.line  # where what follows begins, or a bracket closes
        self.last = end if entry.flow_style else self._last(end, self.dash)
        starts = [key.start_mark.line for key, _ in entry.value]
        self.is_block = not entry.flow_style and len(set(starts)) == len(starts)
        self._printed: set[int] = set()

    def _last(self, end: int, column: int) -> int:
        """The last line in front of `end` that is no comment for what follows."""
        last = min(end, len(self.lines)) - 1
        while last > self.first and self._is_between(self.lines[last], column):
            last -= 1
        return last

    @staticmethod
    def _is_between(line: str, column: int) -> bool:
        text = line.lstrip()
        return not text or (text[0] == "#" and len(line) - len(text) <= column)

    def text(self, made: Node) -> Iterator[str]:
        """The lines of an entry that is made of this one."""
        indent, is_first = " " * self.dash, True
        for key, value in made.value:
            comments, lines = self._of_pair(key, value)
            yield from (f"{indent}{'' if is_first else '  '}{line}" for line in comments)
            yield f"{indent}{'- ' if is_first else '  '}{lines[0]}"
            yield from (f"{indent}  {line}" if line else "" for line in lines[1:])
            is_first = False

    def _of_pair(self, key: Node, value: Node) -> tuple[list[str], list[str]]:
        """The comments of a key, and its lines, without the entry's indentation."""
        index = self._source(key)
        if index is None:
            return [], list(_written(key.value, value))
        is_new = self.entry.value[index][1] is not value
        if not self.is_block:
            text = [f"{key.value}: {self._between(value)}"] if not is_new else []
            return [], text or list(_written(key.value, value))
        comments = self._comments(index)
        if is_new:
            return comments, list(_written(key.value, value))
        start, last = key.start_mark.line, self.last
        if index + 1 < len(self.entry.value):
            following = self.entry.value[index + 1][0]
            last = self._last(following.start_mark.line, self.dash + 2)
        return comments, [
            line[self.dash + 2 :] for line in self.lines[start : max(last, start) + 1]
        ]

    def _source(self, key: Node) -> int | None:
        """Which of the entry's keys one is, or is made of."""
        for index, (own, _) in enumerate(self.entry.value):
            is_made = own.start_mark.line == key.start_mark.line and own.value == "forms"
            if own is key or (is_made and key.value in ("structured_delegate", "autogen")):
                return index
        return None

    def _comments(self, index: int) -> list[str]:
        """The comments above a key, and, where its value is written anew, behind it; once."""
        key, value = self.entry.value[index]
        start = above = key.start_mark.line
        if start in self._printed:
            return []
        self._printed.add(start)
        while above - 1 > self.first and self._is_between(self.lines[above - 1], self.dash + 2):
            above -= 1
        found = [line.strip() for line in self.lines[above:start] if line.strip()]
        if value.start_mark.index < key.start_mark.index:  # its anchor's: here is an alias
            behind = _ALIAS.sub("", self.lines[start][key.end_mark.column :])
        else:
            behind = self.lines[start][value.end_mark.column :].strip()
        is_kept = key.value not in ("forms", "dispatch", "layout", "autogen")
        is_one_line = value.end_mark.line <= start and behind.startswith("#")
        return found if is_kept or not is_one_line else [*found, behind]

    def _between(self, value: Node) -> str:
        """The text of a value that stands beside others on its line."""
        start, end = value.start_mark, value.end_mark
        parts = self.lines[start.line : end.line + 1]
        parts[-1] = parts[-1][: end.column] if end.line < len(self.lines) else parts[-1]
        parts[0] = parts[0][start.column :]
        return " ".join(part.strip() for part in parts).strip()


def _written(key: str, value: Node) -> Iterator[str]:
    """The lines of a key whose value stands in no file."""
    if kind(value) == "a map":
        yield f"{key}:"
        yield from (f"  {_plain(k.value)}: {_plain(v.value)}" for k, v in value.value)
    elif kind(value) == "a list":
        items = [_plain(item.value) for item in value.value]
        yield f"{key}: {items[0] if len(items) == 1 else '[' + ', '.join(items) + ']'}"
    else:
        yield f"{key}: {_plain(value.value)}"


def _plain(text: str) -> str:
    return json.dumps(text, ensure_ascii=False) if _NOT_PLAIN.match(text) else text
