# SPDX-License-Identifier: BSD-3-Clause
"""torch's headers, compiled once for the libraries that the tests build.

Reading them is most of the time that a generated file takes. torchext's own headers are not among
them, and its own operators and the README's library are compiled without: what a generated file
does not include is missed there.
"""

import contextlib
import fcntl
import functools
import shlex
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import torch
from torch.utils import cpp_extension

from torchext.compat import cxx_standard
from torchext.toolchain import environment, platforms

FOLDER = Path(__file__).parents[1] / "build" / "tests" / f"precompiled-{torch.__version__}"
HEADERS = """\
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/function.h>
#include <torch/library.h>
"""
# Optimisation takes longer to compile than the tests gain by it.
UNOPTIMISED = "-O0"


@functools.cache
def cxxflags() -> tuple[str, ...]:
    """CXXFLAGS for a build with BuildExtension: not optimised, and with the headers."""
    return UNOPTIMISED, *_inclusion()


@functools.cache
def load_flags() -> tuple[str, ...]:
    """Flags for torch.utils.cpp_extension.load, the same."""
    return *_flags(), *_inclusion()


def _inclusion() -> tuple[str, ...]:
    compiler = environment.find_compiler(platforms.current())
    said = subprocess.run([compiler, "--version"], check=True, capture_output=True, text=True)
    if "Free Software Foundation" not in said.stdout:
        return ()  # what Clang precompiled it refuses where a flag differs; GCC reads the header
    header = FOLDER / "torch_headers.h"
    with _locked():
        _compile([compiler, *_flags(), "-x", "c++-header"], header)
    return "-include", str(header)


def _flags() -> list[str]:
    """What BuildExtension compiles with, as far as a precompiled header depends on it."""
    pythons = [sysconfig.get_config_var(name) or "" for name in ("CFLAGS", "CCSHARED")]
    return [
        *shlex.split(" ".join(pythons)),
        *platforms.current().compile_flags,
        UNOPTIMISED,
        f"-std={cxx_standard()}",
        "-DTORCH_API_INCLUDE_EXTENSION_H",
    ]


def _compile(command: list[str], header: Path) -> None:
    """Compile the header, unless this command has compiled this text already."""
    command += [f"-I{path}" for path in cpp_extension.include_paths()]
    done, made = header.with_suffix(".made"), f"{shlex.join(command)}\n{HEADERS}"
    if done.exists() and done.read_text(encoding="utf-8") == made:
        return
    done.unlink(missing_ok=True)
    header.write_text(HEADERS, encoding="utf-8")
    subprocess.run([*command, str(header), "-o", f"{header}.gch"], check=True)
    done.write_text(made, encoding="utf-8")


@contextlib.contextmanager
def _locked() -> Iterator[None]:
    """Hold the folder alone: the processes that run tests build side by side."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open(FOLDER / "lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
