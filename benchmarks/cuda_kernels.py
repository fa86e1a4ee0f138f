# SPDX-License-Identifier: BSD-3-Clause
"""What the CUDA kernels take beside torch's own operators, on tensors larger than caches.

`python benchmarks/cuda_kernels.py [--out FILE]` needs a GPU. Each operator runs forward, and where
it has a formula backward too, on tensors of 8192 x 4096 in float32 and bfloat16; what torch has no
operator for is written in torch's operators. The two are interleaved in one run; each figure is the
median over rounds of the time between two events on the GPU, with the quartiles of the ratio to
torch's of the same round. Where a kernel is shorter than its launch, or there is none, as in the
backward of add, that is the time of the launch.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from pathlib import Path

import torch
from torch.nn import functional

import torchext.ops  # noqa: F401  registers namespace myns

Function = Callable[..., torch.Tensor]
SHAPE = (8192, 4096)
DTYPES = (torch.float32, torch.bfloat16)
CALLS = 10  # between two events


def _silu_and_mul(input: torch.Tensor) -> torch.Tensor:
    gate, up = input.chunk(2, -1)
    return functional.silu(gate) * up


def _rms_norm(input: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return functional.rms_norm(input, input.shape[-1:], weight, 1e-6)


def alternatives() -> dict[str, tuple[Function, Function, int, bool]]:
    """By name: ours, torch's, the number of tensors, and whether the last is a row's."""
    ops = torch.ops.myns
    return {
        "add": (ops.add, torch.add, 2, False),
        "mul": (ops.mul, torch.mul, 2, False),
        "sin": (ops.sin, torch.sin, 1, False),
        "sigmoid": (ops.sigmoid, torch.sigmoid, 1, False),
        "softmax": (lambda x: ops.softmax(x, -1), lambda x: torch.softmax(x, -1), 1, False),
        "cumsum": (lambda x: ops.cumsum(x, -1), lambda x: torch.cumsum(x, -1), 1, False),
        "rms_norm": (ops.rms_norm, _rms_norm, 2, True),
        "silu_and_mul": (ops.silu_and_mul, _silu_and_mul, 1, False),
    }


def calls(function: Function, tensors: list[torch.Tensor], backward: bool) -> Callable[[], None]:
    """What is timed: the forward pass without gradients, or the backward pass alone."""
    if not backward:

        def forward() -> None:
            with torch.no_grad():
                function(*tensors)

        return forward
    leaves = [t.detach().requires_grad_() for t in tensors]
    result = function(*leaves)
    grad = torch.randn_like(result)
    return lambda: torch.autograd.grad(result, leaves, grad, retain_graph=True) and None


def milliseconds(call: Callable[[], None]) -> float:
    """The time of one call between two events on the GPU."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(CALLS):
        call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / CALLS


def measure(dtype: torch.dtype, rounds: int) -> dict[str, dict]:
    """Of every operator and pass the medians and quartiles."""
    found = {}
    for name, (ours, torchs, count, has_weight) in alternatives().items():
        tensors = [torch.randn(SHAPE, device="cuda", dtype=dtype) for _ in range(count)]
        if has_weight:
            tensors[-1] = torch.randn(SHAPE[-1:], device="cuda", dtype=dtype)
        for backward in (False, True):
            pair = [calls(function, tensors, backward) for function in (ours, torchs)]
            times = [[milliseconds(call) for call in pair] for _ in range(rounds + 3)][3:]
            ratios = [own / reference for own, reference in times]
            found[f"{name} {'backward' if backward else 'forward'}"] = {
                "median_ms": statistics.median(own for own, _ in times),
                "torch_median_ms": statistics.median(reference for _, reference in times),
                "ratio": statistics.median(ratios),
                "ratio_quartiles": statistics.quantiles(ratios, n=4)[::2],
            }
    return found


def table(results: dict[str, dict]) -> str:
    """The results as text."""
    lines = []
    for dtype, figures in results.items():
        lines.append(f"{dtype}: milliseconds, torch's, ratio (quartiles)")
        for name, f in figures.items():
            low, high = f["ratio_quartiles"]
            lines.append(
                f"  {name:24} {f['median_ms']:8.3f} {f['torch_median_ms']:8.3f} "
                f"{f['ratio']:6.2f}x ({low:.2f}-{high:.2f})"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    options = parser.parse_args()
    torch.manual_seed(0)
    results = {str(dtype): measure(dtype, options.rounds) for dtype in DTYPES}
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {SHAPE[0]} x {SHAPE[1]}")
    print(table(results))
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        content = {
            "torch": torch.__version__,
            "device": torch.cuda.get_device_name(),
            "shape": SHAPE,
            "rounds": options.rounds,
            "results": results,
        }
        options.out.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
