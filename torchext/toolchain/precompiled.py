# SPDX-License-Identifier: BSD-3-Clause
"""torch's headers, compiled once for a torch, a compiler and its flags, and shared by libraries.

Reading them is most of the time that a generated file takes. A source asks for them by its first
line, `#include <torchext/precompiled.h>`: the header of that name is empty, and GCC, which looks in
every folder for a precompiled header before it looks for the header, finds ours in the cache where
a build put it. So a source still includes what it uses, and means the same without the cache.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from . import cache
from .compilation import Compiler

HEADER = "torchext/precompiled.h"
TORCH_HEADERS = """\
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/function.h>
#include <torch/library.h>
"""


def include_dirs(compiler: str, flags: Iterable[str], is_made: bool = True) -> list[str]:
    """Return the folder to search first, if the compiler can read what is in there.

    `flags` are those of the compiler but for macros that torch does not read. `is_made`: whether
    what is not in the cache is put there; a library that is built but once gains nothing by it.
    """
    chosen = Compiler.with_flags(compiler, flags)
    if not chosen.is_gcc:
        return []  # what Clang precompiled it refuses where a flag differs, and does not go on

    def make(folder: Path) -> list[str]:
        header = folder / HEADER
        header.parent.mkdir()
        source = header.with_suffix(".txt")  # not under the name that the compiler falls back to
        source.write_text(TORCH_HEADERS, encoding="utf-8")
        # All that it keeps is written at the end, when garbage beside it would take a fourth more
        # memory: GCC looks for it when there are 400 MB, and often from there.
        often = ["--param=ggc-min-heapsize=400000", "--param=ggc-min-expand=10"]
        return chosen.compile(source, Path(f"{header}.gch"), [*often, "-x", "c++-header"])

    made_of = f"{chosen.text}{TORCH_HEADERS}"
    found = cache.shared("headers", "torch's headers", made_of, make, is_made)
    return [] if found is None else [str(found)]
