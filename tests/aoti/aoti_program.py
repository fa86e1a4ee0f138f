# SPDX-License-Identifier: BSD-3-Clause
"""Runs the program of examples/aoti_cpp in an environment without a single variable."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

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


def command_environment() -> dict[str, str]:
    """That of a user who has activated this Python's environment and installed this checkout."""
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
