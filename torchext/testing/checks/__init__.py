# SPDX-License-Identifier: BSD-3-Clause
"""The checks: each a function of a Subject that raises where the operator falls short.

`AssertionError`, and whatever the operator itself raises, is a failure; `NotApplicable` says why
there is nothing to check, `Refused` that the operator says by name that it cannot.
"""

from __future__ import annotations

from collections.abc import Callable

from ..subject import Subject
from . import derivatives, forms, layouts, sizes, transforms, values

# name -> check, in the order in which they run; the first paragraph of its docstring is its legend
CHECKS: dict[str, Callable[[Subject], None]] = {
    "samples": values.samples,
    "opcheck": transforms.opcheck,
    "gradcheck": derivatives.gradcheck,
    "gradgradcheck": derivatives.gradgradcheck,
    "forward_mode": derivatives.forward_mode,
    "vmap": transforms.vmap,
    "layouts": layouts.layouts,
    "empty": sizes.empty,
    "dtypes": values.dtypes,
    "forms": forms.forms,
    "meta": values.meta,
    "compile": transforms.compile_static,
    "compile_dynamic": transforms.compile_dynamic,
    "autocast": transforms.autocast,
    "device": transforms.on_device,
    "pickle": transforms.pickled,
}

__all__ = ["CHECKS"]
