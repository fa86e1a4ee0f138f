# SPDX-License-Identifier: BSD-3-Clause
"""What is known of the CUDA kernels' speed without a GPU: their machine code, and what they move.

`python benchmarks/cuda_code.py` needs nvcc and nvdisasm, and takes some minutes. Writes
benchmarks/results/cuda_code.json: a line for each kernel of csrc/cuda and architecture
(torchext.testing.cuda_code), without those that torch's headers bring, and one for each call of an
operator that runs them (torchext.testing.cuda_on_host.traffic). The digest is of the kernels' files
without their comments: a test says when the table is of others. Kernels of expressions have a test
of their own, tests/cuda/test_expression_code.py.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path

import torch

import torchext.ops  # noqa: F401  registers namespace myns
from torchext.testing import cuda_code
from torchext.testing.cuda_on_host import traffic
from torchext.toolchain import cuda
from torchext.toolchain.cuda_tokens import tokens_of

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "cuda_code.json"
OF_EXPRESSIONS = ("rows_kernel", "dense_kernel", "strided_kernel")


def digest() -> str:
    """Of the kernels' files, without their comments and spaces."""
    found = hashlib.sha256()
    for path in sorted((ROOT / "csrc" / "cuda").iterdir()):
        words = [t.text for t in tokens_of(path.read_text(encoding="utf-8")) if t.is_solid]
        found.update("".join([path.name, *words]).encode())
    return found.hexdigest()


def lines_of(rows: list[dict]) -> str:
    return "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]"


def main() -> None:
    written = sorted(path.name for path in (ROOT / "csrc" / "cuda").glob("*.cu"))
    found = cuda_code.kernels("torchext", project=ROOT, sources=written)
    kernels = [kernel for kernel in found if not kernel.kernel.startswith("at::")]
    moved = [
        counted
        for counted in traffic.traffic("torchext", project=ROOT)
        if not any(launch.kernel.startswith(OF_EXPRESSIONS) for launch in counted.launches)
    ]
    print(cuda_code.table(kernels))
    print(traffic.table(moved))
    about = {
        "nvcc": cuda.toolkit_release(f"{cuda.find_toolkit()}/bin/nvcc"),
        "torch": torch.__version__,
        "digest": digest(),
    }
    parts = {
        **{name: json.dumps(value) for name, value in about.items()},
        "kernels": lines_of([asdict(kernel) for kernel in kernels]),
        "traffic": lines_of([{**asdict(counted), "ratio": counted.ratio} for counted in moved]),
    }
    text = ",\n".join(f"{json.dumps(name)}: {value}" for name, value in parts.items())
    RESULTS.write_text(f"{{\n{text}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
