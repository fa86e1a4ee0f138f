# SPDX-License-Identifier: BSD-3-Clause
"""units/<stage>_<shard>.cpp: what the compiler is given, each several of the parts in src/.

Reading torch's headers takes longer than all that a part of a small library says. What a change of
a formula reaches has units of its own, and so has what needs Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from ..cpp.template import fill
from ..output import PARTS, File, banner
from ..plan.library import Plan

_UNIT = """
$banner
#include <torchext/precompiled.h>

$parts
"""


def emit(plan: Plan, files: Iterable[File]) -> Iterator[File]:
    """The units of those files that are parts of one."""
    units: dict[tuple[str, str], list[str]] = {}
    for file in files:
        if file.role in PARTS:
            units.setdefault((file.unit, file.role), []).append(file.path)
    for (unit, role), paths in units.items():
        includes = [f'#include "../{path}"' for path in sorted(paths, key=PurePosixPath)]
        text = fill(_UNIT, banner=banner(__name__, plan.specs), parts=includes)
        yield File(f"units/{unit}.cpp", text, PARTS[role])
