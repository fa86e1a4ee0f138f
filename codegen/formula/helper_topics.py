# SPDX-License-Identifier: BSD-3-Clause
"""Which derivative helpers there are: the headers that declare them are the only list.

A topic is declared in `torchext/derivatives/<topic>.h` and, where its functions are not inline,
defined in `<topic>-inl.h`, which a library compiles once if its formulas call one of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_DECLARATION = re.compile(r"^(?!using|namespace|inline)[\w:][\w:<>,&* ]*?[ *&](\w+)\(", re.M)
_INCLUDE = re.compile(r"^#include <torchext/derivatives/(\w+)\.h>", re.M)


@dataclass(frozen=True)
class Topic:
    """One header of helpers that has definitions to compile."""

    name: str
    functions: frozenset[str]
    uses: frozenset[str]  # other topics that its definitions call


def read_topics(folder: Path) -> tuple[Topic, ...]:
    """The topics whose headers stand in a folder."""
    found = []
    for path in sorted(folder.glob("*.h")):
        definitions = path.with_name(f"{path.stem}-inl.h")
        if not definitions.exists():
            continue
        header = path.read_text(encoding="utf-8")
        included = _INCLUDE.findall(header + definitions.read_text(encoding="utf-8"))
        functions = frozenset(_DECLARATION.findall(header))
        found.append(Topic(path.stem, functions, frozenset(included) - {path.stem}))
    return tuple(found)


def needed_topics(topics: Iterable[Topic], called: set[str]) -> tuple[str, ...]:
    """The topics that define the functions called, and those that these need in turn."""
    by_name = {topic.name: topic for topic in topics}
    needed: set[str] = set()
    waiting = [topic.name for topic in by_name.values() if topic.functions & called]
    while waiting:
        name = waiting.pop()
        if name in by_name and name not in needed:
            needed.add(name)
            waiting += by_name[name].uses
    return tuple(sorted(needed))
