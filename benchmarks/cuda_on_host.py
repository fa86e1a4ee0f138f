# SPDX-License-Identifier: BSD-3-Clause
"""What kernels on the host cost: how large the tensors of tests may be, and how many launches they.

Seconds on one core, through the dispatcher: rms_norm of 512 x 4096, and 10,000 launches of one
block of softmax. Prints the median of some rounds with the least and the most, and writes
benchmarks/results/cuda_on_host.json.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import torch

import torchext.ops  # noqa: F401  registers namespace myns
from torchext.testing import cuda_on_host

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "cuda_on_host.json"
LAUNCHES = 10_000


def seconds(f) -> float:
    began = time.perf_counter()
    f()
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    device = cuda_on_host.load("torchext", ROOT)
    ops = torch.ops.myns
    x, weight = torch.randn(512, 4096).to(device), torch.randn(4096).to(device)
    small, out = torch.randn(50).to(device), torch.empty(50).to(device)

    def launches() -> None:
        for _ in range(LAUNCHES):
            ops.softmax.out(small, 0, out=out)

    before = cuda_on_host.launches()
    launches()
    assert cuda_on_host.launches() - before == LAUNCHES
    subjects = {
        "rms_norm of 512 x 4096": lambda: ops.rms_norm(x, weight, 1e-6),
        f"{LAUNCHES} launches of one block": launches,
    }
    times = {name: [] for name in subjects}
    for _ in range(rounds):
        for name, f in subjects.items():
            times[name].append(seconds(f))
    found = {
        name: {"median": statistics.median(t), "least": min(t), "most": max(t)}
        for name, t in times.items()
    }
    for name, t in found.items():
        print(f"{name}: {t['median']:.3f} s ({t['least']:.3f} to {t['most']:.3f})")
    RESULTS.write_text(json.dumps({"torch": torch.__version__, "seconds": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
