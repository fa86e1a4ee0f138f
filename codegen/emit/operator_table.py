# SPDX-License-Identifier: BSD-3-Clause
"""python/operators.json: what the generated tests must know of each operator and the dispatcher
does not say. The build puts it beside the library."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ..cpp.template import fill
from ..output import File
from ..plan.autograd import AUTOGRAD, Recording, Unrecorded
from ..plan.calls import DeclaredForm
from ..plan.library import OperatorPlan, Plan
from ..spec.dtypes import torch_name

_TABLE = """
{"namespace": $namespace, "overrides": $overrides, "beside": $beside, "operators": [
$operators
]}
"""


def emit(plan: Plan) -> Iterator[File]:
    """One file, a line for each operator in the order of the spec; by name only PyTorch's, and
    those that no entry declares."""
    overrides = [str(op.operator.name) for op in plan.operators if op.override]
    beside = [str(op.operator.name) for op in plan.operators if op.operator.beside]
    named = {*overrides, *beside}
    own = [op for op in plan.operators if str(op.operator.name) not in named]
    operators = [json.dumps(_operator(op)) for op in own]
    text = fill(
        _TABLE,
        namespace=json.dumps(plan.namespace),
        overrides=json.dumps(overrides),
        beside=json.dumps(beside),
        operators=",\n".join(operators),
    )
    yield File("python/operators.json", text, "python")


def _operator(op: OperatorPlan) -> dict[str, Any]:
    entry = op.operator
    recording = dict(op.recordings).get(AUTOGRAD)
    return {
        "name": str(entry.name),
        "schema": op.schema,
        "location": op.spec_line,
        "functional": str(op.form_of) if op.form_of else None,
        "composite": any(k.key.startswith("CompositeImplicit") for k in op.kernels),
        "cpu_fallback": [kernel.key for kernel in op.kernels if kernel.falls_back],
        "gradients": _gradients(recording) if recording else [],
        "refuses_gradients": op.on_autograd is Unrecorded.NOT_IMPLEMENTED,
        "own_autograd": isinstance(op.on_autograd, DeclaredForm)
        or any(key != AUTOGRAD for key, _ in op.autograd)
        or any(kernel.key.startswith("Autograd") for kernel in op.kernels),
        "shape_rule": any(bool(k.structured) for k in op.kernels if k.key == "Meta"),
        "dynamic_sizes": bool(op.rule and op.rule.is_dynamic),
        "tangents": bool(recording and recording.tangents),
        "autocast": entry.autocast,
        "dtypes": {
            kernel.key: {c.argument: [*map(torch_name, c.dtypes)] for c in kernel.dtype_checks}
            for kernel in op.kernels
            if kernel.dtype_checks
        },
        "samples": list(op.samples),
    }


def _gradients(recording: Recording) -> list[str]:
    """The arguments that gradients flow to: not those whose formula says that there is none."""
    missing = {i for f in recording.node.gradients if f.is_missing for i in f.edges}
    return [e.argument for i, e in enumerate(recording.node.edges) if i not in missing]
