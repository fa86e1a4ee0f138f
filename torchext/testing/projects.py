# SPDX-License-Identifier: BSD-3-Clause
"""The project that builds a library, found from the library and built in place."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def folder_of(library: str, namespace: str, given: str | os.PathLike | None) -> Path:
    """The folder with the setup.py that builds a library: the one that is given, else the current
    one or the nearest around the library, the first whose setup.py speaks of its namespace.

    RuntimeError where there is none.
    """
    around = [Path.cwd(), *Path(library).resolve().parents] if given is None else [Path(given)]
    projects = [folder for folder in around if (folder / "setup.py").is_file()]
    for folder in projects:
        if namespace in (folder / "setup.py").read_text(encoding="utf-8", errors="replace"):
            return folder
    if projects:
        return projects[0]
    raise RuntimeError(
        f"{library} has its CUDA sources in the project that builds it, and there is no setup.py "
        f"in {around[0]}{'' if given else ' or around the library'}: call this in its folder"
    )


def build(project: Path, failure: str, switches: dict[str, str]) -> None:
    """Build a project in place, with `switches` in the environment; RuntimeError with `failure` and
    what the build says where it fails."""
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    importable = os.pathsep.join(path or os.getcwd() for path in sys.path)
    environment = {**os.environ, **switches, "PYTHONPATH": importable}
    done = subprocess.run(
        command, cwd=project, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise RuntimeError(f"{failure}:\n{done.stdout}")


def built_for(library: str, pattern: Path) -> Path | None:
    """Of the files that match `pattern` and have names such as `my_ops._C.so`, as in setup.py, the
    one of a library; None where there is none."""
    parts = Path(library).with_suffix("").parts
    for path in pattern.parent.glob(pattern.name):
        name = path.stem.split(".")
        if list(parts[-len(name) :]) == name:
            return path
    return None
