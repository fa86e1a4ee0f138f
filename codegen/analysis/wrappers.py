# SPDX-License-Identifier: BSD-3-Clause
"""Which generated functions stand in the places of an operator's kernels: those that differ in the
author's function and in where their tensors live share one, and the Meta kernel with them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from ..plan.calls import StructuredCall
from ..plan.kernels import AuthorKernel, KernelPlan, WrapperPlan


def wrappers_of(handle: str, kernels: Iterable[KernelPlan]) -> tuple[WrapperPlan, ...]:
    """The functions for all of an operator's kernels that need one."""
    own = [kernel for kernel in kernels if kernel.is_wrapped]
    groups: dict[KernelPlan, list[KernelPlan]] = {}
    for kernel in sorted(own, key=_is_ruled_meta):
        shape = _alike(_with_checks_of(own, kernel))
        if _is_ruled_meta(kernel):
            shape = next((other for other in groups if _on_meta(other) == shape), shape)
        groups.setdefault(shape, []).append(kernel)
    found = []
    for count, group in enumerate(groups.values()):
        if len(group) > 1:
            name = f"wrapper{count or ''}_{handle}"
            group = [_with_checks_of(own, kernel) for kernel in group]
        else:
            name = f"{group[0].key.lower()}_{handle}"
        found.append(WrapperPlan(name, tuple(group)))
    return tuple(found)


def _is_ruled_meta(kernel: KernelPlan) -> bool:
    """Whether a kernel runs a meta function and nothing else."""
    return kernel.key == "Meta" and kernel.structured is not None


def _with_checks_of(others: Iterable[KernelPlan], kernel: KernelPlan) -> KernelPlan:
    """A CPU kernel with the checks of the others' devices, which do nothing there."""
    for other in others if kernel.key == "CPU" else ():
        is_like = bool(other.structured) == bool(kernel.structured)
        if is_like and (other.device_checks or other.device_guard):
            runs = kernel.runs
            if isinstance(runs, AuthorKernel):
                runs = dataclasses.replace(runs, device_guard=other.device_guard)
            return dataclasses.replace(kernel, device_checks=other.device_checks, runs=runs)
    return kernel


def _alike(kernel: KernelPlan) -> KernelPlan:
    """What kernels that share a function have in common."""
    runs = kernel.runs
    if isinstance(runs, AuthorKernel):
        runs = dataclasses.replace(runs, function="native", is_overloaded=False, is_declared=True)
    elif isinstance(runs, StructuredCall):
        runs = dataclasses.replace(
            runs,
            home="",
            meta_class=runs.meta_class if runs.has_rule else "",
            kernel_function=runs.kernel_function and "native",
            kernel_type=None,
            is_overloaded=False,
        )
    return dataclasses.replace(kernel, key="", needs_cuda=False, runs=runs)


def _on_meta(kernel: KernelPlan) -> KernelPlan | None:
    """The same with the meta function alone; None where that is no part of it."""
    call = kernel.structured
    if call is None or call.out_handle:
        return None
    alone = dataclasses.replace(
        call,
        runs_impl=False,
        impl_arguments=(),
        keeps_precomputed=False,
        kernel_function=None,
        separated=(),
        laid_out=(),
    )
    return dataclasses.replace(kernel, runs=alone)
