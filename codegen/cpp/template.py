# SPDX-License-Identifier: BSD-3-Clause
"""Text with `$name` holes: no logic, no other syntax, and nothing forgotten.

A hole alone on its line takes a list of lines (or text), each at the hole's indentation; an empty
list drops the line. A hole inside a line takes text, or a list that is joined by ", ". A value
without a hole and a hole without a value are both errors. C++ braces stay plain.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from functools import lru_cache

_HOLE = re.compile(r"\$(\w+)")
_ALONE = re.compile(r"^([ ]*)\$(\w+)$")
_PARSED = 1000  # templates: more than there are

Value = str | Sequence[str]


def fill(template: str, **values: Value) -> str:
    """The template's text with every hole filled."""
    lines, holes = _parsed(template)
    if values.keys() != holes:
        missing, unused = sorted(holes - values.keys()), sorted(values.keys() - holes)
        what = "no value for the hole $" if missing else "no hole for "
        raise KeyError(what + ", ".join(missing or unused))
    filled: list[str] = []
    for indent, parts in lines:
        if indent is None:
            texts = [_inline(values[text]) if is_hole else text for is_hole, text in parts]
            filled.append("".join(texts))
            continue
        value = values[parts[0][1]]
        for text in [value] if isinstance(value, str) else value:
            filled += [indent + part if part else "" for part in text.split("\n")]
    return "\n".join(filled) + "\n"


def _inline(value: Value) -> str:
    return value if isinstance(value, str) else ", ".join(value)


# Some lines: the indentation of a hole that is alone on its line, or None; the texts, and with True
# the names of holes.
_Lines = tuple[str | None, tuple[tuple[bool, str], ...]]


@lru_cache(_PARSED)
def _parsed(template: str) -> tuple[tuple[_Lines, ...], frozenset[str]]:
    """A template between the holes that are alone, and the names of all holes."""
    found: list[_Lines] = []
    lines = template.strip("\n").split("\n")
    for is_alone, group in itertools.groupby(lines, key=lambda line: bool(_ALONE.match(line))):
        if is_alone:
            alone = map(_ALONE.match, group)
            found += [(match.group(1), ((True, match.group(2)),)) for match in alone if match]
        else:
            parts = enumerate(_HOLE.split("\n".join(group)))
            found.append((None, tuple((i % 2 == 1, part) for i, part in parts)))
    return tuple(found), frozenset(p for _, parts in found for is_hole, p in parts if is_hole)
