# SPDX-License-Identifier: BSD-3-Clause
"""The checks: each a function of a Subject that raises where the operator falls short.

`AssertionError`, and whatever the operator itself raises, is a failure; `NotApplicable` says why
there is nothing to check, `Refused` that the operator says by name that it cannot.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from torch.autograd.gradcheck import GradcheckError

from ..subject import NotApplicable, Refused, Subject
from . import compiled, derivatives, forms, layouts, sizes, transforms, values


def _varied(check: Callable[[Subject], str | None]) -> Callable[[Subject], str | None]:
    """The check on the operator's samples, and on those that differ in one argument. Another value
    may be refused in the operator's own words, but what is computed must be right."""

    @functools.wraps(check)
    def check_all(subject: Subject) -> str | None:
        note = check(subject)
        for variation in subject.variations.samples:
            try:
                check(subject.with_samples([variation.sample]))
            except (NotApplicable, Refused):
                continue
            except Exception as error:  # whatever an operator raises
                is_wrong = isinstance(error, (AssertionError, GradcheckError))
                if is_wrong or variation.is_to_run:
                    raise AssertionError(f"with {variation.what}: {error}") from error
        return note

    return check_all


# name -> check, in the order in which they run; the first paragraph of its docstring is its legend
CHECKS: dict[str, Callable[[Subject], str | None]] = {
    "samples": values.samples,
    "opcheck": transforms.opcheck,
    "gradcheck": _varied(derivatives.gradcheck),
    "gradgradcheck": _varied(derivatives.gradgradcheck),
    "forward_mode": _varied(derivatives.forward_mode),
    "vmap": _varied(transforms.vmap),
    "layouts": layouts.layouts,
    "empty": sizes.empty,
    "dtypes": values.dtypes,
    "forms": _varied(forms.forms),
    "meta": _varied(values.meta),
    "compile": compiled.compile_static,
    "compile_dynamic": compiled.compile_dynamic,
    "autocast": transforms.autocast,
    "device": transforms.on_device,
    "pickle": transforms.pickled,
}

__all__ = ["CHECKS"]
