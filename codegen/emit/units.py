# SPDX-License-Identifier: BSD-3-Clause
"""units/<unit>_<number>.cpp: what the compiler is given, each several of the parts in src/.

Reading torch's headers takes longer than all that a part of a small library says. What a change of
a formula reaches has units of its own, and so has what needs Python, which says so little that it
is read for several shards at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..cpp.template import fill
from ..output import File, banner
from ..plan.library import Plan

# Each with its parts, one a shard where a number stands behind the name.
_UNITS = {
    "registration": (
        "src/batching", "src/dispatch", "src/functionalize", "src/library", "src/ops", "src/rules",
        "src/schema",
    ),
    "autograd": ("src/autograd", "src/nodes"),
    "python": ("python/module", "python/nodes"),
}  # fmt: skip
_SHARDS_OF_A_UNIT = {"registration": 1, "autograd": 1, "python": 8}
_UNIT_OF = {part: unit for unit, parts in _UNITS.items() for part in parts}
_PART = re.compile(r"(.+?)(?:_(\d+))?\.cpp")

_UNIT = """
$banner
#include <torchext/precompiled.h>

$parts
"""


def emit(plan: Plan, parts: Iterable[str]) -> Iterator[File]:
    """The units of the parts that the other emitters made; what is no shard's is in the first."""
    units: dict[tuple[str, int], list[str]] = {}
    for path in parts:
        part, shard = _PART.fullmatch(path).groups()
        unit = _UNIT_OF[part]
        units.setdefault((unit, int(shard or 0) // _SHARDS_OF_A_UNIT[unit]), []).append(path)
    for (unit, number), paths in units.items():
        includes = [f'#include "../{path}"' for path in sorted(paths)]
        text = fill(_UNIT, banner=banner(__name__, plan.specs), parts=includes)
        role = "python_source" if unit == "python" else "source"
        yield File(f"units/{unit}_{number}.cpp", text, role)
