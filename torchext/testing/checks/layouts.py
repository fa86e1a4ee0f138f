# SPDX-License-Identifier: BSD-3-Clause
"""Results and gradients where tensors lie otherwise in memory.

Its messages are whole: PYTEST_DONT_REWRITE.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

import torch

from .. import device as test_device
from ..calls import Call, assert_same_others, gradients, strided_copy
from ..subject import NotApplicable, Subject

_CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


@dataclass(frozen=True)
class Layout:
    """A way in which the elements of a tensor lie in memory."""

    name: str
    apply: Callable[[torch.Tensor], torch.Tensor]
    keeps_elements: bool = True  # each, in a place of its own

    def calls(self, call: Call, writes: Collection[str] = ()) -> Iterator[tuple[str, Call]]:
        """The call with all tensors laid out, and where that changes several, with each alone; and
        words for which. `writes` names the arguments that are written to."""
        names = [name for name, _ in call.named_tensors]
        tensors = call.tensors
        kept = {*writes, *call.fixed_values}
        laid_out = [
            t if name in kept and not self.keeps_elements else self.apply(t)
            for name, t in zip(names, tensors)
        ]
        changed = [i for i, pair in enumerate(zip(tensors, laid_out)) if _lies_elsewhere(*pair)]
        if changed:
            yield f"{self.name} arguments", call.with_tensors(laid_out)
        for i in changed if len(changed) > 1 else ():
            alone = [*tensors[:i], laid_out[i], *tensors[i + 1 :]]
            yield f"{names[i]} {self.name}", call.with_tensors(alone)


def _lies_elsewhere(t: torch.Tensor, other: torch.Tensor) -> bool:
    return (t.stride(), t.storage_offset()) != (other.stride(), other.storage_offset())


def _permuted(t: torch.Tensor) -> torch.Tensor:
    """The same values, with the dimensions in the other order in memory."""
    order = tuple(reversed(range(t.dim())))
    return t.permute(order).contiguous().permute(order)


def _in_channels_last(t: torch.Tensor) -> torch.Tensor:
    """The same values, of images or volumes, with the channels next to each other."""
    kept = torch.contiguous_format
    return t.contiguous(memory_format=_CHANNELS_LAST.get(t.dim(), kept))


def _sliced(t: torch.Tensor) -> torch.Tensor:
    """The same values as every second element of a larger tensor, which starts elsewhere."""
    larger = torch.zeros([2 * n + 1 for n in t.shape], dtype=t.dtype, device=t.device)
    view = larger[tuple(slice(1, None, 2) for _ in t.shape)]
    return view.copy_(t)


def _behind_the_start(t: torch.Tensor) -> torch.Tensor:
    """The same values, contiguous, one element behind the start of the storage."""
    larger = torch.zeros(t.numel() + 1, dtype=t.dtype, device=t.device)
    return larger[1:].view(t.shape).copy_(t)


def _expanded(t: torch.Tensor) -> torch.Tensor:
    """The first entry of the first dimension, over and over: stride 0."""
    return t[:1].expand_as(t) if t.dim() and t.shape[0] else t


def _far_apart(t: torch.Tensor) -> torch.Tensor:
    """The same values, the rows of the first dimension so far from each other that an index of 32
    bits does not reach the last: a few pages of memory, and many addresses."""
    if t.numel() == 0 or t.dim() == 0 or t.shape[0] == 1:
        return t
    [_, *strides] = t.contiguous().stride()
    far = 2**31 // (t.shape[0] - 1) + 1
    made = torch.empty_strided(t.shape, [far, *strides], dtype=t.dtype, device=t.device)
    return made.copy_(t)


permuted = Layout("permuted", _permuted)
channels_last = Layout("channels-last", _in_channels_last)
_LAYOUTS = (
    permuted,
    channels_last,
    Layout("sliced", _sliced),
    Layout("offset", _behind_the_start),
    Layout("expanded", _expanded, keeps_elements=False),
)
_FAR_APART = Layout("far apart", _far_apart)


def layouts(subject: Subject) -> None:
    """Permuted, channels-last, sliced and expanded tensors, and such that begin behind the start of
    their storage, all and each alone, and gradients of the results, give what contiguous ones
    give; with CUDA kernels on the host tensors of more than 2**31 elements' strides as well."""
    subject.refuse_random()
    compared = _compare_laid_out(subject, _LAYOUTS)
    if not compared:
        raise NotApplicable("no sample has a tensor with elements")
    if subject.runs_cuda_on_host:
        with test_device.more_addresses():
            _compare_laid_out(subject, [_FAR_APART])


def _compare_laid_out(subject: Subject, layouts: Iterable[Layout]) -> int:
    """How many calls were compared."""
    compared = 0
    for call in subject.calls(subject.wide_dtype):
        for layout in layouts:
            for what, laid_out in layout.calls(call, subject.writes):
                if subject.refuses(laid_out):
                    continue
                _compare(subject, laid_out, what, layout)
                compared += 1
    return compared


def _compare(subject: Subject, call: Call, what: str, layout: Layout) -> None:
    expected = call.map_tensors(lambda t: t.clone(memory_format=torch.contiguous_format))
    results = subject.function(call, copy=strided_copy)(*call.tensors)
    assert_close(results, subject.run(expected), what)
    if not subject.writes:
        assert_same_others(call.run(), expected.run(), f"with {what}")
    flags = subject.differentiable(call)
    if any(flags):
        found = gradients(subject.function(call), call.tensors, flags, layout.apply)
        wanted = gradients(
            subject.function(expected),
            expected.tensors,
            flags,
            lambda t: layout.apply(t).contiguous(),
        )
        assert_close(found, wanted, what)


def assert_close(found, wanted, what: str, **tolerances: float) -> None:
    """torch.testing.assert_close, with words for what is compared."""
    torch.testing.assert_close(
        found, wanted, equal_nan=True, msg=lambda text: f"with {what}: {text}", **tolerances
    )
