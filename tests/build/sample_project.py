# SPDX-License-Identifier: BSD-3-Clause
"""A copy of `sample/` that tests build, change and build again."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

SAMPLE = Path(__file__).parent / "sample"
ROOT = Path(__file__).parents[2]


COMMAND = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]


def flags(*more: str) -> dict[str, str]:
    """The environment of a build, not optimised, which is done sooner, and with further flags."""
    return {"CXXFLAGS": shlex.join(["-O0", *more])}


@dataclass(frozen=True)
class Build:
    """What one run of the build printed."""

    status: int
    text: str

    @property
    def compiled(self) -> list[str]:
        """Sources that were compiled, relative to the project."""
        return sorted(re.findall(r"^\[\d+/\d+\] (\S+)$", self.text, re.MULTILINE))

    @property
    def linked(self) -> bool:
        return re.search(r"^linking ", self.text, re.MULTILINE) is not None


class Project:
    """A sample project in its own folder."""

    def __init__(self, folder: Path):
        shutil.copytree(SAMPLE, folder, dirs_exist_ok=True)
        self.folder = folder

    @property
    def package(self) -> Path:
        return self.folder / "sample_ops"

    def build(self, *, python: str = sys.executable, **environment: str) -> Build:
        return run([python, *COMMAND[1:]], self.folder, **{**flags(), **environment})

    def start(self, stdout: int = subprocess.DEVNULL, **environment: str) -> subprocess.Popen:
        """Start a build, in a process group of its own."""
        return subprocess.Popen(
            COMMAND,
            cwd=self.folder,
            env={**os.environ, **flags(), **environment},
            start_new_session=True,
            stdout=stdout,
            stderr=subprocess.STDOUT,
        )

    def edit(self, path: str, old: str, new: str) -> None:
        text = (self.folder / path).read_text()
        assert old in text, f"{path} does not contain {old!r}"
        (self.folder / path).write_text(text.replace(old, new))

    def keep(self, folder: Path) -> None:
        """Keep all files as they are, built ones and times of change too, for restore()."""
        self._kept = shutil.copytree(self.folder, folder, symlinks=True)

    def restore(self) -> None:
        shutil.rmtree(self.folder)
        shutil.copytree(self._kept, self.folder, symlinks=True)


def run(command: list[str], folder: Path, **environment: str) -> Build:
    """Run a command to its end; "" as a value takes the variable out of the environment."""
    variables = {k: v for k, v in {**os.environ, **environment}.items() if v != ""}
    done = subprocess.run(
        command, cwd=folder, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    return Build(done.returncode, done.stdout.decode())


def python(code: str, folder: Path, interpreter: str = sys.executable) -> Build:
    """Run Python code in `folder`, whose modules it can import."""
    return run([interpreter, "-c", code], folder)
