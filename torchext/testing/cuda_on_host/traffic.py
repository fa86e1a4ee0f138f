# SPDX-License-Identifier: BSD-3-Clause
"""How many bytes a library's CUDA kernels move, beside the least that their operators must.

Counted on the host: each byte of the device's memory as often as a thread asks for it. What is read
again may come from a cache on a GPU; what is written again does not.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch

from .. import cuda_on_host
from ..calls import Call, tensors_of
from ..checking import Runner
from ..samples import Sample, enlarged
from ..subject import Subject

DTYPES = (torch.float32, torch.bfloat16)
_NUMEL = 1 << 18  # of the largest tensor


@dataclass(frozen=True)
class Traffic:
    """What a call of an operator moves.

    operator: its name. call: with the sizes of its tensors. launches: of kernels, in order.
    read_bytes, written_bytes: of all of them. argument_bytes, result_bytes: of the tensors, which
    is the least that can be read and written.
    """

    operator: str
    call: str
    launches: list[cuda_on_host.Launch]
    read_bytes: int
    written_bytes: int
    argument_bytes: int
    result_bytes: int

    @property
    def ratio(self) -> float:
        """What is moved beside the least."""
        least = self.argument_bytes + self.result_bytes
        return (self.read_bytes + self.written_bytes) / least if least else math.inf


def traffic(
    library: str | os.PathLike,
    *,
    project: str | os.PathLike | None = None,
    operators: Iterable[str] | None = None,
    dtypes: Sequence[torch.dtype] = DTYPES,
) -> list[Traffic]:
    """Call every operator that has CUDA kernels on its samples, and count what these move.

    library, project: as of torchext.testing.cuda_on_host.load. operators: names, if not all.
    dtypes: of those that an operator takes.

    The sizes of a sample are multiplied so that the largest tensor has up to 262,144 elements, or
    left as they are where the operator does not take these. In-place and out= forms are left out:
    their kernels are those of the functional forms.
    """
    device = cuda_on_host.load(library, project)
    subjects = Runner(library, operators, ["samples"], device=device).subjects
    found: dict[str, Traffic] = {}
    for subject in subjects:
        if subject.own_kernel != "PrivateUse1" or subject.writes:
            continue
        for dtype in filter(subject.taken.__contains__, dtypes):
            for sample in subject.samples:
                counted = _of_call(subject, _large(subject, sample, dtype))
                found.setdefault(counted.call, counted)
    return [counted for counted in found.values() if counted.launches]


def _of_call(subject: Subject, call: Call) -> Traffic:
    with torch.no_grad(), cuda_on_host.recorded() as launches:
        results = tensors_of(call.run())
    arguments = {t.untyped_storage().data_ptr(): t.nbytes for t in call.tensors}
    made = {t.untyped_storage().data_ptr(): t.nbytes for t in results}
    return Traffic(
        operator=subject.facts.name,
        call=str(call),
        launches=launches,
        read_bytes=sum(launch.read_bytes for launch in launches),
        written_bytes=sum(launch.written_bytes for launch in launches),
        argument_bytes=sum(arguments.values()),
        result_bytes=sum(nbytes for at, nbytes in made.items() if at not in arguments),
    )


def _large(subject: Subject, sample: Sample, dtype: torch.dtype) -> Call:
    large = subject.call(enlarged(sample, _NUMEL), dtype)
    try:
        large.run()
    except Exception:  # other sizes need other numbers
        return subject.call(sample, dtype)
    return large


def table(found: Iterable[Traffic]) -> str:
    """A line for each call, with what is moved for each byte that must be, and its launches."""
    lines = []
    for counted in found:
        lines.append(
            f"{counted.call}: reads {counted.read_bytes:,} and writes {counted.written_bytes:,} "
            f"bytes, {counted.ratio:.2f} of the least"
        )
        for launch in counted.launches:
            blocks, threads = (math.prod(size) for size in (launch.grid, launch.block))
            lines.append(f"    {launch.kernel}: {blocks:,} blocks of {threads} threads")
    return "\n".join(lines)
