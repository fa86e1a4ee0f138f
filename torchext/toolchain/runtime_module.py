# SPDX-License-Identifier: BSD-3-Clause
"""torchext's own Python module, compiled on first need where no library has brought it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

from torch.utils import cpp_extension

from . import cache, compilation, compiled_once, environment, platforms
from .compilation import Compiler

_MODULE = "_runtime.so"


def built() -> str:
    """Return the path of the module for this torch and Python, from the cache or compiled into it.

    ImportError where it cannot be compiled.
    """
    platform = platforms.current()
    try:
        chosen = environment.find_compiler(platform)
    except SystemExit as error:
        raise ImportError(f"{_needed()} cannot be compiled: {error}") from None
    given = shlex.split(os.environ.get("CXXFLAGS", ""))
    flags = ["-fPIC", "-DNDEBUG", *compilation.flags(platform, chosen), *given]
    compiler = Compiler.with_flags(chosen, compilation.quickly(flags))
    link = [
        *compilation.python_link_flags(platform, chosen),
        *(f"-L{folder}" for folder in cpp_extension.library_paths("cpu")),
        *(f"-l{name}" for name in (*platform.torch_libraries, *platform.python_libraries)),
        *shlex.split(os.environ.get("LDFLAGS", "")),
    ]
    folders = [f"-I{path}" for path in compiled_once.include_dirs()]
    source = Path(compiled_once.source("runtime"))

    def make(folder: Path) -> list[str]:
        message = f"compiling {_needed()} into {cache.folder()}, once for all"
        print(message, file=sys.stderr, flush=True)
        return [str(source), *compiler.compile(source, folder / _MODULE, [*folders, *link])]

    try:
        return str(cache.entry("module", f"{compiler.text}{folders}{link}", make) / _MODULE)
    except OSError as error:
        raise ImportError(f"{_needed()} cannot be kept: {error}") from error
    except subprocess.CalledProcessError as error:
        raise ImportError(f"{_needed()} cannot be compiled: {error.stderr.strip()}") from None


def _needed() -> str:
    return compiled_once.PARTS["runtime"]
