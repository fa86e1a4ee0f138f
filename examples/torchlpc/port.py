# SPDX-License-Identifier: BSD-3-Clause
"""Fetches torchlpc 0.7.2, makes its operators anew with torchext, and runs its own tests.

`python examples/torchlpc/port.py` works in build/torchlpc: `ported/` is the source distribution
with the files beside this one in the place of its setup.py, and three edits of its Python layer.
Its tests, which are not changed, run on it, then every check of torchext.testing. `--measure FILE`
builds the package as it is as well, in `original/`, and writes what both cost.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORK = ROOT / "build" / "torchlpc"
ARCHIVE = "torchlpc-0.7.2.tar.gz"
SHA256 = "260a765645cdf0112d3fcfcebc41d11855ac52264b3185f24068ad873b1b0be3"
WRITTEN = ["setup.py", "native_functions.yaml", "derivatives.yaml", "torchlpc_formulas.h",
           "original_cpu.cpp", "original_cuda.cu", "skip_registration.h",
           "known_failures.txt"]  # fmt: skip

LOADED = """\
    import torchext

    torchext.load_library(__name__)
"""
LPC = """\
class LPC:
    apply = staticmethod(torch.ops.torchlpc.lpc)
"""
RECURRENCE = """\
class Recurrence:
    @staticmethod
    def apply(decay, impulse, initial_state):
        recurrence = _cuda_recurrence if decay.is_cuda else _cpu_recurrence
        return recurrence(impulse, decay, initial_state)
"""


def fetch() -> Path:
    """The source distribution, whose digest is compared."""
    archive = WORK / ARCHIVE
    if not archive.exists():
        run("-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "torchlpc",
            "--no-build-isolation", "--dest", WORK, "torchlpc==0.7.2")  # fmt: skip
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != SHA256:
        sys.exit(f"error: {archive} has the digest {found}, not {SHA256}")
    return archive


def unpack(archive: Path, name: str) -> Path:
    """A fresh copy of the package in a folder of that name."""
    folder = WORK / name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.unpack_archive(archive, folder)
    (inner,) = folder.iterdir()
    return inner


def port(package: Path) -> None:
    """What is written in the place of its own, and the edits of the Python layer."""
    (package / "pyproject.toml").unlink()
    for name in WRITTEN:
        shutil.copy(HERE / name, package)
    python = package / "torchlpc"
    replace(python / "__init__.py", "    from . import _C\n", LOADED)
    replace(python / "core.py", class_of(python / "core.py", "LPC"), LPC)
    replace(python / "recurrence.py", class_of(python / "recurrence.py", "Recurrence"), RECURRENCE)


def class_of(file: Path, name: str) -> str:
    """The lines of a class."""
    text = file.read_text()
    (found,) = [node for node in ast.parse(text).body if getattr(node, "name", None) == name]
    return "".join(text.splitlines(keepends=True)[found.lineno - 1 : found.end_lineno])


def replace(file: Path, old: str, new: str) -> None:
    """Replace what stands in a file once."""
    text = file.read_text()
    if text.count(old) != 1:
        sys.exit(f"error: {file} is not that of torchlpc 0.7.2")
    file.write_text(text.replace(old, new))


def build(package: Path) -> tuple[float, float]:
    """Build in place; the seconds that it took, and those of all processors together."""
    before, began = os.times(), time.perf_counter()
    run("setup.py", "--quiet", "build_ext", "--inplace", folder=package)
    wall, after = time.perf_counter() - began, os.times()
    user = after.children_user - before.children_user
    return wall, user + after.children_system - before.children_system


def build_twice(package: Path) -> list[tuple[float, float]]:
    """The same from nothing, with an empty cache of torch's headers and with what that left."""
    os.environ["TORCHEXT_CACHE_DIR"] = str(WORK / "cache")
    shutil.rmtree(WORK / "cache", ignore_errors=True)
    taken = []
    for _ in range(2):
        shutil.rmtree(package / "build")
        taken.append(build(package))
    return taken


def packages() -> Path:
    """A folder with what torchlpc imports beside torch."""
    folder = WORK / "packages"
    if not (folder / "numba").exists():
        run("-m", "pip", "install", "--quiet", "--target", folder, "numba>=0.61,<1")
    return folder


def run(*command: str | Path, folder: Path = ROOT, package: Path | None = None) -> None:
    """Run Python, with a package and what it imports on the path; ends where it fails."""
    environment = {**os.environ, "CCACHE_DISABLE": "1"}  # what a build takes is measured
    if package is not None:
        path = [str(package), str(packages()), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    done = subprocess.run([sys.executable, *map(str, command)], cwd=folder, env=environment)
    if done.returncode:
        sys.exit(done.returncode)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--measure", type=Path, help="write what original and port cost, as JSON")
    options = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    archive = fetch()
    ported = unpack(archive, "ported")
    port(ported)
    build(ported)
    run("-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", ported,
        "tests", folder=ported, package=ported)  # fmt: skip
    check = "import torchlpc, torchext.testing as t; t.check('torchlpc', known_failures='{}')"
    run("-c", check.format(ported / "known_failures.txt"), folder=ported, package=ported)
    if options.measure:
        seconds = {}
        seconds["ported"], seconds["ported, headers compiled before"] = build_twice(ported)
        original = unpack(archive, "original")
        seconds["original"] = build(original)
        folders = {"original": original, "ported": ported}
        run(HERE / "measure.py", json.dumps({name: str(at) for name, at in folders.items()}),
            json.dumps(seconds), options.measure.resolve(), package=HERE)  # fmt: skip


if __name__ == "__main__":
    main()
