# SPDX-License-Identifier: BSD-3-Clause
"""What a call costs, beside torch's own: `python benchmarks/call_overhead.py [--out FILE]`.

Multiplies two tensors of 16 floats on one thread, so that what is timed is the call. The
alternatives are interleaved in one run; each figure is the median over rounds, with the quartiles,
and as a ratio to torch.ops.aten.mul.Tensor of the same round.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch

import torchext.ops  # noqa: F401  registers namespace myns

Mul = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
REFERENCE = "torch.ops.aten.mul.Tensor"


@torch.library.custom_op("torchext_benchmark::mul", mutates_args=())
def python_mul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The same operator by torch.library.custom_op, for comparison."""
    return a * b


python_mul.register_autograd(
    lambda ctx, grad: (grad * ctx.saved_tensors[1], grad * ctx.saved_tensors[0]),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
)

ALTERNATIVES: dict[str, Mul] = {
    "torch.mul": torch.mul,
    REFERENCE: torch.ops.aten.mul.Tensor,
    "torch.ops.myns.mul": torch.ops.myns.mul,
    "torch.ops.myns.mul.Tensor": torch.ops.myns.mul.Tensor,
    "torch.library.custom_op": python_mul,
}


def microseconds(mul: Mul, mode: str, calls: int) -> float:
    """Time of one call, in microseconds, in the mode "no_grad", "recording" or "backward"."""
    a, b = (torch.randn(16, requires_grad=mode != "no_grad") for _ in range(2))
    start = time.perf_counter()
    if mode == "backward":
        for _ in range(calls):
            mul(a, b).sum().backward()
    else:
        for _ in range(calls):
            mul(a, b)
    return (time.perf_counter() - start) / calls * 1e6


def measure(mode: str, rounds: int, calls: int) -> dict[str, dict[str, float]]:
    """Median, quartiles and median ratio to the reference of every alternative."""
    times: dict[str, list[float]] = {name: [] for name in ALTERNATIVES}
    for round_ in range(rounds + 2):
        for name, mul in ALTERNATIVES.items():
            time_ = microseconds(mul, mode, calls)
            if round_ >= 2:  # the first two warm up
                times[name].append(time_)
    ratios = {
        name: [t / r for t, r in zip(found, times[REFERENCE])] for name, found in times.items()
    }
    return {
        name: {
            "median_us": statistics.median(found),
            "quartiles_us": statistics.quantiles(found, n=4)[::2],
            "ratio": statistics.median(ratios[name]),
        }
        for name, found in times.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    options = parser.parse_args()
    torch.set_num_threads(1)
    results = {
        m: measure(m, options.rounds, options.calls) for m in ("no_grad", "recording", "backward")
    }
    for mode, figures in results.items():
        print(f"{mode}: microseconds a call (quartiles), ratio to {REFERENCE}")
        for name, f in figures.items():
            low, high = f["quartiles_us"]
            print(f"  {name:28} {f['median_us']:7.2f} ({low:.2f}-{high:.2f})  {f['ratio']:.2f}x")
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        content = {"torch": torch.__version__, "rounds": options.rounds, "results": results}
        options.out.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
