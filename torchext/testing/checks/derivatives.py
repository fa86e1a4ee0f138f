# SPDX-License-Identifier: BSD-3-Clause
"""First and second derivatives against finite differences; where there is no formula, that the
operator says so.

Their messages are whole: PYTEST_DONT_REWRITE.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.autograd import forward_ad
from torch.autograd.gradcheck import GradcheckError

from ..calls import Call, cotangents, gradients, largest
from ..subject import WIDE_DTYPES, NotApplicable, Refused, Subject, has_gradient

# Finite differences of an operator that takes none of the wide dtypes: a step and tolerances for
# numbers of the size of samples, of which a float has seven digits.
_COARSE = {"eps": 1e-3, "atol": 2e-2, "rtol": 2e-2}
# What torch and generated code say where a derivative is missing.
_MISSING = re.compile(
    r"derivative for .* is not implemented|automatic differentiation|is not differentiable"
    r"|forward-mode differentiation|forward AD with .* does not support"
)
# What two backward passes of a GPU may differ by, which adds in no order: that of torch's own tests
# (GRADCHECK_NONDET_TOL of torch.testing._internal.common_utils).
_NONDET_TOL = 1e-12
# Entries of a Jacobian from which on random directions are enough.
_LARGE = 1 << 20


def gradcheck(subject: Subject, batched: bool = True) -> None:
    """Gradients in float64 and complex128 against finite differences, batched ones too, and those
    of each tensor alone against those of all together. In float32 and complex64, within 2 %, for
    tensors of which the operator takes no wider dtype. Without a formula: no result requires grad,
    or backward raises."""
    if subject.outs or not subject.may_have_gradients:
        _check_that_nothing_is_lost(subject)
        return

    def check(call: Call, function: Callable) -> None:
        assert torch.autograd.gradcheck(
            function,
            call.tensors,
            check_batched_grad=batched and _has_batches(subject, call),
            **_options(subject, call, function),
        )
        _check_each_alone(call, function)

    _check_or_refuse(subject, check)


def _check_each_alone(call: Call, function: Callable) -> None:
    """The gradient of a tensor does not depend on which others require grad."""
    flags = [t.requires_grad for t in call.tensors]
    if sum(flags) < 2:
        return
    together = iter(gradients(function, call.tensors, flags))
    for place, (name, _) in enumerate(call.named_tensors):
        if flags[place]:
            (alone,) = gradients(function, call.tensors, [i == place for i in range(len(flags))])
            torch.testing.assert_close(
                alone,
                next(together),
                equal_nan=True,
                msg=lambda text, name=name: f"where {name} alone requires grad: {text}",
            )


def gradgradcheck(subject: Subject) -> str:
    """Second derivatives in those dtypes against finite differences, reverse over reverse
    and, with forward mode, forward over reverse. Refused where backward cannot be differentiated;
    where only its tangents are missing, which nobody needs but for forward over reverse, a note
    says so."""
    found, notes = [], []

    def check(call: Call, function: Callable) -> None:
        if not any(result.requires_grad for result in function(*call.tensors)):
            return
        found.append(call)
        options = _options(subject, call, function)
        assert torch.autograd.gradgradcheck(function, call.tensors, **options)
        if subject.facts.tangents:
            forward = {"check_fwd_over_rev": True, "check_rev_over_rev": False}
            options |= {**forward, "check_undefined_grad": False}  # which is for reverse mode
            try:
                assert torch.autograd.gradgradcheck(function, call.tensors, **options)
            except RuntimeError as error:
                if isinstance(error, GradcheckError) or not is_missing(error):
                    raise
                notes.append(f"no forward over reverse: {_first_line(error)}")

    _check_or_refuse(subject, check)
    if not found:
        raise NotApplicable("no result requires grad")
    return notes[-1] if notes else ""


def forward_mode(subject: Subject, batched: bool = True) -> None:
    """Tangents in those dtypes against finite differences, batched ones too. Without a
    formula: a tangent raises."""
    if subject.outs:
        raise NotApplicable("an out= form has no tangent")
    if not (subject.facts.tangents or subject.facts.composite or subject.facts.own_autograd):
        _check_that_a_tangent_raises(subject)
        return

    def check(call: Call, function: Callable) -> None:
        # torch draws no numbers inside vmap
        batches = batched and not subject.is_random and _has_batches(subject, call)
        assert torch.autograd.gradcheck(
            function,
            call.tensors,
            check_forward_ad=True,
            check_backward_ad=False,
            check_batched_forward_grad=batches,
            **_options(subject, call, function),
        )

    _check_or_refuse(subject, check)


def _check_or_refuse(subject: Subject, check: Callable[[Call, Callable], None]) -> None:
    """Run a check on every call; Refused where one lacks a derivative by name."""
    refusal: Exception | None = None
    for call, function in _calls(subject):
        try:
            check(call, function)
        except RuntimeError as error:
            if isinstance(error, GradcheckError) or not is_missing(error):
                raise
            refusal = error
    if refusal is not None:
        raise Refused(_first_line(refusal)) from refusal


def _calls(subject: Subject) -> Iterator[tuple[Call, Callable]]:
    """Calls whose differentiable tensors require grad, in each of the dtypes that the operator
    takes, with what they do as a function of those tensors."""
    if subject.outs:
        raise NotApplicable("an out= form has no gradient")
    if not subject.may_have_gradients:
        raise NotApplicable("no formula")
    if not subject.differentiated:
        raise NotApplicable("finite differences need float32 or complex64 at least")
    found = 0
    for dtype in subject.differentiated:
        for call in subject.calls_with_gradient(dtype):
            found += 1
            yield call, _differentiable_results(subject, call)
    if not found:
        raise NotApplicable("no sample has a differentiable tensor of these dtypes")


def _differentiable_results(subject: Subject, call: Call) -> Callable:
    """The call as a function of its tensors, without the results that have no gradient."""
    function = subject.function(call)
    return lambda *tensors: tuple(r for r in function(*tensors) if has_gradient(r))


def _options(subject: Subject, call: Call, function: Callable) -> dict[str, Any]:
    """What both of torch's checks are asked with."""
    tolerance = 0.0 if subject.device.type == "cpu" else _NONDET_TOL
    with torch.no_grad():
        results = function(*call.tensors)
    inputs = sum(t.numel() for t in call.tensors if t.requires_grad)
    is_large = inputs * sum(r.numel() for r in results) > _LARGE
    options = {"fast_mode": is_large, "nondet_tol": tolerance}
    if _is_wide(call):
        return options
    rounding = torch.finfo(torch.float32).eps * largest(results)
    return options | _COARSE | {"atol": max(_COARSE["atol"], 2 * rounding / _COARSE["eps"])}


def _is_wide(call: Call) -> bool:
    return all(t.dtype in WIDE_DTYPES for t in call.tensors if t.requires_grad)


def _has_batches(subject: Subject, call: Call) -> bool:
    """Whether batched derivatives are compared: torch has tolerances for the wide dtypes, and no
    batching rules for some of the operators of its own that a composite one is made of."""
    return _is_wide(call) and not subject.facts.composite


def are_finite(subject: Subject) -> bool:
    """Whether all gradients and tangents are: else finite differences say nothing of them."""
    for call in subject.calls_with_gradient(subject.wide_dtype):
        function = _differentiable_results(subject, call)
        leaves = [t for t in call.tensors if t.requires_grad]
        results = [r for r in function(*call.tensors) if r.requires_grad]
        found = list(results)
        if results:
            found += torch.autograd.grad(
                results, leaves, cotangents(results), materialize_grads=True
            )
        with forward_ad.dual_level():
            duals = [
                forward_ad.make_dual(t.detach(), torch.ones_like(t)) if t.requires_grad else t
                for t in call.tensors
            ]
            try:
                tangents = [forward_ad.unpack_dual(r).tangent for r in function(*duals)]
            except RuntimeError:  # without a formula for tangents
                tangents = []
            found += [t for t in tangents if t is not None]
        if not all(torch.isfinite(t).all() for t in found if has_gradient(t)):
            return False
    return True


def _check_that_nothing_is_lost(subject: Subject) -> None:
    """A gradient that nobody wrote must not be zero without a word."""
    raised = checked = 0
    for call in subject.calls(subject.wide_dtype):
        subject.run(call)  # what it refuses without gradients is not about them
        leaves = [t for t in call.tensors if has_gradient(t)]
        for leaf in leaves:
            leaf.requires_grad_()
        checked += bool(leaves)
        try:
            results = [r for r in subject.run(call) if r.requires_grad] if leaves else []
            if results:
                ones = list(map(torch.ones_like, results))
                torch.autograd.grad(results, leaves, ones, allow_unused=True)
        except RuntimeError as error:
            if not is_missing(error):
                raise
            raised += 1
            continue
        assert not (results and subject.facts.refuses_gradients), (
            f"{subject.overload} has no formula, and backward through it raises nothing"
        )
    if not checked:
        raise NotApplicable("no sample has a differentiable tensor")
    reason = "an out= form" if subject.outs else "no formula"
    says = "and it says so" if raised else "and no result requires grad"
    raise NotApplicable(f"{reason}, {says}")


def _check_that_a_tangent_raises(subject: Subject) -> None:
    checked = 0
    for call in subject.calls(subject.wide_dtype):
        primals = tuple(call.tensors)
        if not primals or not all(map(has_gradient, primals)) or not subject.run(call):
            continue
        checked += 1
        try:
            _, found = torch.func.jvp(
                subject.function(call), primals, tuple(map(torch.ones_like, primals))
            )
        except RuntimeError as error:
            if not is_missing(error):
                raise
            continue
        lost = [t for t in found if not t.any()]
        assert not (lost and subject.facts.refuses_gradients), (
            f"{subject.overload} has no formula for tangents and drops them without a word"
        )
    raise NotApplicable(
        "no formula, and it says so" if checked else "no sample has differentiable tensors only"
    )


def is_missing(error: Exception) -> bool:
    """Whether an error says that there is no derivative."""
    return _MISSING.search(str(error)) is not None


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
