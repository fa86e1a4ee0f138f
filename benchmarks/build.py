# SPDX-License-Identifier: BSD-3-Clause
"""What a build costs: the README's library of two operators, beside the same two written by hand.

`python benchmarks/build.py [--rounds N] [--myns] [--out FILE]` builds both in place, in new folders
and without ccache: from nothing with an empty cache, from nothing with what that left in the cache,
after a line of a kernel, after a formula, and after nothing. The two take turns, N times. A figure
is in seconds of processors, user and system, of the build and all that it starts: the median over
the rounds, with the least and the most; a ratio is of one round, to the hand-written library from
nothing. `--myns` builds the operators of this checkout too, once, with the cache filled.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_FILE = re.compile(r"^`([\w./]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
BY_HAND, EDITED_BY_HAND = "by hand, from nothing", "by hand, after a line of a kernel"
ROWS = (
    BY_HAND,
    EDITED_BY_HAND,
    "torchext, empty cache",
    "torchext, filled cache",
    "torchext, after a line of a kernel",
    "torchext, after a formula",
    "torchext, after nothing",
)


def cost(folder: Path, cache: Path) -> tuple[float, int]:
    """Build in place; return seconds of processors, and the bytes of the largest process."""
    paths = filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
    environ = {
        **os.environ,
        "CCACHE_DISABLE": "1",
        "TORCHEXT_CACHE_DIR": str(cache),
        "PYTHONPATH": os.pathsep.join(paths),
    }
    with open(folder / "benchmark.log", "ab") as log:
        process = subprocess.Popen(_COMMAND, cwd=folder, env=environ, stdout=log, stderr=log)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit((folder / "benchmark.log").read_text(errors="replace"))
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10


def edit(path: Path, old: str, new: str) -> None:
    """Change a text that is there."""
    text = path.read_text(encoding="utf-8")
    if old not in text:
        raise SystemExit(f"{path} has no {old!r}: it is not what this measures")
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def one_round(folder: Path) -> dict[str, tuple[float, int]]:
    """The cost of each row, in a new folder."""
    cache, by_hand, own, other = (folder / n for n in ("cache", "by_hand", "own", "other"))
    shutil.copytree(ROOT / "benchmarks" / "by_hand", by_hand)
    for project in (own, other):
        for name, text in _FILE.findall((ROOT / "README.md").read_text(encoding="utf-8")):
            path = project / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    steps: dict[str, tuple[Path, Callable[[], None]]] = {
        BY_HAND: (by_hand, lambda: None),
        ROWS[2]: (other, lambda: None),
        EDITED_BY_HAND: (by_hand, lambda: edit(by_hand / "ops.cpp", "> 0 ?", ">= 0 ?")),
        ROWS[3]: (own, lambda: None),
        ROWS[4]: (own, lambda: edit(own / "kernels.cpp", "> 0 ?", ">= 0 ?")),
        ROWS[5]: (own, lambda: edit(own / "derivatives.yaml", "grad * 2 *", "2 * grad *")),
        ROWS[6]: (own, lambda: None),
    }
    costs = {}
    for row, (project, prepare) in steps.items():
        prepare()
        costs[row] = cost(project, cache)
        print(f"{row}: {costs[row][0]:.1f} s", file=sys.stderr, flush=True)
    return costs


def of_myns(folder: Path) -> tuple[float, int]:
    """The cost of this checkout's operators, and of its runtime module, from nothing."""
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for name in filter(None, tracked.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return cost(folder, folder.parent / "cache")


def table(rounds: list[dict[str, tuple[float, int]]]) -> list[dict]:
    """A record for each row."""
    found = []
    for row in ROWS:
        seconds = [costs[row][0] for costs in rounds]
        ratios = [costs[row][0] / costs[BY_HAND][0] for costs in rounds]
        found.append(
            {
                "build": row,
                "seconds": round(statistics.median(seconds), 1),
                "least": round(min(seconds), 1),
                "most": round(max(seconds), 1),
                "ratio": round(statistics.median(ratios), 2),
                "largest_process_mib": max(costs[row][1] for costs in rounds) >> 20,
            }
        )
    return found


def main() -> None:
    """Print the table, and write it where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--myns", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rounds = []
    with tempfile.TemporaryDirectory() as parent:
        for index in range(options.rounds):
            folder = Path(parent) / str(index)
            rounds.append(one_round(folder))
            shutil.rmtree(folder / "cache" if index + 1 < options.rounds else folder / "own")
        content = {"rows": table(rounds)}
        if options.myns:
            seconds, largest = of_myns(folder / "myns")
            content["myns"] = {"seconds": round(seconds, 1), "largest_process_mib": largest >> 20}
    print("| build | seconds | least to most | ratio | MiB |\n| --- | --- | --- | --- | --- |")
    for row in content["rows"]:
        spread = f"{row['least']} to {row['most']}"
        figures = f"{row['seconds']} | {spread} | {row['ratio']} | {row['largest_process_mib']}"
        print(f"| {row['build']} | {figures} |")
    if "myns" in content:
        print(f"myns, filled cache: {content['myns']}")
    if options.out:
        options.out.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
