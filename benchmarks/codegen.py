# SPDX-License-Identifier: BSD-3-Clause
"""How long the code generator takes, and how that grows with the number of operators.

`python benchmarks/codegen.py [--rounds N]` writes the code for 2,500, 5,000 and 10,000 operators
with a kernel and a formula each, in a process and a folder of their own. The sizes are interleaved;
each figure is the median over rounds, with the least and the most, and as a ratio to the smallest.
All folders stay until the end: ext4 takes ten times as long to make a file in the seconds after
many were deleted, because it passes over their inodes.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SIZES = (2_500, 5_000, 10_000)
ENTRY = "- func: op{i}(Tensor x, int n=1) -> Tensor\n  dispatch:\n    CPU: op{i}_cpu\n"
FORMULA = "- name: op{i}(Tensor x, int n=1) -> Tensor\n  x: grad * n\n"


def seconds(operators: int, folder: str) -> float:
    """Seconds of one run of the command line, files written below the folder."""
    own = Path(tempfile.mkdtemp(dir=folder))
    command = [sys.executable, "-m", "codegen", "--namespace", "lib", "--out", str(own / "out")]
    for option, text in (("native-functions", ENTRY), ("derivatives", FORMULA)):
        path = own / f"{option}.yaml"
        path.write_text("".join(text.format(i=i) for i in range(operators)))
        command += [f"--{option}", str(path)]
    begin = time.perf_counter()
    subprocess.run(command, check=True, cwd=ROOT)
    return time.perf_counter() - begin


def main() -> None:
    """Print a row for each size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    count = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        rounds = [[seconds(n, folder) for n in SIZES] for _ in range(count)]
    print("| operators | seconds | least | most | ratio |\n| --- | --- | --- | --- | --- |")
    for place, operators in enumerate(SIZES):
        column = [row[place] for row in rounds]
        ratio = statistics.median(row[place] / row[0] for row in rounds)
        figures = f"{statistics.median(column):.2f} | {min(column):.2f} | {max(column):.2f}"
        print(f"| {operators:,} | {figures} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
