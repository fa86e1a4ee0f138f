# SPDX-License-Identifier: BSD-3-Clause
"""Calls every operator on the lazy device and prints what differs from the CPU, as JSON.

A program of its own, which test_lazy.py runs: a process that has initialised the TorchScript
backend of torch._lazy dispatches tensors of that device for good.
"""

import json
import sys

import torch
import torch._lazy.ts_backend
from cases import (
    gradients,
    is_differentiable,
    parts,
    requiring_grad,
    run,
)
from operators import FORMS, Form
from samples import SAMPLES, Call, Sample


def on_lazy(call: Call) -> Call:
    return call.map_tensors(lambda t: t.to("lazy"))


def compare(actual, expected) -> None:
    """Raise unless both are the same numbers, the first of them on the lazy device."""
    assert len(actual) == len(expected), f"{len(actual)} results, not {len(expected)}"
    for ours, reference in zip(actual, expected):
        assert ours.device.type == "lazy", f"a result is on {ours.device}"
        torch.testing.assert_close(ours.cpu(), reference)


def check_values(sample: Sample, call: Call) -> None:
    compare(parts(run(sample, on_lazy(call))), parts(run(sample, call)))


def check_gradients(sample: Sample, call: Call) -> None:
    compare(
        gradients(sample, requiring_grad(on_lazy(call))), gradients(sample, requiring_grad(call))
    )


def check_form(form: Form, call: Call) -> None:
    """The tensors that a form writes to hold what the functional operator returns."""
    sample = SAMPLES[form.functional]
    expected = parts(run(sample, call))
    lazy = on_lazy(call)
    outs = [torch.zeros_like(part).to("lazy") for part in expected]
    form.call(*lazy.args, **lazy.kwargs, **dict(zip(form.outputs, outs)))
    compare(outs if form.outputs else lazy.tensors[:1], expected)


def complaints(check, subject, calls) -> list:
    found = []
    for call in calls:
        try:
            check(subject, call)
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}")
    return found


def small_calls(sample: Sample) -> list:
    return list(sample.calls(sample.small_shape, torch.float32))


def form_calls(form: Form) -> list:
    calls = small_calls(SAMPLES[form.functional])
    # an in-place form keeps the dtype of what it writes to
    return [call for call in calls if form.outputs or "dtype" not in call.kwargs]


def main() -> None:
    torch._lazy.ts_backend.init()
    torch.manual_seed(20)
    report = {}
    for sample in SAMPLES.values():
        calls = small_calls(sample)
        report[f"values of {sample.name}"] = complaints(check_values, sample, calls)
        if is_differentiable(sample):
            report[f"gradients of {sample.name}"] = complaints(check_gradients, sample, calls)
    for form in FORMS.values():
        report[f"{form.name} writes"] = complaints(check_form, form, form_calls(form))
    json.dump(report, sys.stdout)


if __name__ == "__main__":
    main()
