# SPDX-License-Identifier: BSD-3-Clause
"""The headers of groups of operators that a generated file includes."""

from __future__ import annotations

from collections.abc import Iterable

from ...plan.library import Plan


def ops_includes(plan: Plan, groups: Iterable[str]) -> list[str]:
    """The headers of the C++ API of these groups."""
    every = {g for g, ops in plan.groups().items() if any(op.signature for op in ops)}
    return _includes(f"{plan.namespace}/ops", set(groups), every)


def kernels_includes(plan: Plan, groups: Iterable[str]) -> list[str]:
    """The headers of the kernels of these groups."""
    return _includes(f"{plan.namespace}/kernels", set(groups), set(plan.groups()))


def _includes(folder: str, groups: set[str], every: set[str]) -> list[str]:
    """One for each, or the one that includes them all."""
    if len(groups) > 1 and groups >= every:
        return [f"#include <{folder}.h>"]
    return [f"#include <{folder}/{group}.h>" for group in sorted(groups)]
