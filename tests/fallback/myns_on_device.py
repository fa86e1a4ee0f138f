# SPDX-License-Identifier: BSD-3-Clause
"""Runs every operator of myns on the test device, in a process of its own: it registers kernels.

    python myns_on_device.py BUILD_DIRECTORY

prints one JSON object: operator -> what fell back, or how it differs from the CPU; and what mode
`error` does to a program that falls back in its third call.
"""

import json
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / "ops"), str(Path(__file__).parents[2])]

import torch  # noqa: E402
from torch.utils import cpp_extension  # noqa: E402

import torchext  # noqa: E402
import torchext.testing  # noqa: E402

device = torchext.testing.device()

from operators import read_operators  # noqa: E402
from samples import SAMPLES, Call  # noqa: E402


def results_of(operator, call: Call, where) -> list:
    """Results and gradients on a device, brought back to the CPU."""

    def leaf(x):
        return x.detach().clone().to(where).requires_grad_(operator.has_formula)

    call = call.map_tensors(leaf)
    results = operator.call(*call.args, **call.kwargs)
    results = [r for r in (results if isinstance(results, tuple) else [results]) if r is not None]
    assert all(result.device.type == torch.device(where).type for result in results)
    gradients = []
    roots = [result for result in results if result.requires_grad]
    if roots:
        loss = sum((root * root).sum() for root in roots)
        gradients = torch.autograd.grad(loss, call.tensors, allow_unused=True)
    return [None if x is None else x.detach().cpu() for x in (*results, *gradients)]


def fell_back() -> list:
    return sorted(name for name in torchext.fallback.stats() if name.startswith("myns::"))


def check(operator) -> dict:
    torchext.fallback.reset_stats()
    sample = SAMPLES[operator.name]
    calls = list(sample.calls(sample.small_shape, torch.float64))
    try:
        for call in calls:
            expected, actual = (results_of(operator, call, w) for w in ("cpu", device))
            torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-12)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return {"calls": len(calls), "fell_back": fell_back()}


def stopped() -> dict:
    torchext.fallback.reset_stats()
    ops = torch.ops.myns
    x, reached = torch.randn(3, 4, device=device), []
    try:
        with torchext.fallback.mode("error"):
            x = ops.mul(x, x)
            reached.append("mul")
            x = ops.rms_norm(x)
            reached.append("rms_norm")
            ops.zero_out(x)
            reached.append("zero_out")
    except NotImplementedError as error:
        return {"reached": reached, "error": str(error), "stats": fell_back()}
    return {"reached": reached}


if __name__ == "__main__":
    cpp_extension.load(
        "own_kernels",
        [str(Path(__file__).with_name("own_kernels.cpp"))],
        extra_cflags=["-O0"],
        extra_include_paths=[str(Path(__file__).parents[2] / "csrc" / "include")],
        build_directory=sys.argv[1],
        is_python_module=False,
    )
    torch.manual_seed(0)
    with torchext.fallback.mode("silent"):
        operators = {name: check(operator) for name, operator in read_operators().items()}
    print(json.dumps({"operators": operators, "stopped": stopped()}))
