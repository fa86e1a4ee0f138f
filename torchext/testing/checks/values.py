# SPDX-License-Identifier: BSD-3-Clause
"""Samples, results of other dtypes, and on Meta.

Their messages are whole: PYTEST_DONT_REWRITE.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch.testing._comparison import default_tolerances

from ..calls import Call, gradients, largest, others_of
from ..samples import is_integer, takes_nothing
from ..subject import NotApplicable, Refused, Subject, has_gradient
from .derivatives import is_missing
from .layouts import assert_close, channels_last, permuted

_ROUNDINGS = 2  # in the last place of intermediate results
_STEPS_OF_BACKWARD = 8  # so many times as many roundings as a result has
_FEW = 10  # one of so many


def samples(subject: Subject) -> str:
    """There are samples, of the spec or made from the schema and the Meta kernel, that fit what is
    written to, and a kernel that the device can run: the other checks need them. Returns which
    arguments of an operator with formulas have one value only, where other checks need another."""
    hint = "samples: [{}]" if takes_nothing(subject.facts) else "samples:"
    assert subject.samples, (
        f"there are no samples, and none could be made from the schema: add `{hint}`"
    )
    assert subject.runs_on(subject.device), (
        f"there is no kernel for {subject.device}, on which the checks run"
    )
    with subject.refusing_fallback():
        calls = subject.calls()
    assert calls, "no sample has a result that fits what is written to: add `samples:`"
    if subject.facts.shape_rule:
        for call in calls:
            _check_rule_takes(subject, call)
    if subject.device.type != "cpu":
        _check_where_they_run(subject, calls)
    constant = subject.variations.constant  # found here: some processes do not survive the search
    has_formulas = subject.facts.gradients or subject.facts.tangents
    return ", ".join(constant) if has_formulas else ""


def _check_rule_takes(subject: Subject, call: Call) -> None:
    """Check that the operator's own rule, which has the last word on sizes, takes a sample."""
    given = subject.with_outs(call, torch.empty_like) if subject.functional else call
    if subject.outs and not subject.functional:
        return
    asked = given if subject.depends_on_values else _on_meta(given)
    refusal = outcome(subject, asked)
    assert not isinstance(refusal, Exception), f"the sample {call} is refused: {refusal}"


def _check_where_they_run(subject: Subject, calls: list[Call]) -> None:
    """Leave an operator that the fallback refuses, and one whose samples are not for the device."""
    found = [tensor for call in calls for tensor in call.tensors]
    for call in calls:
        try:
            with subject.refusing_fallback():
                found += subject.run(call)
        except Refused:
            raise
        except Exception:  # which is for the other checks to find
            return
    if not any(tensor.device == subject.device for tensor in found):
        raise NotApplicable(f"no sample has a tensor on {subject.device}")


def check_agreement(subject: Subject, call: Call, what: str) -> None:
    """Check that operator and Meta kernel both refuse, or give tensors of the same sizes; of a
    composite operator the sizes alone: what its parts refuse on Meta is torch's."""
    if subject.depends_on_values or not subject.runs_on_meta:
        return
    real, meta = outcome(subject, call), outcome(subject, _on_meta(call))
    refused = isinstance(real, Exception), isinstance(meta, Exception)
    assert refused[0] == refused[1] or subject.facts.composite, (
        f"with {what}: the operator {_said(real)}, and its Meta kernel {_said(meta)}"
    )
    if not any(refused):
        assert _sizes(real) == _sizes(meta), (
            f"with {what}: sizes {_sizes(real)}, and {_sizes(meta)} of the Meta kernel"
        )


def outcome(subject: Subject, call: Call) -> tuple[torch.Tensor, ...] | Exception:
    """What a call returns or raises."""
    try:
        return subject.run(call)
    except Exception as error:  # a refusal, which is an outcome
        return error


def _said(outcome) -> str:
    if isinstance(outcome, Exception):
        lines = str(outcome).splitlines() or [""]
        return f"raises {type(outcome).__name__}: {lines[0]}"
    return f"gives sizes {_sizes(outcome)}"


def _sizes(results) -> list[tuple[int, ...]]:
    return [tuple(r.shape) for r in results]


def _on_meta(call: Call) -> Call:
    """The call with tensors on meta, and where there is an argument for the results' device, its
    value."""
    moved = call.map_tensors(lambda t: t.to("meta")).arguments
    values = {
        a.name: torch.device("meta") if _is_device(a) else moved.get(a.name)
        for a in call.overload._schema.arguments
        if a.name in moved or _is_device(a)
    }
    return call.with_arguments(values)


def _is_device(argument: torch._C.Argument) -> bool:
    return str(argument.type) in ("Device", "Optional[Device]")


def meta(subject: Subject) -> None:
    """Sizes, strides and dtypes of the Meta kernel's results are those of the real ones, on
    contiguous, permuted and channels-last arguments, all and each alone, and in every dtype that
    the operator takes; of a composite operator sizes and dtypes."""
    if subject.depends_on_values:
        raise NotApplicable("the sizes of its results depend on values, or the results are values")
    checked = 0
    for call in subject.calls():
        if not call.tensors and not _makes_on_meta(call):
            continue
        checked += 1
        _check_meta(subject, call, "contiguous arguments")
        for layout in (permuted, channels_last):
            for what, laid_out in layout.calls(call):
                _check_meta(subject, laid_out, what)
    if not checked:
        raise NotApplicable("it takes no tensors, and no device for its results")
    for dtype in subject.held:
        for call, _ in _in_dtype(subject, dtype):
            if _is_run(subject, call):
                _check_meta(subject, call, f"arguments of {dtype}")


def _check_meta(subject: Subject, call: Call, what: str) -> None:
    if subject.refuses(call):
        check_agreement(subject, call, what)
        return
    real, found = subject.run(call), subject.run(_on_meta(call))
    if not subject.writes:
        missing = [[other is None for other in others_of(c.run())] for c in (call, _on_meta(call))]
        assert missing[0] == missing[1], f"with {what} the Meta kernel leaves out other results"
    has_strides = not subject.facts.composite  # whose are torch's
    described = [[_described(r, has_strides) for r in results] for results in (real, found)]
    assert described[0] == described[1], (
        f"with {what} the results are {described[0]}, those of the Meta kernel {described[1]}"
    )
    assert all(r.is_meta for r in found), "a result of the Meta kernel is on a device"


def _is_run(subject: Subject, call: Call) -> bool:
    """Whether the operator takes the call's dtypes, and its Meta kernel does or should."""
    if not _has_room(subject, call) or isinstance(outcome(subject, call), Exception):
        return False
    if subject.claims:
        return subject.is_claimed(call, subject.claims)
    return not isinstance(outcome(subject, _on_meta(call)), Exception)


def _makes_on_meta(call: Call) -> bool:
    """Whether an argument says where the results are, and is given Meta."""
    given = _on_meta(call).arguments.values()
    return any(isinstance(value, torch.device) for value in given)


def _described(t: torch.Tensor, has_strides: bool) -> str:
    # strides of a tensor without elements, or of a dimension of one, say nothing
    strides = [s for n, s in zip(t.shape, t.stride()) if n > 1] if t.numel() else []
    return f"{t.dtype}{list(t.shape)}" + (f" strides {strides}" if has_strides else "")


def dtypes(subject: Subject) -> None:
    """Every dtype of `dtypes:` is taken, with backward, and gives what the widest of its kind gives
    within the tolerance of the dtype; every other is refused, also by Meta, with the message that
    names it. Tensors whose samples have a dtype change it together where they have the same and may
    have the same. Where the device runs the CPU's kernel, another refusal may come first."""
    if not subject.claims:
        taken = ", ".join(_name(dtype) for dtype in subject.taken) or "none"
        raise NotApplicable(
            f"the spec has no `dtypes:` for {subject.device.type}; taken are {taken}"
        )
    on_meta = subject.facts.claims("Meta", *(k for k in subject.facts.dtypes if k != "Meta"))
    tried = 0
    for dtype in subject.held:
        for call, changed in _in_dtype(subject, dtype):
            tried += 1
            if subject.is_claimed(call, subject.claims):
                _check_taken(subject, call, dtype, changed)
            else:
                _check_refused(subject, call, dtype, "the operator", subject.own_kernel is not None)
            if subject.runs_on_meta and not subject.is_claimed(call, on_meta):
                _check_refused(subject, _on_meta(call), dtype, "its Meta kernel", by_name=True)
    if not tried:
        raise NotApplicable("the samples have no tensors of which `dtypes:` says something")


def _in_dtype(subject: Subject, dtype: torch.dtype) -> Iterator[tuple[Call, list[str]]]:
    """The calls with tensors of a dtype, and the names of those: all whose samples leave it open,
    and of the others that `dtypes:` names those that have and claim the same."""
    for call in subject.in_dtype(dtype):
        free = [n for n, _ in call.named_tensors if n not in call.fixed_dtypes]
        if free:
            yield call, free
    for call in subject.calls():
        groups: dict[tuple[torch.dtype, ...], list[str]] = {}
        for name, t in call.named_tensors:
            if name in call.fixed_dtypes and name in subject.claims:
                groups.setdefault((t.dtype, *sorted(subject.claims[name])), []).append(name)
        for names in groups.values():
            yield call.map_named(lambda n, t, own=names: t.to(dtype) if n in own else t), names


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _check_taken(subject: Subject, call: Call, dtype: torch.dtype, changed: list[str]) -> None:
    if not _has_room(subject, call):
        return
    found = outcome(subject, call)
    assert not isinstance(found, Exception), f"{dtype} is in `dtypes:`, and {_said(found)}"
    flags = [
        flag and t.dtype.itemsize > 1 for flag, t in zip(subject.differentiable(call), call.tensors)
    ]
    found = _gradients(subject, call, flags)
    assert not isinstance(found, Exception), f"{dtype} is in `dtypes:`, and backward {_said(found)}"
    if subject.is_random:
        return
    for wide in _wider(dtype):
        if (
            is_integer(dtype) and dtype.is_signed
        ):  # a negative number has other bits in another width
            call = call.map_named(lambda name, t: t.abs() if name in changed else t)
        other = call.map_named(lambda name, t: t.to(wide) if name in changed else t)
        if subject.is_claimed(other, subject.claims):
            outcomes = outcome(subject, call), outcome(subject, other)
            if not any(isinstance(outcome, Exception) for outcome in outcomes):
                what, is_rounded = f"{dtype} against {_name(wide)}", not is_integer(dtype)
                scale = largest([*other.tensors, *outcomes[1]])
                _check_agrees(*outcomes, is_rounded, scale, what)
                both = [_gradients(subject, c, flags) for c in (call, other)]
                if not any(isinstance(found, Exception) for found in both):
                    scale = _STEPS_OF_BACKWARD * max(scale, largest(both[1]))
                    _check_agrees(*both, is_rounded, scale, f"gradients, {what}")
            return


def _gradients(subject: Subject, call: Call, flags: list[bool]) -> list[torch.Tensor] | Exception:
    """The gradients of the tensors that the flags name, or what backward raises; none where the
    operator says that there is no formula."""
    if not any(flags):
        return []
    try:
        return gradients(subject.function(call), call.tensors, flags)
    except Exception as error:  # a refusal, which is an outcome
        return [] if is_missing(error) else error


def _check_agrees(
    found: Sequence[torch.Tensor],
    wide: Sequence[torch.Tensor],
    is_rounded: bool,
    scale: float,
    what: str,
) -> None:
    """The results agree with those of a wider dtype, integers where they hold them. What is rounded
    on the way to a result may be as large as the scale, the largest number around it."""
    for f, w in zip(found, wide):
        if has_gradient(f) and f.dtype.itemsize > 1:
            rtol, atol = default_tolerances(f.dtype)
            atol = max(atol, _ROUNDINGS * torch.finfo(f.dtype).eps * scale)
            assert_close(f, w.to(f.dtype), what, rtol=rtol, atol=atol)
        elif not is_integer(f.dtype):
            _check_steps(f, w.to(f.dtype), is_rounded, what)
        elif torch.equal(w.to(f.dtype).to(w.dtype), w):
            _check_steps(f.to(w.dtype), w, is_rounded, what)  # torch compares few unsigned ones


def _check_steps(found: torch.Tensor, wide: torch.Tensor, is_rounded: bool, what: str) -> None:
    """Numbers that have no tolerance are the same; where they are steps or bounds of rounded ones,
    all but a few."""
    if is_rounded and found.shape == wide.shape:
        differ = found.to(torch.float64) != wide.to(torch.float64)
        if differ.sum() <= found.numel() // _FEW:
            return
    assert_close(found, wide, what)


def _wider(dtype: torch.dtype) -> tuple[torch.dtype, ...]:
    """The dtypes that hold every value of a dtype, the widest first; none where rounding to it has
    no tolerance of torch's."""
    if is_integer(dtype):
        return (torch.int64,) if dtype not in (torch.int64, torch.uint64) else ()
    if dtype == torch.bool or dtype.is_floating_point and dtype.itemsize == 1:
        return ()
    floats, complexes = (torch.float64, torch.float32), (torch.complex128, torch.complex64)
    return tuple(
        w for w in (complexes if dtype.is_complex else floats) if w.itemsize > dtype.itemsize
    )


def _has_room(subject: Subject, call: Call) -> bool:
    try:
        return subject.fits(call)
    except Exception:
        return True  # then the functional form refuses what this one takes


def _check_refused(
    subject: Subject, call: Call, dtype: torch.dtype, where: str, by_name: bool
) -> None:
    try:
        # out= tensors are made by the functional form, which refuses first
        found = outcome(subject, call)
    except Exception as error:
        found = error
    assert isinstance(found, Exception), f"{dtype} is not in `dtypes:`, and {where} takes it"
    says_it = "must have dtype" in str(found) and _name(dtype) in str(found)
    assert says_it or not by_name, f"{dtype} is not in `dtypes:`, and {where} {_said(found)}"
