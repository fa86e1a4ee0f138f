# SPDX-License-Identifier: BSD-3-Clause
"""What becomes of one check of one operator, in this process."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch

from .. import fallback
from ..runtime import runtime
from .checks import CHECKS
from .checks.transforms import comparison_device
from .report import State
from .subject import NotApplicable, Refused, Subject, Unavailable, fork_rng, seed_generators


@dataclass(frozen=True)
class Outcome:
    """A state, why, how long it took, and what was raised."""

    state: State
    reason: str = ""
    seconds: float = 0.0
    error: BaseException | None = field(default=None, compare=False, repr=False)


def outcome_of(subject: Subject, name: str) -> Outcome:
    """Run a check; whatever an operator raises is its failure."""
    began = time.perf_counter()
    state, reason, error = _run(subject, name)
    return Outcome(state, reason, time.perf_counter() - began, error)


def _run(subject: Subject, name: str) -> tuple[State, str, BaseException | None]:
    try:
        with plain(subject.device):
            if name != "samples":
                try:
                    CHECKS["samples"](subject)
                except (NotApplicable, Refused):
                    raise
                except Exception as error:
                    raise Unavailable("the check of samples fails") from error
            note = CHECKS[name](subject)
            if subject.device.type != "cpu":
                torch.accelerator.synchronize(subject.device)  # its errors are of this check
    except Unavailable as reason:
        return State.NOT_RUN, str(reason), reason
    except NotApplicable as reason:
        return State.NOTHING, str(reason), reason
    except Refused as reason:
        return State.REFUSED, str(reason), reason
    except Exception as error:  # whatever an operator raises is its failure
        text = str(error)
        if not isinstance(error, AssertionError) or not text:
            text = f"{type(error).__name__}: {text}"
        return State.FAILED, text, error
    return State.PASSED, note or "", None


@contextlib.contextmanager
def plain(device: torch.device) -> Iterator[None]:
    """Whatever the caller is in, with the generators seeded, whose states are kept."""
    with _quiet(), _plain_modes(device), fork_rng(device):
        seed_generators(device)
        yield


@contextlib.contextmanager
def _plain_modes(device: torch.device) -> Iterator[None]:
    """With gradients and without autocast, whatever the caller is in."""
    with contextlib.ExitStack() as modes:
        modes.enter_context(torch.inference_mode(False))
        modes.enter_context(torch.enable_grad())
        for kind in {"cpu", device.type}:
            if torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind):
                modes.enter_context(torch.autocast(kind, enabled=False))
        yield


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without warnings of torch's prototypes, of fallbacks and of resized out= tensors; without
    torchext's runtime those of C++ are seen. The mode of the fallback is for the user's own calls.
    """
    functorch = torch._C._functorch
    with warnings.catch_warnings(), contextlib.ExitStack() as of_runtime:
        warnings.simplefilter("ignore")
        with contextlib.suppress(ImportError):
            of_runtime.enter_context(runtime().IgnoredWarnings())
            of_runtime.enter_context(fallback.mode("silent"))
        functorch._set_vmap_fallback_warning_enabled(False)
        try:
            yield
        finally:
            functorch._set_vmap_fallback_warning_enabled(True)


def prepare_test_device() -> str:
    """Bring the test device up before the first backward; return why it cannot be, or ''."""
    try:
        comparison_device()
    except Unavailable as reason:
        return str(reason)
    return ""
