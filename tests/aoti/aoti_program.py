# SPDX-License-Identifier: BSD-3-Clause
"""Runs the program of examples/aoti_cpp in an environment without a single variable."""

import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from torchext.toolchain.cuda import find_usable_toolkit

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "aoti_cpp"
ARTEFACTS = ("operators.so", "model.pt2", "calls.pt")


@dataclass(frozen=True)
class Program:
    """The executable, and the folder that export.py wrote."""

    executable: Path
    artefacts: Path

    def run(self, folder: Path, **environment: str) -> subprocess.CompletedProcess:
        """Run it on a folder; nothing of this process's environment is passed on."""
        return subprocess.run(
            [self.executable, folder], env=environment, capture_output=True, text=True, timeout=300
        )

    def copy_artefacts(self, folder: Path) -> Path:
        for name in ARTEFACTS:
            shutil.copyfile(self.artefacts / name, folder / name)
        return folder


def command_environment(folder: Path) -> dict[str, str]:
    """That of a user who has activated this Python's environment and installed this checkout."""
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), **_cuda(folder)}


def _cuda(folder: Path) -> dict[str, str]:
    """What the CMake files of a CUDA build of torch look for; links for it are put into a folder.

    They want the toolkit, and libraries that a slim one lacks, and torch's wheels bring under names
    with a version only.
    """
    if torch.version.cuda is None:
        return {}
    home, missing = find_usable_toolkit(torch.version.cuda)
    if home is None:
        pytest.skip(f"the CMake files of a CUDA build of torch need the toolkit: {missing}")
    for library in Path(sysconfig.get_path("purelib"), "nvidia").glob("*/lib/lib*.so.*"):
        link = folder / f"{library.name.partition('.so')[0]}.so"
        if not link.exists():
            link.symlink_to(library)
    folders = [str(folder), *filter(None, [os.environ.get("CMAKE_LIBRARY_PATH")])]
    return {"CUDA_PATH": home, "CMAKE_LIBRARY_PATH": os.pathsep.join(folders)}
