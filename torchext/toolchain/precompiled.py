# SPDX-License-Identifier: BSD-3-Clause
"""torch's headers, compiled once for a torch, a compiler and its flags, and shared by libraries.

Reading them is most of the time that a generated file takes. A source asks for them by its first
line, `#include <torchext/precompiled.h>`: the header of that name is empty, so that a source still
includes what it uses, and means the same without the cache.

GCC looks in every folder for a precompiled header before it looks for the header, and finds ours in
the cache where a build put it; where that is gone, or another flag would make another one, it reads
torch's. Clang is told its file, on the command line of the sources that ask, and goes on with no
other: a build has a link of its own to it. It keeps what templates became as well, which GCC makes
again at the end of every file.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from . import cache, csrc
from .compilation import Compiler

HEADER = "torchext/precompiled.h"
_DIRECTIVE = re.compile(r"^[ \t]*(#[^\n]*\S)", re.MULTILINE)


@dataclass(frozen=True)
class Headers:
    """What is added to a command so that the compiler reads them; nothing where there are none."""

    include_dirs: tuple[str, ...] = ()  # of every source, before others: GCC
    flags: tuple[str, ...] = ()  # of a source that asks: Clang
    made_with: Compiler | None = None

    def flags_for(self, compiler: Compiler) -> list[str]:
        """The flags of a source that asks, where another compiler command can read them."""
        is_theirs = self.made_with is not None and self.made_with.command == compiler.command
        return list(self.flags) if is_theirs else []

    def linked_into(self, folder: str) -> Headers:
        """The same, with a file in a build's folder, which the cache cannot forget."""
        if not self.flags:
            return self
        [option, path] = self.flags
        kept = Path(folder).absolute() / f"{Path(path).parents[1].name}.pch"
        if not kept.exists():
            kept.parent.mkdir(parents=True, exist_ok=True)
            for old in kept.parent.glob("headers-*.pch"):
                old.unlink()
            new = kept.with_suffix(".new")
            new.unlink(missing_ok=True)
            try:
                os.link(path, new)
            except OSError:  # on another file system
                shutil.copy2(path, new)
            new.rename(kept)
        return Headers(self.include_dirs, (option, str(kept)), self.made_with)


def torch_headers() -> Path:
    """Return the file that includes them."""
    return csrc.folder("include") / "torchext" / "torch_headers.h"


def is_asked_for(source: str) -> bool:
    """Whether the first directive of a file includes the header that stands for them."""
    with open(source, encoding="utf-8", errors="replace") as file:
        first = _DIRECTIVE.search(file.read())
    return first is not None and first[1] == f"#include <{HEADER}>"


def headers(compiler: str, flags: Iterable[str], is_made: bool = True) -> Headers:
    """Return how the compiler reads what the cache has.

    `flags` are those of the compiler but for macros that torch does not read. `is_made`: whether
    what is not in the cache is put there; a library that is built but once gains nothing by it.
    """
    chosen = Compiler.with_flags(compiler, flags)
    if not (chosen.is_gcc or chosen.is_clang):
        return Headers()

    def make(folder: Path) -> list[str]:
        header = folder / HEADER
        header.parent.mkdir()
        if chosen.is_clang:
            output, options = f"{header}.pch", ["-fpch-instantiate-templates"]
        else:
            # All that it keeps is written at the end, when garbage beside it would take a fourth
            # more memory: GCC looks for it when there are 400 MB, and often from there.
            output = f"{header}.gch"
            options = ["--param=ggc-min-heapsize=400000", "--param=ggc-min-expand=10"]
        read = chosen.compile(source, Path(output), [*options, "-x", "c++-header"])
        return [str(source), *read]

    source = torch_headers()
    made_of = f"{chosen.text}{source}"
    found = cache.shared("headers", "torch's headers", made_of, make, is_made)
    if found is None:
        return Headers()
    if chosen.is_clang:
        return Headers(flags=("-include-pch", f"{found / HEADER}.pch"), made_with=chosen)
    return Headers(include_dirs=(str(found),), made_with=chosen)
