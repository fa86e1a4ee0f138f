# SPDX-License-Identifier: BSD-3-Clause
"""What torchext.override costs: aten::add of 16 floats on one thread, without gradients.

`python benchmarks/override.py [--rounds N] [--out FILE]` times the call before anything is
installed, with the kernel installed and switched off, with a C++ operator in its place and with a
Python function. What is installed stays, so each figure is from processes of its own: the kinds
take turns, N times, and a figure is the median over their processes, with the quartiles.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

KINDS = {
    "before": "before anything is installed",
    "off": "installed and switched off",
    "operator": "switched on, a C++ operator (myns::add)",
    "function": "switched on, a Python function that calls torch.add",
}
CALLS, REPEATS = 500, 200


def measure(kind: str) -> float:
    """The microseconds of one call, the best of several repeats, in this process."""
    import torch

    import torchext.ops  # noqa: F401  myns::add

    torch.set_num_threads(1)
    a, b = torch.randn(2, 16)
    kernel = "myns::add.Tensor"
    if kind == "function":

        def kernel(self, other, *, alpha=1):
            return torch.add(self, other, alpha=alpha)

    if kind == "before":
        return best(a, b)
    override = torchext.override("aten::add.Tensor", kernel)
    if kind == "off":
        return best(a, b)
    with override:
        return best(a, b)


def best(a, b) -> float:
    import torch

    add, times = torch.add, []
    with torch.no_grad():
        for _ in range(REPEATS):
            start = time.perf_counter()
            for _ in range(CALLS):
                add(a, b)
            times.append((time.perf_counter() - start) / CALLS * 1e6)
    return min(times)


def measured_apart(kind: str) -> float:
    command = [sys.executable, __file__, "--kind", kind]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--kind", choices=KINDS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.kind:
        print(measure(options.kind))
        return
    times: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for _ in range(options.rounds):
        for kind in KINDS:
            times[kind].append(measured_apart(kind))
    found = {}
    for kind, values in times.items():
        low, median, high = statistics.quantiles(values, n=4)
        found[kind] = {"median": median, "quartiles": [low, high]}
        print(f"{KINDS[kind]:55} {median:6.2f} us  ({low:.2f} to {high:.2f})")
    if options.out:
        options.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
