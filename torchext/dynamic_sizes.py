# SPDX-License-Identifier: BSD-3-Clause
"""Sizes of results that only values tell (`size: [dynamic, 3]`), while a program is traced.

The Meta kernels of a library ask for them through the dispatcher, by the operator
`torchext::new_dynamic_size`: which trace a tensor belongs to is known to Python alone.
"""

from __future__ import annotations

import torch

_library = torch.library.Library("torchext", "FRAGMENT")
_library.define("new_dynamic_size(str op, str result, Tensor like) -> SymInt")


def _new_dynamic_size(op: str, result: str, like: torch.Tensor) -> torch.SymInt:
    """An unbacked size in the trace of `like`, as of torch.library's `new_dynamic_size`; raises
    NotImplementedError for a tensor on Meta that is in no trace. Bounds are the caller's."""
    from torch._library.fake_impl import FakeImplCtx  # of what is only there while tracing
    from torch._subclasses.fake_tensor import FakeTensor

    if not isinstance(like, FakeTensor):
        why = "depends on values, which tensors on Meta do not have"
        raise NotImplementedError(f"{op}: the size of '{result}' {why}")
    namespace, _, name = op.partition("::")
    operator = getattr(getattr(torch.ops, namespace), name)
    return FakeImplCtx(like.fake_mode, operator).new_dynamic_size(min=0)


_library.impl("new_dynamic_size", _new_dynamic_size, "Meta")
