# SPDX-License-Identifier: BSD-3-Clause
"""The CPU fallback: operators without a kernel for a device run on copies of their arguments.

An operator falls back where its `dispatch:` says `cpu_fallback`, and every operator of a backend
does after `enable`. What is written to is copied back, also where arguments overlap; results come
back to the device of the arguments, gradients are those of the operator. Views, operators that make
tensors from none and random numbers are refused, with NotImplementedError: a copy cannot stand for
them.
"""

from __future__ import annotations

import contextlib
import threading
from typing import NamedTuple

from .decorating import refuse_what_goes_on
from .runtime import runtime


class Counts(NamedTuple):
    """What the fallback of one operator has cost since the process began or `reset_stats`."""

    calls: int  # those that returned
    bytes_to_cpu: int
    bytes_to_device: int  # results, and what was written back
    seconds: float  # from call to return, copies included


class mode(contextlib.ContextDecorator):  # noqa: N801  a context manager is written so
    """Let operators fall back silently, with a warning, or not at all, for a block of code.

        with torchext.fallback.mode("error"):
            model(x)

    `name` is "silent", "warn" (once for each operator and device type: the operator, the device and
    the line that called it; a UserWarning) or "error" (NotImplementedError, which says the same).
    The mode holds for the calling thread and for autograd's that run its backward; the innermost
    one counts. Outside of any, TORCHEXT_FALLBACK of the environment says which it is, else "warn";
    it is read when the first operator falls back, which raises ValueError for another name, as this
    does.
    """

    def __init__(self, name: str):
        if name not in ("silent", "warn", "error"):
            raise ValueError(f"{name!r} is no mode of the fallback: silent, warn or error")
        self._name = name
        self._entries = threading.local()  # of each thread, those that it has not left

    def __call__(self, function):
        """The function, in this mode; TypeError for one that goes on after its call returns."""
        refuse_what_goes_on(function, "a mode of the fallback")
        return super().__call__(function)

    def __enter__(self) -> mode:
        entry = runtime().push_fallback_mode(self._name)
        self._entries.__dict__.setdefault("open", []).append(entry)
        return self

    def __exit__(self, *error) -> None:
        entries = self._entries.__dict__.get("open")
        if not entries:
            raise RuntimeError("a mode of the fallback is left on the thread that entered it")
        runtime().pop_fallback_mode(entries.pop())


def enable(device_type: str) -> None:
    """Run on the CPU what has no kernel for a device type: "privateuse1" or its name, "cuda"...

    This is for all operators of the process, other people's too. Nothing happens where it is so
    already. Raises TypeError for what is no name, ValueError for what is no device type, and
    RuntimeError where another fallback is registered for it.
    """
    runtime().enable_fallback(_device_type(device_type))


def disable(device_type: str) -> None:
    """End what `enable` began, or do nothing; operators that name `cpu_fallback` still fall back.

    Raises TypeError and ValueError as `enable` does.
    """
    runtime().disable_fallback(_device_type(device_type))


def stats() -> dict[str, Counts]:
    """Return what has fallen back: the operator with its overload -> `Counts`."""
    return {
        name: Counts(calls, to_cpu, to_device, nanoseconds * 1e-9)
        for name, (calls, to_cpu, to_device, nanoseconds) in runtime().fallback_counts().items()
    }


def reset_stats() -> None:
    """Begin `stats` anew, and the warnings: each operator warns once more."""
    runtime().reset_fallback_counts()


def _device_type(name: str) -> str:
    import torch

    if not isinstance(name, str):
        raise TypeError(f"a device type is a name such as 'cuda', and not {name!r}")
    is_own_name = name.lower() == "privateuse1"
    return torch._C._get_privateuse1_backend_name() if is_own_name else name
