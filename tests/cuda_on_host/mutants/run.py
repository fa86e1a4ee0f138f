# SPDX-License-Identifier: BSD-3-Clause
"""Changes the CUDA kernels in one place after another, and sees whether the tests find it.

`make cuda-mutants`: each change of changes.txt in a copy of the checkout, whose kernels are built
for the host, and then the tests of tests/cuda that speak of the operator, until one fails. Ends
with 1 where fewer than 57 of 60 are found, or where one that is not found is not explained.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parents[3]
COPY = ROOT / "build" / "cuda_mutants"
CHANGES = Path(__file__).parent / "changes.txt"
LEAST = 0.95
LIMIT = 900  # seconds, of a build and its tests


@dataclass(frozen=True)
class Change:
    """A line of a kernel, and what stands in its place."""

    path: str
    line: str
    occurrence: int  # of the lines like it, from 1; 0 where there is one
    changed: str
    tests: str  # for pytest -k
    unfound: str = ""  # why no test can find it

    def applied(self, code: str) -> str:
        """The file with the change; ends where it has no such line, or several."""
        lines = code.splitlines()
        places = [i for i, line in enumerate(lines) if line == self.line]
        if len(places) < max(1, self.occurrence) or self.occurrence == 0 and len(places) != 1:
            sys.exit(f"error: {self.path} has {len(places)} lines {self.line!r}")
        lines[places[max(0, self.occurrence - 1)]] = self.changed
        return "\n".join(lines) + "\n"

    @property
    def text(self) -> str:
        return f"{self.path}: {self.line.strip()} -> {self.changed.strip()}"


def changes() -> list[Change]:
    """All of changes.txt: a header `== FILE (TESTS)`, then pairs of lines that begin with - and +;
    -2 is the second of such lines. A line `? REASON` behind a pair says why it changes nothing."""
    found: list[Change] = []
    path, tests, before, occurrence = "", "", "", 0
    for number, line in enumerate(CHANGES.read_text(encoding="utf-8").splitlines(), 1):
        if header := re.fullmatch(r"== (\S+) \((.+)\)", line):
            path, tests = header[1], header[2]
        elif pair := re.fullmatch(r"-(\d?) (.*)", line):
            occurrence, before = int(pair[1] or 0), pair[2]
        elif line.startswith("+"):
            changed = line[1:].removeprefix(" ")
            found.append(Change(path, before, occurrence, changed, tests))
        elif line.startswith("? "):
            found.append(replace(found.pop(), unfound=line[2:]))
        elif line and not line.startswith("#"):
            sys.exit(f"error: {CHANGES.name}:{number}: what is this line?")
    return found


def prepare() -> None:
    """Copy the checkout, and build its library."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        (COPY / name).parent.mkdir(parents=True, exist_ok=True)
        if not (COPY / name).exists() or (COPY / name).read_bytes() != (ROOT / name).read_bytes():
            shutil.copy2(ROOT / name, COPY / name)
    status, said = run([sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"], LIMIT)
    if status != 0:
        sys.exit(f"error: the copy was not built\n{said}")


def run(command: list[str], limit: float) -> tuple[int | None, str]:
    """A command in the copy: its status, None where it took too long, and what it said."""
    environment = {**os.environ, "PYTHONPATH": str(COPY), "PYTHONDONTWRITEBYTECODE": "1"}
    environment["COLUMNS"] = "400"  # of pytest's summary
    try:
        done = subprocess.run(
            command, cwd=COPY, env=environment, timeout=limit, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None, "took too long"
    return done.returncode, done.stdout


def tested(tests: str) -> tuple[str, str]:
    """What the tests say of the copy as it is: 'found', 'not found' or 'no build', and by what."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-rfE"]
    command += ["-p", "no:xdist", "-k", tests, "tests/cuda"]
    status, said = run(command, LIMIT)
    failed = [x for x in said.splitlines() if x.startswith(("FAILED", "ERROR"))]
    if status is None:
        return "found", "it does not end"
    if any("were not built" in x for x in failed):
        return "no build", said
    if status < 0:
        return "found", f"the tests die of signal {-status}"
    if status not in (0, 1):  # such as that no test has such a name
        sys.exit(f"error: pytest ended with {status} for {tests!r}\n{said}")
    return ("found", failed[0]) if status else ("not found", "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", metavar="TEXT", default="", help="changes that contain this")
    options = parser.parse_args()
    all_ = [change for change in changes() if options.only in change.text]
    prepare()
    outcome, said = tested("rms_norm or dot or mul or rows")
    if outcome != "not found":
        sys.exit(f"error: the tests fail without a change\n{said}")
    survivors = []
    for number, change in enumerate(all_, 1):
        path = COPY / change.path
        original = path.read_text(encoding="utf-8")
        path.write_text(change.applied(original))
        began = time.monotonic()
        try:
            outcome, said = tested(change.tests)
        finally:
            path.write_text(original)
        if outcome == "no build":
            sys.exit(f"error: {change.text} does not compile\n{said}")
        seconds = time.monotonic() - began
        print(f"{number}: {outcome} ({seconds:.0f} s): {change.text}\n    {said[:200]}", flush=True)
        if outcome == "not found":
            survivors.append(change)
    share = 1 - len(survivors) / len(all_)
    print(f"{len(all_)} changes, {len(all_) - len(survivors)} found")
    for change in survivors:
        print(f"not found: {change.text}\n    {change.unfound or 'not explained'}")
    return int(share < LEAST or not all(change.unfound for change in survivors))


if __name__ == "__main__":
    sys.exit(main())
