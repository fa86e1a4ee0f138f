# SPDX-License-Identifier: BSD-3-Clause
"""The library agtest, built by the public path and kept from run to run."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = Path(__file__).parent / "agtest"


@pytest.fixture(scope="session")
def agtest():
    """The operators of agtest/, the same object as `torch.ops.agtest`."""
    import torchext

    folder = ROOT / "build" / "tests" / "agtest"
    # copytree keeps modification times, so that ninja sees what is unchanged.
    shutil.copytree(SOURCES, folder, dirs_exist_ok=True)
    # Optimisation takes longer to compile than the tests gain by it.
    environment = {"CXXFLAGS": "-O0", **os.environ, "PYTHONPATH": _python_path()}
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    result = subprocess.run(
        command, check=False, cwd=folder, env=environment, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return torchext.load_library(folder / "agtest_library.so")


def _python_path() -> str:
    """What is importable here, and the checkout, whose generator the build runs."""
    return os.pathsep.join([str(ROOT), *(path or "." for path in sys.path)])
