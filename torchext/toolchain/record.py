# SPDX-License-Identifier: BSD-3-Clause
"""The record beside a library (`_C.so` -> `_C.json`): what it was built for, and whether that fits.

The build writes it, `torchext.load_library` reads it before the library is opened, because opening
a library on another torch ends in undefined symbols at best.
"""

from __future__ import annotations

import json
import os
import re
import sysconfig
from dataclasses import MISSING, asdict, dataclass, fields


@dataclass(frozen=True)
class BuildRecord:
    """What a library was built for."""

    # the operators' namespace, which also names the library's error function
    namespace: str
    # version of torchext that generated it
    torchext: str
    # torch.__version__ in full; of releases major.minor decides, of others all of it
    torch: str
    # torch.version.cuda of that torch; None: built without CUDA
    cuda: str | None
    # C++11 ABI of libstdc++, as torch was compiled
    cxx11_abi: bool
    # whether the library holds CUDA kernels
    cuda_kernels: bool
    # the Python that the library's Python part is for, as file names have it; None: there is none
    python: str | None = None
    # the same of torchext's own Python module, where the library brings it
    runtime: str | None = None

    def to_json(self) -> str:
        major_minor = {"torch_major_minor": major_minor_of(self.torch)}
        return json.dumps({**asdict(self), **major_minor}, indent=2, sort_keys=True) + "\n"

    @classmethod
    def read(cls, path: str) -> BuildRecord:
        """Read a record; OSError or ValueError where it is missing or damaged."""
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
        if not isinstance(content, dict):
            raise ValueError(f"{path} is no record of a library")
        known = {field.name: field for field in fields(cls)}
        missing = sorted(n for n, f in known.items() if f.default is MISSING and n not in content)
        if missing:
            raise ValueError(f"{path} lacks {', '.join(missing)}")
        wrong = [
            name for name in ("namespace", "torchext", "torch") if type(content[name]) is not str
        ]
        if wrong:
            raise ValueError(f"{path} has no text for {', '.join(wrong)}")
        return cls(**{name: content[name] for name in known if name in content})

    def fits(self, installed: BuildRecord) -> bool:
        """Whether a library built for this can run on what is installed."""
        return (
            _compatible(self.torch) == _compatible(installed.torch)
            and _cuda_major(self.cuda) == _cuda_major(installed.cuda)
            and self.cxx11_abi == installed.cxx11_abi
            and self.python in (None, installed.python)
        )

    def describe(self) -> str:
        """Return "torch 2.13.0+cpu (no CUDA, C++11 ABI) on cpython-311-x86_64-linux-gnu"."""
        cuda = f"CUDA {self.cuda}" if self.cuda else "no CUDA"
        abi = "C++11" if self.cxx11_abi else "pre-C++11"
        python = f" on {self.python}" if self.python else ""
        return f"torch {self.torch} ({cuda}, {abi} ABI){python}"


def of_installed_torch(
    namespace: str,
    torchext_version: str,
    cuda_kernels: bool = False,
    python_part: bool = False,
    runtime: bool = False,
) -> BuildRecord:
    """Return the record of a library built now, with the installed torch and this Python."""
    import torch

    this_python = sysconfig.get_config_var("SOABI")
    return BuildRecord(
        namespace=namespace,
        torchext=torchext_version,
        torch=str(torch.__version__),
        cuda=torch.version.cuda,
        cxx11_abi=torch.compiled_with_cxx11_abi(),
        cuda_kernels=cuda_kernels,
        python=this_python if python_part else None,
        runtime=this_python if runtime else None,
    )


def record_path(library: str) -> str:
    """Return the path of the record of a shared object."""
    return os.path.splitext(library)[0] + ".json"


def python_part_path(library: str) -> str:
    """Return the path of the Python part of a shared object: `_C.so` -> `_C_python.so`."""
    stem, suffix = os.path.splitext(library)
    return f"{stem}_python{suffix}"


def runtime_path(library: str) -> str:
    """Return the path of torchext's own Python module beside a shared object: `_C.so` ->
    `_C_runtime.so`."""
    stem, suffix = os.path.splitext(library)
    return f"{stem}_runtime{suffix}"


def operator_table_path(library: str) -> str:
    """Return the path of the table of operators of a shared object: `_C.so` ->
    `_C_operators.json`."""
    stem, _ = os.path.splitext(library)
    return f"{stem}_operators.json"


def major_minor_of(version: str) -> str:
    """Return "2.13" of "2.13.0+cpu"."""
    return ".".join(version.split(".")[:2])


def _compatible(version: str) -> str:
    """Return what two versions of torch have in common that run each other's libraries.

    A release keeps its ABI from patch to patch; of two nightly builds nobody knows, nor of two that
    were built from source ("2.14.0a0+git1a2b3c4").
    """
    is_release = re.fullmatch(r"\d+(\.\d+)*(\+(?!git).*)?", version)
    return major_minor_of(version) if is_release else version


def _cuda_major(version: str | None) -> str | None:
    return version.split(".")[0] if version else None
