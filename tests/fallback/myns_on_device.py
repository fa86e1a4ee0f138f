# SPDX-License-Identifier: BSD-3-Clause
"""Runs every operator of myns on the test device, in a process of its own: it registers kernels.

    python myns_on_device.py BUILD_DIRECTORY

prints one JSON object: operator or form -> what was called on the device, what of it has no kernel
there by the dispatcher's tables, and what the statistics say; or how it differs from the CPU; and
what mode `error` does to a program that falls back in its third call.
"""

import json
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / "ops"), str(TESTS), str(TESTS.parent)]

import torch  # noqa: E402

import torchext  # noqa: E402
import torchext.testing  # noqa: E402

device = torchext.testing.device()

import library_build  # noqa: E402
from operators import read_cpu_fallbacks, read_forms, read_operators  # noqa: E402
from samples import SAMPLES, Call  # noqa: E402
from torch.utils import _pytree as pytree  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

OPERATORS, FORMS = read_operators(), read_forms()
BY_THEMSELVES = read_cpu_fallbacks("PrivateUse1")  # whose forms fall back as they do


class Called(TorchDispatchMode):
    """What is called with tensors of the device; what a kernel calls itself is not seen."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        tensors = [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        if func.namespace == "myns" and any(x.device.type == device.type for x in tensors):
            self.names.add(func.name())
        return func(*args, **(kwargs or {}))


def without_kernel(name: str) -> set:
    """What falls back where an operator is called: by the dispatcher's own tables of kernels."""
    base, kind = base_of(name), kernel_of(name)
    if kind == "default backend kernel":  # it calls the form of the operator that has kernels
        forms = [f"myns::{one}" for one in (*OPERATORS, *FORMS) if base_of(one) == base]
        return set().union(*(without_kernel(one) for one in forms if kernel_of(one) != kind))
    return {name} if base in BY_THEMSELVES or kind == "backend fallback" else set()


def base_of(name: str) -> str:
    return name.removeprefix("myns::").partition(".")[0].rstrip("_")


def kernel_of(name: str) -> str:
    """Which kind of kernel the dispatcher has for the device."""
    lines = torch._C._dispatch_dump_table(name).splitlines()
    (kind,) = [line[line.rindex("[") + 1 : -1] for line in lines if line.startswith("PrivateUse1:")]
    return kind


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
        gradients = torch.autograd.grad(loss, call.tensors, materialize_grads=True)
    return [None if x is None else x.detach().cpu() for x in (*results, *gradients)]


def fell_back() -> list:
    return sorted(name for name in torchext.fallback.stats() if name.startswith("myns::"))


def written_by(form, call: Call, where) -> list:
    """What a form writes and returns on a device, brought back to the CPU."""
    outputs = OPERATORS[form.functional].call(*call.args, **call.kwargs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    given = {n: torch.zeros_like(o, device=where) for n, o in zip(form.outputs, outputs)}
    call = call.map_tensors(lambda x: x.detach().clone().to(where))
    returned = form.call(*call.args, **call.kwargs, **given)
    returned = returned if isinstance(returned, tuple) else (returned,)
    written = list(given.values()) or [call.args[0]]
    assert all(a is b for a, b in zip(returned, written, strict=True))
    return [x.cpu() for x in written]


def check(run, subject, functional: str) -> dict:
    sample = SAMPLES[functional]
    calls = list(sample.calls(sample.small_shape, torch.float64))
    expected = [run(subject, call, "cpu") for call in calls]
    torchext.fallback.reset_stats()
    try:
        with Called() as called:
            actual = [run(subject, call, device) for call in calls]
        torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-12)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    lacking = set().union(*map(without_kernel, called.names))
    return {
        "calls": len(calls),
        "called": sorted(called.names),
        "without_kernel": sorted(lacking),
        "fell_back": fell_back(),
    }


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
    library_build.load(
        "own_kernels",
        Path(__file__).with_name("own_kernels.cpp"),
        Path(sys.argv[1]),
    )
    torch.manual_seed(0)
    with torchext.fallback.mode("silent"):
        operators = {name: check(results_of, op, name) for name, op in OPERATORS.items()}
        operators |= {name: check(written_by, f, f.functional) for name, f in FORMS.items()}
    print(json.dumps({"operators": operators, "stopped": stopped()}))
