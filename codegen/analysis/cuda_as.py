# SPDX-License-Identifier: BSD-3-Clause
"""The kernels for CUDA alone, registered for another key: those of a device that stands for it."""

from __future__ import annotations

import dataclasses

from ..plan.calls import StructuredCall, home_of
from ..plan.kernels import KernelPlan
from ..plan.library import OperatorPlan, Plan
from .wrappers import wrappers_of


def with_cuda_as(plan: Plan, key: str) -> Plan:
    """What a library registers for CUDA, for `key`, and nothing else of it: an object that is
    loaded beside the library gives this device those kernels."""
    return dataclasses.replace(plan, operators=tuple(_moved(op, key) for op in plan.operators))


def _moved(op: OperatorPlan, key: str) -> OperatorPlan:
    kernels = tuple(_for(kernel, key) for kernel in op.kernels if kernel.key == "CUDA")
    kernels = tuple(kernel for kernel in kernels if not kernel.falls_back)
    return dataclasses.replace(op, kernels=kernels, wrappers=wrappers_of(op.handle, kernels))


def _for(kernel: KernelPlan, key: str) -> KernelPlan:
    runs = kernel.runs
    if isinstance(runs, StructuredCall):
        runs = dataclasses.replace(runs, home=home_of(key))
    return dataclasses.replace(kernel, key=key, runs=runs, needs_cuda=False)
