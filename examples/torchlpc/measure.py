# SPDX-License-Identifier: BSD-3-Clause
"""What a call of torchlpc costs, as it is and ported, and what each is written in.

Run by port.py. Both define `torch.ops.torchlpc`, so that each has a process of its own; those
alternate, and a ratio is one of two that ran one after the other.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

PAIRS = 9
CALLS = 1000


def calls() -> dict[str, float]:
    """Microseconds of a call on small tensors, by situation, in this process."""
    import torch
    import torchlpc

    torch.set_num_threads(1)
    torch.manual_seed(0)
    found = {}
    for order, name in ((2, "lpc"), (1, "scan")):
        x, a = torch.randn(2, 8), torch.rand(2, 8, order) / 4
        found[f"{name}, forward"] = _microseconds(lambda: torchlpc.sample_wise_lpc(x, a))
        x.requires_grad_()
        a.requires_grad_()
        found[f"{name}, forward and backward"] = _microseconds(
            lambda: torchlpc.sample_wise_lpc(x, a).sum().backward()
        )
    return found


def _microseconds(call) -> float:
    for _ in range(CALLS // 10):
        call()
    began = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - began) / CALLS * 1e6


def probes() -> dict[str, bool]:
    """Whether transforms of a call work at all, in this process."""
    import torch
    import torchlpc

    x, a = torch.randn(2, 8), torch.rand(2, 8, 2) / 4
    loss = lambda x: torchlpc.sample_wise_lpc(x, a).square().sum()  # noqa: E731
    called = {
        "torch.compile(fullgraph=True)": lambda: torch.compile(loss, fullgraph=True)(x),
        "its gradient": lambda: torch.compile(loss, fullgraph=True)(x.requires_grad_()).backward(),
        "torch.export": lambda: torch.export.export(_model(torchlpc, a), (x.detach(),)),
        "torch.func.grad": lambda: torch.func.grad(loss)(x),
        "torch.func.hessian": lambda: torch.func.hessian(loss)(x),
        "the device meta": lambda: torchlpc.sample_wise_lpc(x.to("meta"), a.to("meta")),
        "the gradient of torch.ops.torchlpc.lpc": lambda: _same_gradient(
            lambda x: torch.ops.torchlpc.lpc(x, a, torch.zeros(2, 2)).square().sum(), loss, x
        ),
    }
    return {name: _works(call) for name, call in called.items()}


def _model(torchlpc, a):
    import torch

    class Model(torch.nn.Module):
        def forward(self, x):
            return torchlpc.sample_wise_lpc(x, a)

    return Model()


def _same_gradient(loss, expected, x):
    import torch

    found = []
    for function in (loss, expected):
        leaf = x.detach().clone().requires_grad_()
        function(leaf).backward()
        found.append(leaf.grad)
    torch.testing.assert_close(*found)


def _works(call) -> bool:
    try:
        call()
    except Exception:
        return False
    return True


def lines(package: Path) -> dict[str, int]:
    """The lines, without those that are empty or a comment, of what is not a kernel."""
    if (package / "native_functions.yaml").exists():
        files = ["native_functions.yaml", "derivatives.yaml", "torchlpc_formulas.h", "setup.py",
                 "original_cpu.cpp", "original_cuda.cu", "skip_registration.h"]  # fmt: skip
    else:
        files = ["setup.py"]
    files += ["torchlpc/core.py", "torchlpc/recurrence.py", "torchlpc/__init__.py"]
    return {file: _count(package / file) for file in files}


def _count(file: Path) -> int:
    comment = "#" if file.suffix in (".py", ".yaml") else "//"
    kept = (line.strip() for line in file.read_text().splitlines())
    return sum(bool(line) and not line.startswith(comment) for line in kept)


def _said_by(package: str, what: str):
    path = os.pathsep.join([package, os.environ["PYTHONPATH"]])
    done = subprocess.run(
        [sys.executable, __file__, what], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": path}, cwd=package,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def main(packages: str, seconds: str, out: str) -> None:
    import torch

    folders = json.loads(packages)
    times: dict[str, list[dict[str, float]]] = {name: [] for name in folders}
    for _ in range(PAIRS):
        for name, folder in folders.items():
            times[name].append(_said_by(folder, "calls"))
    found = {}
    for situation in times["original"][0]:
        before, after = ([run[situation] for run in times[n]] for n in ("original", "ported"))
        ratios = [b / a for a, b in zip(before, after)]
        found[situation] = {
            "original_us": statistics.median(before),
            "ported_us": statistics.median(after),
            "ratio": statistics.median(ratios),
            "ratio_quartiles": statistics.quantiles(ratios, n=4)[::2],
        }
    content = {
        "torch": torch.__version__,
        "machine": f"{platform.machine()}, {os.cpu_count()} processors",
        "build_seconds": {n: {"wall": w, "cpu": c} for n, (w, c) in json.loads(seconds).items()},
        "lines": {name: lines(Path(folder)) for name, folder in folders.items()},
        "works": {name: _said_by(folder, "probes") for name, folder in folders.items()},
        "calls": found,
    }
    Path(out).write_text(json.dumps(content, indent=2) + "\n")
    print(json.dumps(content, indent=2))


if __name__ == "__main__":
    if sys.argv[1:] in (["calls"], ["probes"]):
        print(json.dumps({"calls": calls, "probes": probes}[sys.argv[1]]()))
    else:
        main(*sys.argv[1:])
