# SPDX-License-Identifier: BSD-3-Clause
"""torchext.testing.check: every check on every operator of a library."""

from __future__ import annotations

import contextlib
import difflib
import os
import sys
import time
import warnings
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import torch

from .. import fallback
from .. import library as libraries
from ..runtime import runtime
from . import device as test_device
from .checks import CHECKS
from .checks.transforms import comparison_device
from .facts import Facts, Table, read_table
from .known_failures import KnownFailures
from .report import Cell, Report, State
from .subject import NotApplicable, Refused, Subject, Unavailable, fork_rng, seed_generators


class CheckError(AssertionError):
    """What `check` raises where an operator falls short; `report` has all of it."""

    def __init__(self, report: Report) -> None:
        self.report = report
        count = len(report.failures)
        super().__init__(f"{count} checks of {report.namespace} failed, see the matrix above")


def check(
    library: str | os.PathLike,
    *,
    operators: Iterable[str] | None = None,
    checks: Iterable[str] | None = None,
    known_failures: str | os.PathLike | None = None,
    device: str | torch.device = "cpu",
    html: str | os.PathLike | None = None,
    raise_exception: bool = True,
) -> Report:
    """Run every check on every operator of a library, print the matrix and return it.

    library: the namespace of a loaded library, or what `torchext.load_library` takes, which is
    then loaded: a package's name, or a path.
    operators: names such as "mul.Tensor", with or without namespace; all where it is None.
    checks: names of the matrix's columns; all where it is None. "samples" is always one.
    known_failures: a file with a line `OPERATOR CHECKS: REASON` for each check that is expected to
    fail; one that passes is a failure.
    device: what the checks run on, such as "cuda"; "torchext" is the test device. The check
    "device" compares it with the CPU, and where it is the CPU the test device with it.
    html: where to write the matrix as a page, which is opened first.
    raise_exception: whether CheckError, an AssertionError, is raised at the end where a check
    failed that is not known.

    Runs on the operators' `samples:`, or on some made from the schema where the Meta kernel takes
    them; without samples the check "samples" fails. A row is printed as it comes: where a kernel
    ends the process, the last mark is that before it. Takes a few seconds an operator, most of them
    in torch.compile. The test device, which the check "device" takes on the CPU, needs a process
    that has run no backward yet; there and where it cannot be built a warning says that this check
    has nothing to check. Operators of PyTorch that the library has kernels for are not checked, and
    are named below the matrix, and so are those of the namespace that are not in the library's
    spec.

    Raises ValueError for names that mean nothing, in the file of known failures too, and for a
    library without operators of its own, OSError where the page cannot be written or a file is not
    there, ImportError where the library cannot be loaded, and what torch or
    `torchext.testing.device` raises for a device that is not there. torch.compile's caches in the
    process are emptied.
    """
    runner = Runner(library, operators, checks, known_failures, device=device)
    if html is not None:
        open(html, "a", encoding="utf-8").close()  # whose errors would come minutes later
    if runner.needs_test_device and (reason := prepare_test_device()):
        warnings.warn(f"the check 'device' has nothing to check: {reason}", stacklevel=2)
    report = runner.new_report()
    _print(report.heading() + "\n")
    for subject in runner.subjects:
        _print(report.label(subject.facts.name))
        for name in runner.checks:
            cell = runner.cell(subject, name)
            report.add(cell)
            _print(f"{cell.state.value} ")
        _print("\n")
    _print(report.summary() + "\n")
    if html is not None:
        Path(html).write_text(report.to_html(), encoding="utf-8")
    if raise_exception and not report.passed:
        raise CheckError(report)
    return report


def _print(text: str) -> None:
    """Print at once, and whatever the encoding of the terminal."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    print(text.encode(encoding, "replace").decode(encoding), end="", flush=True)


class Runner:
    """The operators, checks and known failures of one run."""

    def __init__(
        self,
        library: str | os.PathLike,
        operators: Iterable[str] | None = None,
        checks: Iterable[str] | None = None,
        known_failures: str | os.PathLike | None = None,
        other_namespaces: Collection[str] = (),
        device: str | torch.device = "cpu",
    ) -> None:
        self.device = _usable(device)
        table = table_of(library)
        facts, self.overrides = table.operators, table.overrides
        self.namespace = table.namespace
        self.others = _others(self.namespace, [*(f.name for f in facts), *table.beside])
        self.checks = _chosen(checks, list(CHECKS), "check")
        if "samples" not in self.checks:  # without which the others have nothing to check
            self.checks = ["samples", *self.checks]
        names = [f.name for f in facts]
        wanted = set(_chosen(operators, names, "operator", f"{self.namespace}::"))
        self.known = KnownFailures()
        if known_failures is not None:
            self.known = KnownFailures.read(
                known_failures, self.namespace, names, list(CHECKS), other_namespaces
            )
        self.subjects = [Subject(f, self.device) for f in facts if f.name in wanted]

    @property
    def needs_test_device(self) -> bool:
        """Whether a check compares the CPU with the test device."""
        return "device" in self.checks and self.device.type == "cpu"

    def new_report(self) -> Report:
        """A report without cells."""
        places = {s.facts.name: s.facts.location for s in self.subjects}
        made = [s.facts.name for s in self.subjects if s.samples and s.has_made_samples]
        return Report(
            self.namespace, torch.__version__, str(self.device), self.checks, places,
            made_samples=made, overrides=self.overrides, others=self.others,
        )  # fmt: skip

    def cell(self, subject: Subject, name: str) -> Cell:
        """Run one check of one operator."""
        began = time.perf_counter()
        state, reason, error = _outcome(subject, name)
        known = self.known.reason(subject.facts.name, name)
        if known is not None and state is State.FAILED:
            state, reason = State.KNOWN, f"{known} ({(reason.splitlines() or [''])[0]})"
        elif known is not None and not isinstance(error, Unavailable):
            says = {State.PASSED: "", State.REFUSED: f", it refuses ({reason})"}
            says = says.get(state, f", there is nothing to check ({reason})")
            reason = f"it no longer fails{says}; it is known to fail: {known}"
            state = State.FAILED
        seconds = time.perf_counter() - began
        return Cell(subject.facts.name, name, state, reason, seconds, error)


def table_of(library: str | os.PathLike) -> Table:
    """The table of a library, which is loaded; ValueError where it has no operators of its own."""
    table = read_table(libraries.loaded_path(library))
    if not table.operators:
        raise ValueError(f"{os.fspath(library)} has no operators of its own")
    return table


def _others(namespace: str, names: list[str]) -> list[str]:
    """The operators of a namespace without those of a library's spec."""
    begin = f"{namespace}::"
    everything = torch._C._dispatch_get_all_op_names()
    own = (name.removeprefix(begin) for name in everything if name.startswith(begin))
    return sorted(set(own) - set(names))


def _usable(device: str | torch.device) -> torch.device:
    """The device, with the index that its tensors have; raises what torch says of one that is not
    there."""
    if str(device).partition(":")[0] == test_device.NAME:
        test_device.device()
    if torch.device(device).type == "meta":
        raise ValueError("the checks compute, and meta tensors have no values")
    return torch.empty(0, device=device).device


def _chosen(
    names: Iterable[str] | None, known: list[str], what: str, prefix: str = ""
) -> list[str]:
    if names is None:
        return known
    if isinstance(names, str):
        raise ValueError(f"the {what}s are a list of names, not {names!r}")
    asked = [name.removeprefix(prefix) for name in names]
    if not asked:
        raise ValueError(f"the list of {what}s is empty")
    for name in asked:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1) or known[:20]
            raise ValueError(f"there is no {what} {name!r}, but {', '.join(close)}")
    return [name for name in known if name in asked]


def _outcome(subject: Subject, name: str) -> tuple[State, str, BaseException | None]:
    try:
        with _quiet(), _plain_modes(subject.device), fork_rng(subject.device):
            seed_generators(subject.device)
            if name != "samples":
                try:
                    CHECKS["samples"](subject)
                except AssertionError as error:
                    raise Unavailable("the check of samples fails") from error
            note = CHECKS[name](subject)
            if subject.device.type != "cpu":
                torch.accelerator.synchronize(subject.device)  # its errors are of this check
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


__all__ = ["CheckError", "Facts", "Runner", "check", "prepare_test_device", "table_of"]
