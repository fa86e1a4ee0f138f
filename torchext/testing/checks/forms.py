# SPDX-License-Identifier: BSD-3-Clause
"""In-place and out= forms against the functional form.

Their messages are whole: PYTEST_DONT_REWRITE.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import torch

from ..calls import Call, strided_copy
from ..subject import NotApplicable, Subject


def forms(subject: Subject) -> None:
    """An in-place or out= form writes what the functional form returns, and returns what it has
    written to; out= tensors of another size are resized, other strides kept, other dtypes refused.
    """
    if subject.functional is None:
        raise NotApplicable("a functional form" if not subject.writes else "no functional form")
    for dtype in dict.fromkeys((subject.dtype, subject.wide_dtype)):
        for call in subject.calls(dtype):
            wanted = subject.returned(call.on(subject.functional))
            if subject.outs:
                _check_out(subject, call, wanted)
            else:
                _check_in_place(subject, call, wanted)


def _check_in_place(subject: Subject, call: Call, wanted: list[torch.Tensor]) -> None:
    for laid_out in (call, call.map_tensors(_in_a_larger_tensor)):
        given = laid_out.map_tensors(strided_copy)
        written = [t for name, t in given.named_tensors if name in subject.writes]
        before = [t._version for t in written]
        returned = subject.returned(given)
        if laid_out is call or not subject.is_random:
            cast = [w.to(t.dtype) for t, w in zip(written, wanted)]
            torch.testing.assert_close(written, cast, equal_nan=True)
        _check_returned(returned, written)
        is_raised = [t._version > b or t.numel() == 0 for t, b in zip(written, before)]
        assert all(is_raised), "no version counter is raised"
        others = [t for name, t in given.named_tensors if name not in subject.writes]
        kept = [t for name, t in call.named_tensors if name not in subject.writes]
        torch.testing.assert_close(others, kept, rtol=0, atol=0, equal_nan=True)


def _check_out(subject: Subject, call: Call, wanted: list[torch.Tensor]) -> None:
    _check_written(subject, call, torch.ones_like, wanted, "new tensors")
    strided = _check_written(
        subject, call, lambda t: _in_a_larger_tensor(torch.ones_like(t)), wanted, "strided tensors"
    )
    strides = [_in_a_larger_tensor(w).stride() for w in wanted]
    assert [t.stride() for t in strided] == strides, "out= tensors lose their strides"
    _check_written(subject, call, lambda t: t.new_empty(0), wanted, "tensors without elements")
    _check_written(subject, call, _larger, wanted, "tensors of another size")
    if _takes_dtype(subject.functional) and not _takes_dtype(subject.overload):
        return  # it makes a tensor of the dtype that the out= tensor has
    for place, result in enumerate(wanted):
        other = next((d for d in _OTHERS if not torch.can_cast(result.dtype, d)), None)
        if other is not None:
            _check_other_dtype(subject, call, place, other)


def _takes_dtype(overload: torch._ops.OpOverload) -> bool:
    return any(argument.name == "dtype" for argument in overload._schema.arguments)


# Of which at least one does not take the values of another dtype, but for bool, which all take.
_OTHERS = (torch.bool, torch.int64)


def _check_other_dtype(subject: Subject, call: Call, place: int, dtype: torch.dtype) -> None:
    """One out= tensor, the others as they should be, of a dtype that its result is not cast to."""
    places = itertools.count()
    given = subject.with_outs(
        call,
        lambda t: torch.ones_like(t, dtype=dtype) if next(places) == place else torch.ones_like(t),
    )
    try:
        given.run()
    except (RuntimeError, TypeError, ValueError):
        return
    raise AssertionError(f"out= of {dtype} is taken for result {place}, which is not cast to it")


def _check_written(
    subject: Subject,
    call: Call,
    make: Callable[[torch.Tensor], torch.Tensor],
    wanted: list[torch.Tensor],
    what: str,
) -> list[torch.Tensor]:
    """Check the out= tensors that `make` makes for the results; returns them."""
    given = subject.with_outs(call, make)
    outs = [t for name, t in given.named_tensors if name in subject.outs]
    returned = subject.returned(given)
    if subject.is_random and not all(t.is_contiguous() for t in outs):
        wanted = outs  # drawn in another order
    torch.testing.assert_close(
        outs, wanted, equal_nan=True, msg=lambda text: f"out= of {what}: {text}"
    )
    _check_returned(returned, outs)
    return outs


def _check_returned(returned: list[torch.Tensor], written: list[torch.Tensor]) -> None:
    same = [r is w for r, w in zip(returned, written)]
    assert all(same), "what is returned is not what was written to"


def _larger(t: torch.Tensor) -> torch.Tensor:
    """A tensor with more elements than a result, which an out= form resizes."""
    return torch.ones([n + 1 for n in t.shape] or [2], dtype=t.dtype, device=t.device)


def _in_a_larger_tensor(t: torch.Tensor) -> torch.Tensor:
    larger = torch.zeros([2 * n for n in t.shape], dtype=t.dtype, device=t.device)
    return larger[tuple(slice(None, None, 2) for _ in t.shape)].copy_(t)
