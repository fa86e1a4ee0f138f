# SPDX-License-Identifier: BSD-3-Clause
"""Finds the tools of a build and sets the environment that torch's build command reads."""

from __future__ import annotations

import os
import shlex
import shutil
import sys

from .platforms import Platform

BYTES_PER_JOB = 2 << 30  # one translation unit of torch headers takes 1 to 2 GiB
COMPILER_WRAPPERS = ("ccache", "sccache")


def prepare(platform: Platform) -> None:
    """Set CXX, MAX_JOBS and the message language for this process, or stop and say why."""
    if not shutil.which("ninja"):
        raise SystemExit("error: building needs ninja: python -m pip install ninja")
    try:
        import yaml  # noqa: F401  the code generator reads the specs with it
    except ImportError:
        message = "error: building needs pyyaml: python -m pip install pyyaml"
        raise SystemExit(message) from None
    os.environ["CXX"] = find_compiler(platform)
    if "CC" in os.environ:  # torch takes all words but the first for flags
        os.environ["CC"] = shlex.join(_without_wrapper(shlex.split(os.environ["CC"])))
    os.environ.setdefault("MAX_JOBS", str(default_jobs()))
    # ccache keeps what was compiled with precompiled headers where it is told so
    os.environ.setdefault("CCACHE_SLOPPINESS", "pch_defines,time_macros")
    # the diagnosis reads the compiler's messages, so they must be the untranslated ones
    os.environ["LC_ALL"] = "C.UTF-8"


def put_ninja_on_path() -> None:
    """Put the ninja of this Python environment first on PATH, if there is one.

    Always the same one, whether or not the environment is activated: another version of ninja does
    not read the log that this one writes, and would compile everything again.
    """
    try:
        import ninja

        folder = ninja.BIN_DIR
    except ImportError:
        folder = os.path.dirname(sys.executable)
    if shutil.which("ninja", path=folder):
        os.environ["PATH"] = folder + os.pathsep + os.environ.get("PATH", "")


def find_compiler(platform: Platform) -> str:
    """Return the C++ compiler as one word: CXX, else the first of the platform's that exists."""
    words = _without_wrapper(shlex.split(os.environ.get("CXX", "")))
    if len(words) > 1:
        raise SystemExit(
            f"error: CXX={shlex.join(words)!r} has arguments; CXX names the compiler only, "
            "flags go into CXXFLAGS"
        )
    candidates = words or list(platform.compilers)
    for candidate in candidates:
        if shutil.which(candidate):
            return candidate
    asked = f"CXX={words[0]} is not an executable" if words else f"none of {candidates} is on PATH"
    raise SystemExit(f"error: no C++ compiler: {asked}. Install g++ or clang++, or set CXX.")


def _without_wrapper(words: list[str]) -> list[str]:
    """Leave out ccache, which torch's build command calls by itself where that is on PATH."""
    is_wrapped = len(words) > 1 and os.path.basename(words[0]) in COMPILER_WRAPPERS
    return words[1:] if is_wrapped else words


def default_jobs() -> int:
    """Return how many compilers run at once: one a processor, but at most one per 2 GiB."""
    return max(1, min(len(os.sched_getaffinity(0)), memory_bytes() // BYTES_PER_JOB))


def memory_bytes() -> int:
    """Return the memory of this machine, or of the container where that is less."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as limit:
            return min(total, int(limit.read()))
    except (OSError, ValueError):  # no such file, or "max"
        return total
