# SPDX-License-Identifier: BSD-3-Clause
"""What differs between the versions of torch that are supported, on the side of Python.

Each difference with the version that brought or ended it. csrc/include/torchext/compat.h is the
side of C++; nothing else in the project asks for a version of torch.
"""

from __future__ import annotations

import functools
import sys


def version() -> tuple[int, int]:
    """Return major and minor of the torch that is installed."""
    import torch

    major, minor = torch.__version__.split(".")[:2]
    return int(major), int(minor)


def cxx_standard() -> str:
    """Return the standard of C++ that torch's headers are compiled with: C++20 from 2.13 on."""
    return "c++20" if version() >= (2, 13) else "c++17"


def prepare_torch() -> None:
    """Mend what keeps operators with out= forms from being compiled; harmless to repeat.

    2.13 and 2.14: where Inductor calls the out= form of an operator with one result in place of the
    functional one (FallbackKernel.create), it passes tensors first, then all other arguments, then
    the keyword arguments once more, and names no C++ function. So it is told of an out= form only
    where that is right; otherwise it calls the functional form, as before 2.13.
    """
    if version() < (2, 13):
        return
    from torch._library import _out_variant

    original = _out_variant.to_out_variant
    if hasattr(original, "__wrapped__"):
        return

    @functools.wraps(original)
    def to_out_variant(op):
        found = original(op)
        caller = sys._getframe(1)
        is_lowering = caller.f_globals.get("__name__") == "torch._inductor.ir"
        if found is None or not is_lowering or caller.f_code.co_name != "create":
            return found
        if version() == (2, 13):
            _convert_sizes_of_layouts()
        return found if _is_called_right(caller.f_locals) else None

    _out_variant.to_out_variant = to_out_variant


def _is_called_right(values: dict) -> bool:
    """Return whether Inductor passes the arguments of a call on as they were given."""
    from torch._inductor.ir import IRNode
    from torch._inductor.virtualized import V

    if V.graph.cpp_wrapper or values.get("kwargs"):
        return False
    are_tensors = [isinstance(value, IRNode) for value in values.get("args", ())]
    lists = [v for v in values.get("args", ()) if isinstance(v, (list, tuple))]
    holds_tensors = any(isinstance(item, IRNode) for value in lists for item in value)
    return are_tensors == sorted(are_tensors, reverse=True) and not holds_tensors


@functools.cache
def _convert_sizes_of_layouts() -> None:
    """2.13: the lowering hands symbolic sizes to a layout, which takes expressions only."""
    from torch import SymInt
    from torch._inductor.ir import Layout

    original = Layout.__init__

    def expressions(values):
        if values is None:
            return None
        return [value.node.expr if isinstance(value, SymInt) else value for value in values]

    @functools.wraps(original)
    def init(self, device, dtype, size, stride=None, *args, **kwargs):
        original(self, device, dtype, expressions(size), expressions(stride), *args, **kwargs)

    Layout.__init__ = init
