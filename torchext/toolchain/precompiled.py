# SPDX-License-Identifier: BSD-3-Clause
"""torch's headers, compiled once for a torch, a compiler and its flags, and shared by libraries.

Reading them is most of the time that a generated file takes. A source asks for them by its first
line, `#include <torchext/precompiled.h>`: the header of that name is empty, and GCC, which looks in
every folder for a precompiled header before it looks for the header, finds ours in the cache where
a build put it. So a source still includes what it uses, and means the same without the cache.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from torch.utils import cpp_extension

from torchext.compat import cxx_standard

from . import cache

SWITCH = "TORCHEXT_PRECOMPILED"  # "0" compiles without
HEADER = "torchext/precompiled.h"
TORCH_HEADERS = """\
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/function.h>
#include <torch/library.h>
"""
_BETWEEN_WORDS = re.compile(r"(?<!\\)\s+")  # of a rule of make
# Of a warning: neither what is in the headers nor whether GCC takes them depends on it.
_WARNING = re.compile(r"-W(?![alp],)")


def include_dirs(compiler: str, flags: Iterable[str], is_made: bool = True) -> list[str]:
    """Return the folder to search first, if the compiler can read what is in there.

    `flags` are those of the compiler but for macros that torch does not read. `is_made`: whether
    what is not in the cache is put there; a library that is built but once gains nothing by it.
    """
    if os.environ.get(SWITCH) == "0":
        return []
    version = _version(compiler)
    if "Free Software Foundation" not in version:
        return []  # what Clang precompiled it refuses where a flag differs, and does not go on
    command = [compiler, *(flag for flag in flags if not _WARNING.match(flag))]
    if not any(flag.startswith("-std=") for flag in command):
        command.append(f"-std={cxx_standard()}")
    # as headers of the system: of others GCC would show warnings that their own pragmas turn off
    command += [word for path in cpp_extension.include_paths() for word in ("-isystem", path)]

    def make(folder: Path) -> list[str]:
        print(f"compiling torch's headers into {cache.folder()}, once for all", flush=True)
        return _compile(command, folder)

    made_of = f"{shlex.join(command)}\n{version}{TORCH_HEADERS}"
    try:
        if not is_made:
            found = cache.find("headers", made_of)
            return [] if found is None else [str(found)]
        return [str(cache.entry("headers", made_of, make))]
    except OSError as error:
        problem = str(error)
    except subprocess.CalledProcessError as error:
        problem = error.stderr.strip() or str(error)
    print(f"torch's headers are read for every file: {problem}", file=sys.stderr, flush=True)
    return []


def _version(compiler: str) -> str:
    command = [compiler, "--version"]
    return subprocess.run(command, check=False, capture_output=True, text=True).stdout


def _compile(command: list[str], folder: Path) -> list[str]:
    """Compile the headers to `folder`; return the files that were read."""
    header, dependencies = folder / HEADER, folder / "read.d"
    header.parent.mkdir()
    source = header.with_suffix(".txt")  # not under the name that the compiler would fall back to
    source.write_text(TORCH_HEADERS, encoding="utf-8")
    output = ["-MD", "-MF", dependencies, "-x", "c++-header", source, "-o", f"{header}.gch"]
    subprocess.run([*command, "-w", *output], check=True, capture_output=True, text=True)
    rule = dependencies.read_text(encoding="utf-8").replace("\\\n", " ")
    words = [word.replace("\\ ", " ") for word in _BETWEEN_WORDS.split(rule.strip())]
    return [path for path in words[1:] if Path(path) != source]
