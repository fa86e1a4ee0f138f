# SPDX-License-Identifier: BSD-3-Clause
"""A library's CUDA kernels as machine code, one file an architecture: nvcc, and no CUDA in torch.

A build says how nvcc is to be called, and `compile_kernels` calls it. The headers that a slim
toolkit and torch's CPU build lack are those of csrc/testing/cuda_on_host.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch.utils import cpp_extension

from . import csrc, cuda, environment

_FOLDER = os.path.join("build", "cuda_code")
_CHOOSES_ARCHITECTURE = ("-arch", "--gpu-architecture", "-gencode", "--generate-code", "-code")


@dataclass(frozen=True)
class Command:
    """How nvcc is called for the kernels of a library; paths are relative to its project."""

    sources: list[str]
    include_dirs: list[str]
    macros: list[list]  # of a name and a value, or None
    flags: list[str]


@dataclass(frozen=True)
class MachineCode:
    """A file of CUDA kernels for one architecture: what ptxas said of it, and where it is."""

    source: str
    architecture: str  # "90"
    said: str
    cubin: Path


def path_of(project: str | os.PathLike, name: str) -> Path:
    """Where a build writes the command of a library, by the name in its setup.py."""
    return Path(project) / _FOLDER / f"torch-{torch.__version__}" / f"{name}.json"


def write(command: Command, name: str) -> None:
    """Write the command of a library whose project is the current folder; none without kernels."""
    path = path_of(os.curdir, name)
    if command.sources:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(command), indent=1) + "\n", encoding="utf-8")
    else:
        path.unlink(missing_ok=True)


def compile_kernels(
    path: Path, project: Path, architectures: Iterable[str], only: Iterable[str] = ()
) -> list[MachineCode]:
    """Compile the kernels of the command at `path` for each architecture, such as "90" or "100a".

    only: the sources that are compiled, where they are given. RuntimeError where there is no nvcc,
    and with what it says where a file does not compile.
    """
    home = cuda.find_toolkit()
    if home is None:
        raise RuntimeError("there is no nvcc: install the CUDA toolkit, or set CUDA_HOME to it")
    command = Command(**json.loads(path.read_text(encoding="utf-8")))
    chosen = [source for source in command.sources if not only or _is_among(source, only)]
    if not chosen:
        raise RuntimeError(f"none of {', '.join(command.sources)} is {', '.join(only)}")
    folder = path.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    flags = _flags(home, command)

    def run(job: tuple[str, str]) -> MachineCode:
        source, architecture = job
        cubin = folder / f"{source.replace(os.sep, '.')}.sm_{architecture}.cubin"
        call = [*flags, f"-arch=sm_{architecture}", "-o", str(cubin), source]
        done = subprocess.run(
            call, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        if done.returncode != 0:
            raise RuntimeError(f"nvcc failed with {source} for sm_{architecture}:\n{done.stdout}")
        return MachineCode(source, architecture, done.stdout, cubin)

    jobs = [(source, architecture) for source in chosen for architecture in architectures]
    at_once = int(os.environ.get("MAX_JOBS") or environment.default_jobs())
    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(run, jobs))


def _is_among(source: str, only: Iterable[str]) -> bool:
    return any(Path(source).match(given) for given in only)


def _without_architectures(flags: list[str]) -> list[str]:
    kept, is_value = [], False
    for flag in flags:
        chooses = flag.startswith(_CHOOSES_ARCHITECTURE)
        if not chooses and not is_value:
            kept.append(flag)
        is_value = flag in _CHOOSES_ARCHITECTURE
    return kept


def _flags(home: str, command: Command) -> list[str]:
    own = _without_architectures(command.flags)
    standard = [] if any(flag.startswith("-std=") for flag in own) else ["-std=c++20"]
    torchs = [*cpp_extension.include_paths("cpu"), *cuda.math_include_dirs(home)]
    absent = csrc.folder("testing") / "cuda_on_host" / "include"
    return [
        os.path.join(home, "bin", "nvcc"), "-cubin", "-Xptxas=-v",
        *cpp_extension.COMMON_NVCC_FLAGS, *standard, *own,
        *(f"-D{name}" if value is None else f"-D{name}={value}" for name, value in command.macros),
        *(f"-I{folder}" for folder in command.include_dirs),
        *(f"-isystem={folder}" for folder in torchs),
        f"-Xcompiler=-idirafter,{absent}",
    ]  # fmt: skip
