# SPDX-License-Identifier: BSD-3-Clause
"""What operators that are expressions cost beside torch's operators and Inductor.

`python benchmarks/expressions.py [--out FILE]` builds a library of expressions, and runs each of
them beside the same computed by torch's operators in turn and by Inductor, forward without
gradients, and forward with backward: of elements tensors of several sizes, of rows 262,144 elements
in rows of several lengths. The alternatives are interleaved in one run, on one thread and
on two; each figure is the median over rounds of a round's mean, with the quartiles, and as a ratio
to torch eager of the same round.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F

import torchext

ROOT = Path(__file__).resolve().parent.parent
SPEC = """
- func: sigmoid(Tensor x) -> Tensor
  pointwise: sigmoid(x)
- func: product(Tensor x, Tensor y) -> Tensor
  pointwise: x * y
- func: gelu(Tensor x) -> Tensor
  pointwise: gelu(x)
- func: swiglu(Tensor x, Tensor y) -> Tensor
  pointwise: silu(x) * y
- func: chain(Tensor x, Tensor y) -> Tensor
  pointwise: tanh(x * y + x) * sigmoid(y)
- func: rms_norm(Tensor x, Tensor? weight=None, float eps=1e-6) -> Tensor
  rows: x * rsqrt(mean(x ** 2) + eps) * (1 if weight is None else weight)
- func: layer_norm(Tensor x, Tensor? weight=None, Tensor? bias=None, float eps=1e-5) -> Tensor
  let:
    distance: x - mean(x)
    normal: distance * rsqrt(mean(distance ** 2) + eps)
  rows: normal * (1 if weight is None else weight) + (0 if bias is None else bias)
- func: softmax(Tensor x) -> Tensor
  rows: softmax(x)
- func: logsumexp(Tensor x) -> Tensor
  rows: logsumexp(x)
- func: cross_entropy(Tensor x, Tensor target) -> Tensor
  rows: logsumexp(x) - x[target]
- func: silu_and_mul(Tensor x) -> Tensor
  rows: silu(x[:n // 2]) * x[n // 2:]
"""
SETUP = """
from setuptools import setup
from torchext.build import BuildExtension, OpLibrary
library = OpLibrary("expressions_library", namespace="bench_expressions", native_functions="n.yaml")
setup(name="expressions_library", ext_modules=[library], cmdclass={"build_ext": BuildExtension})
"""
WITH_TORCH: dict[str, Callable[..., torch.Tensor]] = {
    "sigmoid": torch.sigmoid,
    "product": torch.mul,
    "gelu": F.gelu,
    "swiglu": lambda x, y: F.silu(x) * y,
    "chain": lambda x, y: torch.tanh(x * y + x) * torch.sigmoid(y),
}


def silu_and_mul(x: torch.Tensor) -> torch.Tensor:
    gate, up = x.chunk(2, -1)
    return F.silu(gate) * up


# Of rows, with what their arguments are: E has rows, W belongs to all of them, I is an index.
OF_ROWS: dict[str, tuple[Callable[..., torch.Tensor], str]] = {
    "rms_norm": (lambda x, weight: F.rms_norm(x, x.shape[-1:], weight, 1e-6), "EW"),
    "layer_norm": (lambda x, weight, bias: F.layer_norm(x, x.shape[-1:], weight, bias), "EWW"),
    "softmax": (lambda x: x.softmax(-1), "E"),
    "logsumexp": (lambda x: x.logsumexp(-1), "E"),
    "cross_entropy": (lambda x, target: F.cross_entropy(x, target, reduction="none"), "EI"),
    "silu_and_mul": (silu_and_mul, "E"),
}
SIZES = (64, 4096, 65536, 1048576)
LENGTHS = (64, 1024, 65536)
ELEMENTS = 2**18  # of all rows together
DTYPES = (torch.float32, torch.bfloat16, torch.float64)
Alternatives = dict[str, Callable[[], object]]


def library(folder: Path):
    """The operators, built by the public path."""
    (folder / "n.yaml").write_text(SPEC)
    (folder / "setup.py").write_text(SETUP)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)]),
    }
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    subprocess.run(command, check=True, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
    return torchext.load_library(folder / "expressions_library.so")


def measured(alternatives: Alternatives, rounds: int, seconds: float) -> dict[str, list[float]]:
    """Microseconds of a call, by alternative and round."""
    calls = {}
    for name, run in alternatives.items():
        run()
        start = time.perf_counter()
        run()
        calls[name] = max(1, int(seconds / (time.perf_counter() - start)))
    found: dict[str, list[float]] = {name: [] for name in alternatives}
    for _ in range(rounds):
        for name, run in alternatives.items():
            start = time.perf_counter()
            for _ in range(calls[name]):
                run()
            found[name].append((time.perf_counter() - start) / calls[name] * 1e6)
    return found


def summary(times: dict[str, list[float]]) -> dict[str, dict[str, list[float]]]:
    """Quartiles of the times, and of their ratios to torch's of the same round."""

    def quartiles(values: list[float]) -> list[float]:
        return [round(value, 3) for value in statistics.quantiles(values, n=4)]

    eager = times["eager"]
    return {
        name: {
            "us": quartiles(own),
            "ratio": quartiles([a / b for a, b in zip(own, eager, strict=True)]),
        }
        for name, own in times.items()
    }


def alternatives(ops, name: str, given: list[torch.Tensor], with_backward: bool) -> Alternatives:
    plain = WITH_TORCH.get(name) or OF_ROWS[name][0]
    torch._dynamo.reset()  # each size is compiled for itself
    kinds = {
        "eager": plain,
        "inductor": torch.compile(plain, dynamic=False),
        "expression": getattr(ops, name),
    }
    if not with_backward:
        return {kind: lambda f=f: f(*given) for kind, f in kinds.items()}
    leaves = [x for x in given if x.requires_grad]
    grad = torch.ones_like(plain(*given))
    return {
        kind: lambda f=f: torch.autograd.grad(f(*given), leaves, grad) for kind, f in kinds.items()
    }


def arguments(ops, name: str, size: int, dtype: torch.dtype) -> list[torch.Tensor]:
    """Tensors of a size, or rows of a length."""
    if name in WITH_TORCH:
        count = len(getattr(ops, name).default._schema.arguments)
        return [torch.randn(size).to(dtype) for _ in range(count)]
    rows = ELEMENTS // size
    made = {
        "E": lambda: torch.randn(rows, size).to(dtype),
        "W": lambda: torch.randn(size).to(dtype),
        "I": lambda: torch.randint(0, size, (rows,)),
    }
    return [made[kind]() for kind in OF_ROWS[name][1]]


def plot(rows: list[dict], file: Path) -> None:
    """Ratios to torch eager on one thread in float32: of the most elements, and of rows of 1,024;
    needs matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4), sharey=True)
    for axis, with_backward in zip(axes, (False, True)):
        shown = [
            row for row in rows
            if row["dtype"] == "float32" and row["threads"] == 1
            and row["backward"] == with_backward and row["size"] in (SIZES[-1], LENGTHS[1])
        ]  # fmt: skip
        names = [row["operator"] for row in shown][::-1]
        for offset, kind in ((0.2, "expression"), (-0.2, "inductor")):
            ratios = [row[kind]["ratio"][1] for row in shown][::-1]
            places = [index + offset for index in range(len(names))]
            bars = axis.barh(places, ratios, 0.38, label=kind)
            axis.bar_label(bars, [f"{ratio:.2f}x" for ratio in ratios], padding=3, fontsize=8)
        axis.set_yticks(range(len(names)), names)
        axis.axvline(1.0, color="black", linewidth=0.8)
        axis.set_title("forward with backward" if with_backward else "forward")
        axis.set_xlabel("time / time of torch eager")
        axis.margins(x=0.15)
    axes[0].legend()
    figure.tight_layout()
    figure.savefig(file, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--plot", type=Path, help="draw ratios, as PNG")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=0.004, help="of each round")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        ops = library(Path(folder))
        for threads in options.threads:
            torch.set_num_threads(threads)
            for name in (*WITH_TORCH, *OF_ROWS):
                for dtype in DTYPES:
                    for size in SIZES if name in WITH_TORCH else LENGTHS:
                        for with_backward in (False, True):
                            given = arguments(ops, name, size, dtype)
                            for x in given:
                                x.requires_grad_(with_backward and x.is_floating_point())
                            made = alternatives(ops, name, given, with_backward)
                            found = summary(measured(made, options.rounds, options.seconds))
                            place = {
                                "operator": name, "threads": threads, "size": size,
                                "dtype": str(dtype).removeprefix("torch."),
                                "backward": with_backward,
                            }  # fmt: skip
                            rows.append({**place, **found})
                            shown = {k: v["ratio"][1] for k, v in found.items()}
                            print(*place.values(), shown, flush=True)
    if options.plot:
        plot(rows, options.plot)
    if options.out:
        about = {
            "torch": torch.__version__,
            "capability": torch.backends.cpu.get_cpu_capability(),
            "machine": platform.machine(),
        }
        options.out.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
