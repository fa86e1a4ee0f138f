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

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from . import cache, csrc
from .compilation import Compiler

HEADER = "torchext/precompiled.h"
_WHAT = "torch's headers"
_KEPT = "headers-*"  # in the folder of a build
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_ASKING = re.compile(rf"\s*#\s*include\s*<{re.escape(HEADER)}>")


@dataclass(frozen=True)
class Headers:
    """What is added to a command so that the compiler reads them; nothing where there are none."""

    include_dirs: tuple[str, ...] = ()  # of every source, before others: GCC
    flags: tuple[str, ...] = ()  # of a source that asks: Clang
    made_with: Compiler | None = None

    def flags_for(self, compiler: Compiler) -> list[str]:
        """The flags of a source that asks, where another compiler command can read them."""
        is_theirs = self.made_with is not None and self.made_with.quick == compiler.quick
        return list(self.flags) if is_theirs else []

    def linked_into(self, folder: str) -> Headers:
        """The same, with a file in a build's folder, which the cache cannot forget."""
        kept = Path(folder).absolute() / f"{_name(self)}.pch"
        for old in kept.parent.glob(_KEPT):
            if old != kept:
                old.unlink()
        if not self.flags:
            return self
        try:
            if not kept.exists():
                kept.parent.mkdir(parents=True, exist_ok=True)
                _link(self.flags[1], kept)
        except OSError as error:
            cache.say_without(_WHAT, str(error))
            return Headers()
        return replace(self, flags=(self.flags[0], str(kept)))


def _name(headers: Headers) -> str:
    """The name of the entry in the cache."""
    return Path(headers.flags[1]).parents[1].name if headers.flags else ""


def _link(path: str, target: Path) -> None:
    new = target.with_suffix(".new")
    try:
        os.link(path, new)
    except OSError:  # on another file system
        shutil.copy2(path, new)
    new.rename(target)


def torch_headers() -> Path:
    """Return the file that includes them."""
    return csrc.folder("include") / "torchext" / "torch_headers.h"


def is_asked_for(source: str) -> bool:
    """Whether a file first of all includes the header that stands for them."""
    with open(source, encoding="utf-8", errors="replace") as file:
        return _ASKING.match(_COMMENT.sub(" ", file.read())) is not None


def headers(compiler: str, flags: Iterable[str], is_made: bool = True) -> Headers:
    """Return how the compiler reads what the cache has.

    `flags` are those of the compiler but for macros that torch does not read. `is_made`: whether
    what is not in the cache is put there; a library that is built but once gains nothing by it.
    """
    chosen = Compiler.with_flags(compiler, flags)
    if not (chosen.is_gcc or chosen.is_clang):
        return Headers()
    source = torch_headers()
    options = [f"-I{csrc.folder('include') / 'torchext' / 'replacements'}", "-x", "c++-header"]
    if chosen.is_clang:
        suffix = ".pch"  # without the time, so that ccache takes it for the same
        options += ["-fpch-instantiate-templates", "-Xclang", "-fno-pch-timestamp"]
    else:
        # All that it keeps is written at the end, when garbage beside it would take a fourth more
        # memory: GCC looks for it when there are 400 MB, and often from there.
        suffix = ".gch"
        options += ["--param=ggc-min-heapsize=400000", "--param=ggc-min-expand=10"]

    def make(folder: Path) -> list[str]:
        header = folder / f"{HEADER}{suffix}"
        header.parent.mkdir()
        return [str(source), *chosen.compile(source, header, options)]

    made_of = f"{chosen.text}{source}{options}"
    found = cache.shared("headers", _WHAT, made_of, make, is_made)
    if found is None:
        return Headers()
    if chosen.is_clang:
        return _readable(Headers((), ("-include-pch", f"{found / HEADER}{suffix}"), chosen))
    return Headers((str(found),), (), chosen)


def _readable(made: Headers) -> Headers:
    """None where Clang cannot read them, as those that -march=native made on another machine."""
    with contextlib.suppress(subprocess.CalledProcessError):
        command = [*made.made_with.command, *made.flags, "-w", "-fsyntax-only", "-x", "c++"]
        subprocess.run([*command, os.devnull], check=True, capture_output=True)
        return made
    cache.say_without(_WHAT, "Clang cannot read them on this machine")
    return Headers()
