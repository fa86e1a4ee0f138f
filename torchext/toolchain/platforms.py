# SPDX-License-Identifier: BSD-3-Clause
"""The one table of what differs between platforms: compiler, linker and loader."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True)
class CompilerFlags:
    """What one compiler is given besides a platform's flags."""

    compile: tuple[str, ...]
    link: tuple[str, ...]


@dataclass(frozen=True)
class Platform:
    """Flags and names of one platform."""

    name: str
    # suffix of a shared object; no Python ABI in it, because the library is no Python module
    library_suffix: str
    # candidates for the C++ compiler where CXX is not set, best first
    compilers: tuple[str, ...]
    # to the C++ compiler; Python's own flags (-fPIC among them) stand before these
    compile_flags: tuple[str, ...]
    # to nvcc; torch adds -fPIC and the architectures
    cuda_compile_flags: tuple[str, ...]
    # to the linker driver, before the objects
    link_flags: tuple[str, ...]
    # the same for a Python part, whose symbols of Python's own the interpreter has
    python_link_flags: tuple[str, ...]
    # to GCC, and to Clang, which take most flags alike
    gcc: CompilerFlags
    clang: CompilerFlags
    # the folder of a shared object, in what that object says it needs; the loader replaces it
    origin: str
    # the shared object of the C++ runtime that torch needs
    cpp_runtime: str
    # what every library links, without torch_python
    torch_libraries: tuple[str, ...]
    # what a library with CUDA kernels links besides
    cuda_libraries: tuple[str, ...]
    # what a Python part links besides torch_libraries
    python_libraries: tuple[str, ...]


_LINUX_LINK_FLAGS = (
    "-shared",
    # registrations point into the library: it must never be unloaded
    "-Wl,-z,nodelete",
    # some distributions default to --as-needed, which drops torch's libraries. There is no
    # rpath: torch is imported first, so its libraries are in the process already.
    "-Wl,--no-as-needed",
)
_LINUX = Platform(
    name="linux",
    library_suffix=".so",
    compilers=("c++", "g++", "clang++"),
    compile_flags=("-O3", "-g0", "-Wall", "-fvisibility=hidden"),
    cuda_compile_flags=("-O3", "--extended-lambda", "-Xcompiler", "-fvisibility=hidden"),
    # a kernel that no file defines is found here, not when the library is loaded
    link_flags=(*_LINUX_LINK_FLAGS, "-Wl,-z,defs"),
    python_link_flags=_LINUX_LINK_FLAGS,
    # -fopenmp: without it at::parallel_for runs on one thread. torch brings the same runtime
    # (libgomp.so.1) and is loaded first, so that there is one pool of threads.
    # -Wno-maybe-uninitialized: GCC is wrong about c10::SmallVector, in torch's own headers.
    gcc=CompilerFlags(("-fopenmp", "-Wno-maybe-uninitialized"), ("-fopenmp",)),
    # With -fopenmp it would take a runtime of its own; csrc/include/torchext/replacements has how
    # at::parallel_for runs on torch's. It warns of functions whose type alone is of use, and of
    # loops that it may run in any order (vectorize.h) and does not.
    clang=CompilerFlags(("-Wno-unneeded-internal-declaration", "-Wno-pass-failed"), ("-lgomp",)),
    origin="$ORIGIN",
    cpp_runtime="libstdc++.so.6",
    torch_libraries=("c10", "torch", "torch_cpu"),
    cuda_libraries=("cudart", "c10_cuda", "torch_cuda"),
    python_libraries=("torch_python",),
)

PLATFORMS = {row.name: row for row in (_LINUX,)}

# The instruction sets that a source of vectors may be compiled for, by ATen's names and with its
# flags: the first runs everywhere, and what a machine has is chosen when a kernel runs. Nothing is
# fused into one rounding that an expression has as two.
_VECTOR_FLAGS = ("-ffp-contract=off", "-Wno-unknown-pragmas")
_CAPABILITIES = {
    "DEFAULT": (),
    "AVX2": ("-mavx2", "-mfma", "-mf16c"),
    "AVX512": ("-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mfma", "-mf16c"),
}


def cpu_capabilities(
    machine: str = platform.machine(), chosen: str | None = None
) -> dict[str, tuple[str, ...]]:
    """Return the compiler's flags for each instruction set to build for on a machine like this.

    `chosen`, or TORCHEXT_CPU_CAPABILITIES where it is not given, says which: names that ATen gives
    them, or `native`, the one that it chooses here. All where it names none.
    """
    if chosen is None:
        chosen = os.environ.get("TORCHEXT_CPU_CAPABILITIES", "")
    has_vectors = machine.lower() in ("x86_64", "amd64")
    known = [name for name in _CAPABILITIES if name == "DEFAULT" or has_vectors]
    words = chosen.upper().replace(",", " ").split()
    names = [_native() if word == "NATIVE" else word for word in words] or known
    if unknown := [name for name in names if name not in known]:
        raise SystemExit(
            f"error: TORCHEXT_CPU_CAPABILITIES names {', '.join(unknown)}; on this machine there "
            f"are {', '.join(known)}, and native"
        )
    return {
        name: (*flags, *_VECTOR_FLAGS, f"-DCPU_CAPABILITY={name}", f"-DCPU_CAPABILITY_{name}")
        for name, flags in _CAPABILITIES.items()
        if name in names
    }


def _native() -> str:
    import torch

    found = torch.backends.cpu.get_cpu_capability()
    return found if found in _CAPABILITIES else "DEFAULT"


def without_cpu_capabilities(built: Collection[str]) -> list[tuple[str, None]]:
    """Return the macros that say which instruction sets are not built for."""
    return [(f"TORCHEXT_WITHOUT_{name}", None) for name in _CAPABILITIES if name not in built]


def current(name: str = sys.platform) -> Platform:
    """Return the row of this platform, or stop with a message where there is none."""
    if name not in PLATFORMS:
        raise SystemExit(
            f"error: torchext cannot build on platform {name!r} yet (known: "
            f"{', '.join(PLATFORMS)}). A platform is a row in torchext/toolchain/platforms.py."
        )
    return PLATFORMS[name]
