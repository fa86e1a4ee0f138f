# SPDX-License-Identifier: BSD-3-Clause
"""Tensors without elements and without dimensions.

Their messages are whole: PYTEST_DONT_REWRITE.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from ..samples import Sample, could_index, resized, sizes_in, zero_dim
from ..subject import NotApplicable, Refused, Subject
from . import derivatives, forms, transforms
from .values import check_agreement, outcome

Check = Callable[[Subject], None]
# What compares values, and takes little time for so few of them. Batched derivatives of ATen's own
# operators, which formulas call, are not always right there.
_DERIVATIVES: dict[str, Check] = {
    "gradcheck": functools.partial(derivatives.gradcheck, batched=False),
    "forward_mode": functools.partial(derivatives.forward_mode, batched=False),
}
_OTHERS: dict[str, Check] = {"vmap": transforms.vmap, "forms": forms.forms}


def empty(subject: Subject) -> None:
    """With a dimension of size 0, or none at all, the operator and its Meta kernel agree: both
    refuse, or both give tensors of the same sizes, of which gradcheck, forward_mode, vmap and forms
    hold, and device on a device, as far as they do for the samples; of a composite operator device
    alone. Sizes stay where integers could be places."""
    tried = 0
    for sample in subject.samples:
        changed = [(f"size {n} -> 0", resized(sample, n, 0)) for n in sizes_in(sample)]
        for what, other in [*changed, ("no dimension", zero_dim(sample))]:
            if other == sample or could_index(other, subject.dtype):
                continue
            if _fits(subject, other):
                check_agreement(subject, subject.call(other), what)
                _check_values(subject, other, what)
                tried += 1
    if not tried:
        raise NotApplicable("no sample has a tensor whose size could be another")


def _fits(subject: Subject, sample: Sample) -> bool:
    """Whether the in-place form has room for its result; a sample that is refused fits."""
    try:
        return subject.fits(subject.call(sample))
    except Exception:  # as the operator likes
        return True


def _check_values(subject: Subject, sample: Sample, what: str) -> None:
    """Run the checks that compare values on one sample, which the operator may refuse."""
    resized_subject = subject.with_samples([sample])
    if isinstance(outcome(subject, subject.call(sample, subject.wide_dtype)), Exception):
        return
    checks: dict[str, Check] = {}
    if not subject.facts.composite:  # whose parts are torch's, and what these find is theirs
        checks |= _OTHERS
        if _has_derivatives_to_compare(resized_subject):
            checks |= _DERIVATIVES
    if subject.device.type != "cpu":
        checks["device"] = transforms.on_device
    for name, check in checks.items():
        error = _error(check, resized_subject)
        if error is not None and _error(check, subject) is None:
            raise AssertionError(f"with {what}, {name}: {error}") from error


def _has_derivatives_to_compare(subject: Subject) -> bool:
    try:
        return derivatives.are_finite(subject)
    except Exception:  # which the checks of derivatives say
        return True


def _error(check: Check, subject: Subject) -> Exception | None:
    try:
        check(subject)
    except (NotApplicable, Refused):
        pass  # which the check itself says in its own column
    except Exception as error:  # whatever an operator raises
        return error
    return None
