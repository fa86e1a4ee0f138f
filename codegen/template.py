# SPDX-License-Identifier: BSD-3-Clause
"""Text with `$name` holes: no logic, no other syntax, and nothing forgotten.

A hole alone on its line takes a list of lines (or text), each at the hole's indentation; an empty
list drops the line. A hole inside a line takes text, or a list that is joined by ", ". A value
without a hole and a hole without a value are both errors. C++ braces stay plain.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_HOLE = re.compile(r"\$(\w+)")
_ALONE = re.compile(r"^([ ]*)\$(\w+)$")

Value = str | Sequence[str]


def fill(template: str, **values: Value) -> str:
    """The template's text with every hole filled."""
    unused = set(values)
    lines: list[str] = []

    def value_of(name: str) -> Value:
        if name not in values:
            raise KeyError(f"no value for the hole ${name}")
        unused.discard(name)
        return values[name]

    def inline(match: re.Match[str]) -> str:
        value = value_of(match.group(1))
        return value if isinstance(value, str) else ", ".join(value)

    for line in template.strip("\n").split("\n"):
        alone = _ALONE.match(line)
        if alone is None:
            lines.append(_HOLE.sub(inline, line))
            continue
        indent, value = alone.group(1), value_of(alone.group(2))
        texts = [value] if isinstance(value, str) else value
        for text in texts:
            lines += [indent + part if part else "" for part in text.split("\n")]
    if unused:
        raise KeyError(f"no hole for {', '.join(sorted(unused))}")
    return "\n".join(lines) + "\n"
