# SPDX-License-Identifier: BSD-3-Clause
"""One run of the compiler for what the cache keeps: what tells it from others, what it read."""

from __future__ import annotations

import functools
import re
import shlex
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from torch.utils import cpp_extension

from torchext.compat import cxx_standard

from .platforms import CompilerFlags, Platform

_BETWEEN_WORDS = re.compile(r"(?<!\\)\s+")  # of a rule of make
# Of a warning: what is compiled does not depend on it.
_WARNING = re.compile(r"-W(?![alp],)")
# GCC looks for garbage where it has so many KiB, and again with each so many percent more: a large
# file is compiled in four fifths of the memory and a tenth more time, a small one as it was.
LESS_MEMORY = ("--param=ggc-min-heapsize=800000", "--param=ggc-min-expand=20")


# Of Clang: -fopenmp=libgomp ignores pragmas.
_OTHER_THREADS = frozenset(("-fopenmp", "-fopenmp=libomp", "-fopenmp=libiomp5"))
# What a library has not to do fast is compiled so, in two thirds of the time.
_FASTER_TO_COMPILE = {"-O2": "-O1", "-O3": "-O1"}


def quickly(flags: Iterable[str]) -> list[str]:
    """Return the flags by which what is compiled once is, for a library that has these."""
    return [_FASTER_TO_COMPILE.get(flag, flag) for flag in flags]


@functools.cache
def _version(compiler: str) -> str:
    asked = [compiler, "--version"]
    return subprocess.run(asked, check=False, capture_output=True, text=True).stdout


def is_gcc(compiler: str) -> bool:
    """Whether a compiler is GCC, whatever it is called."""
    return "Free Software Foundation" in _version(compiler)


def is_clang(compiler: str) -> bool:
    """Whether a compiler is Clang, whatever it is called."""
    return "clang version" in _version(compiler)


def flags(platform: Platform, compiler: str) -> list[str]:
    """What a C++ compiler is told on a platform, but for the flags of Python and of a library."""
    return [*platform.compile_flags, *_own(platform, compiler).compile]


def link_flags(platform: Platform, compiler: str) -> list[str]:
    """What it is told when it links a library, before the objects."""
    return [*platform.link_flags, *_own(platform, compiler).link]


def python_link_flags(platform: Platform, compiler: str) -> list[str]:
    """The same for what needs Python."""
    return [*platform.python_link_flags, *_own(platform, compiler).link]


def refuse_other_threads(compiler: str, given: Iterable[str]) -> None:
    """Stop where Clang would bring threads of its own beside torch's."""
    if is_clang(compiler) and not _OTHER_THREADS.isdisjoint(given):
        raise SystemExit(
            f"error: with -fopenmp {compiler} uses LLVM's OpenMP beside torch's, which is GCC's "
            "and answers omp_get_thread_num() for both: wrong values. Leave the flag out, "
            "at::parallel_for runs on torch's threads without it, or compile with GCC"
        )


def _own(platform: Platform, compiler: str) -> CompilerFlags:
    return platform.clang if is_clang(compiler) else platform.gcc


@dataclass(frozen=True)
class Compiler:
    """A compiler and the flags of a library, but for macros that torch does not read."""

    command: tuple[str, ...]
    version: str

    @classmethod
    def with_flags(cls, compiler: str, flags: Iterable[str]) -> Compiler:
        command = [compiler, *(flag for flag in flags if not _WARNING.match(flag))]
        if not any(flag.startswith("-std=") for flag in command):
            command.append(f"-std={cxx_standard()}")
        # as headers of the system, so that their own pragmas turn warnings off
        for path in cpp_extension.include_paths():
            command += ["-isystem", path]
        return cls(tuple(command), _version(compiler))

    @property
    def is_gcc(self) -> bool:
        return is_gcc(self.command[0])

    @property
    def is_clang(self) -> bool:
        return is_clang(self.command[0])

    @property
    def quick(self) -> list[str]:
        """The command, alike for all degrees of optimisation but none."""
        return quickly(self.command)

    @property
    def text(self) -> str:
        """What tells what it makes from what another one makes."""
        return f"{shlex.join(self.command)}\n{self.version}"

    def compile(self, source: Path, output: Path, flags: Iterable[str] = ()) -> list[str]:
        """Compile `source` to `output`; return the files that were read but for the source itself.

        CalledProcessError where it fails, with what the compiler said.
        """
        dependencies = output.with_suffix(".d")
        options = ["-w", "-MD", "-MF", dependencies, *flags, source, "-o", output]
        subprocess.run([*self.command, *options], check=True, capture_output=True, text=True)
        rule = dependencies.read_text(encoding="utf-8").replace("\\\n", " ")
        words = [word.replace("\\ ", " ") for word in _BETWEEN_WORDS.split(rule.strip())]
        return [path for path in words[1:] if Path(path) != source]
