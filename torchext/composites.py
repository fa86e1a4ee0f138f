# SPDX-License-Identifier: BSD-3-Clause
"""Operators that Inductor compiles as what they are made of, in place of a call.

It looks for the composite kernels of all operators when it is imported; those of a library that is
loaded later are added here.
"""

from __future__ import annotations

import sys

_KEY = "CompositeImplicitAutograd"


def show_inductor(namespace: str) -> None:
    """Let Inductor see the composite kernels of a library's operators that have others as well."""
    inductor = sys.modules.get("torch._inductor.decomposition")
    if inductor is None:
        return
    found = {op: op.decompose for op in _with_composite_kernels(namespace)}
    if found:
        inductor.decompositions.update(found)
        inductor.fast_random_decomps.cache_clear()


def _with_composite_kernels(namespace: str):
    import torch

    for qualified in torch._C._dispatch_get_registrations_for_dispatch_key(_KEY):
        space, _, name = qualified.partition("::")
        has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
        if space == namespace and has_kernel(qualified, "Meta"):
            base, _, overload = name.partition(".")
            yield getattr(getattr(getattr(torch.ops, space), base), overload or "default")
