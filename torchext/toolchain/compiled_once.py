# SPDX-License-Identifier: BSD-3-Clause
"""The C++ that every library has alike, compiled once for a torch, a compiler and its flags.

csrc/boxed are the kernels that serve every schema, csrc/python what makes Python objects of what a
node saved, csrc/runtime torchext's own Python module. An object of each is in the cache, which a
build in place fills; where it is not, a library compiles the source itself.
"""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import cache, csrc
from .compilation import Compiler, quickly
from .precompiled import Headers

# With what each is called.
PARTS = {
    "boxed": "the kernels of every library",
    "python": "the Python part of every library",
    "runtime": "torchext's Python module",
}
_OBJECT = "all.o"


def source(part: str) -> str:
    """Return the one file of a part, which includes its others."""
    return str(csrc.folder(part) / "all.cpp")


def include_dirs() -> list[str]:
    """Return the folders of the headers that the parts include, but for torch's."""
    include = csrc.folder("include")
    own = [include, include / "torchext" / "replacements", sysconfig.get_paths()["include"]]
    return [str(path) for path in own]


def objects(
    parts: list[str], headers: Headers, compiler: str, flags: Iterable[str], is_made: bool = True
) -> dict[str, str]:
    """Return the object of each of the parts that is in the cache.

    `compiler`, `flags` and `is_made` as of precompiled.headers, which gives `headers`.
    """
    # What they do is torch's to optimise: a call under torch.vmap takes as long, and one of an
    # in-place form that `autogen:` declares 0.05 microseconds more.
    chosen = Compiler.with_flags(compiler, quickly(flags))
    folders = [f"-I{path}" for path in (*headers.include_dirs, *include_dirs())]
    options = [*headers.flags_for(chosen), *folders, "-c"]

    def made(part: str) -> Path | None:
        def make(folder: Path) -> list[str]:
            path = Path(source(part))
            read = chosen.compile(path, folder / _OBJECT, options)
            # the precompiled headers may be forgotten: what they were made of is in the list
            return [str(path), *(p for p in read if not p.endswith((".gch", ".pch")))]

        made_of = f"{chosen.text}{folders}{source(part)}"
        return cache.shared(part, PARTS[part], made_of, make, is_made)

    with ThreadPoolExecutor(int(os.environ.get("MAX_JOBS", "1"))) as pool:
        found = dict(zip(parts, pool.map(made, parts)))
    return {part: str(folder / _OBJECT) for part, folder in found.items() if folder}
