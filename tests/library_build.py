# SPDX-License-Identifier: BSD-3-Clause
"""Builds the small operator libraries of the tests, by the public path; kept from run to run."""

import contextlib
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Optimisation takes longer to compile than the tests gain by it, as do other instruction sets than
# this machine's: tests/build/test_cpu_capabilities.py has expressions for all of them.
UNOPTIMISED = "-O0"
QUICK = {"CXXFLAGS": UNOPTIMISED, "TORCHEXT_CPU_CAPABILITIES": "native"}


def build_and_load(sources: Path, library: str, **variables: str):
    """Build the project in a folder and load its library; returns `torch.ops.<namespace>`."""
    import torchext

    return torchext.load_library(build(sources, **variables) / library)


@contextlib.contextmanager
def built_quickly() -> Iterator[None]:
    """Whoever builds a project while this lasts builds it as `build` does, with the same flags."""
    given = {name: os.environ.get(name) for name in QUICK}
    os.environ.update({name: value for name, value in QUICK.items() if given[name] is None})
    try:
        yield
    finally:
        for name in (name for name, value in given.items() if value is None):
            del os.environ[name]


def by_clang() -> dict[str, str]:
    """The variables with which Clang builds what is large, in less than half the time.

    None where there is no clang++ that finds GCC's library, where another compiler or its flags are
    chosen, and for a CUDA build of torch, which takes few versions of it.
    """
    import torch

    is_chosen = "CXX" in os.environ or os.environ.get("CXXFLAGS", UNOPTIMISED) != UNOPTIMISED
    is_possible = torch.version.cuda is None and not is_chosen and _clang_links()
    return {"CXX": "clang++"} if is_possible else {}


def _clang_links() -> bool:
    if not shutil.which("clang++"):
        return False
    command = ["clang++", "-std=c++20", "-x", "c++", "-", "-lgomp", "-o", os.devnull]
    source = "#include <vector>\nint main() { return std::vector<int>(1).front(); }\n"
    done = subprocess.run(command, check=False, input=source, text=True, capture_output=True)
    return done.returncode == 0


def build(sources: Path, **variables: str) -> Path:
    """Build the project in a folder, without loading anything; returns where its libraries are.

    `variables` of the environment stand before those that make builds quick.
    """
    folder = ROOT / "build" / "tests" / sources.name
    # copytree keeps modification times, so that ninja sees what is unchanged.
    shutil.copytree(sources, folder, dirs_exist_ok=True)
    environment = {**QUICK, **os.environ, **variables, "PYTHONPATH": _python_path()}
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    result = subprocess.run(
        command, check=False, cwd=folder, env=environment, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return folder


def load(name: str, source: Path, folder: Path, **options) -> None:
    """torch.utils.cpp_extension.load of one file, for what registers operators, one at a time.

    With the flags of BuildExtension, and torch's headers as it has compiled them.
    """
    from torch.utils import cpp_extension

    from torchext.toolchain import compilation, environment, platforms, precompiled
    from torchext.toolchain.one_build import one_build

    pythons = [sysconfig.get_config_var(name) or "" for name in ("CFLAGS", "CCSHARED")]
    platform = platforms.current()
    compiler = environment.find_compiler(platform)
    flags = [
        *shlex.split(" ".join(pythons)), *compilation.flags(platform, compiler), UNOPTIMISED,
    ]  # fmt: skip
    headers = precompiled.headers(compiler, flags)
    if precompiled.is_asked_for(str(source)):
        flags += headers.flags
    own = [*headers.include_dirs, str(ROOT / "csrc" / "include"), str(source.parent)]

    with one_build(str(folder / "torchext.lock"), str(folder)):
        # of a run that was killed, for which load() waits for ever
        (folder / "lock").unlink(missing_ok=True)
        cpp_extension.load(
            name,
            [str(source)],
            build_directory=str(folder),
            is_python_module=False,
            extra_cflags=flags,
            extra_include_paths=own,
            **options,
        )


def _python_path() -> str:
    """What is importable here, and the checkout, whose generator the build runs."""
    return os.pathsep.join([str(ROOT), *(path or "." for path in sys.path)])
