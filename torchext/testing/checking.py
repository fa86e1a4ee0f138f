# SPDX-License-Identifier: BSD-3-Clause
"""torchext.testing.check: every check on every operator of a library."""

from __future__ import annotations

import difflib
import os
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from pathlib import Path

import torch

from .. import library as libraries
from . import cuda_on_host as kernels_on_host
from . import device as test_device
from .checks import CHECKS
from .facts import Facts, table_of
from .isolation import isolated_outcomes, request_of
from .known_failures import KnownFailures
from .outcomes import Outcome, outcome_of, plain, prepare_test_device
from .recording import Recorded, may_call_others, recorded_samples
from .report import Cell, Report, State
from .samples import Origin, Sample
from .subject import Subject


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
    isolate: bool = True,
    cuda_on_host: bool = False,
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
    isolate: whether each operator is checked in a process of its own, on the CPU several at a time.
    A kernel that ends its process is then a failure of that check, with the call that it was in,
    and the checks behind it go on. These processes have this library and the others that are
    loaded here, and have imported the packages around them; what else the caller has registered
    with torch is there with `isolate=False` only.

    cuda_on_host: whether the library's CUDA kernels are built for the host, as
    `torchext.testing.cuda_on_host.load` does, and checked on the test device; no other is given.

    Runs on the operators' `samples:`, or on some made from the schema where the Meta kernel takes
    them; without samples the check "samples" fails, and the others are not run. A row is printed as
    it comes, and its failures below it. Takes a few seconds an operator, most of them in
    torch.compile. The test device, which the check "device" takes on the CPU, needs, without
    processes of their own, one that has run no backward yet; there and where it cannot be built a
    warning says that this check has nothing to check. Operators of PyTorch that the library has
    kernels for are not checked, and are named below the matrix, and so are those of the namespace
    that are not in the library's spec.

    Raises ValueError for names that mean nothing, in the file of known failures too, and for a
    library without operators of its own, OSError where the page cannot be written or a file is not
    there, ImportError where the library cannot be loaded, and what torch or
    `torchext.testing.device` raises for a device that is not there. torch.compile's caches in the
    process are emptied.
    """
    if cuda_on_host:
        if str(device) != "cpu":
            raise ValueError("with cuda_on_host=True the checks run on the test device: no other")
        device = kernels_on_host.load(library)
    runner = Runner(library, operators, checks, known_failures, device=device)
    if html is not None:
        open(html, "a", encoding="utf-8").close()  # whose errors would come minutes later
    report = runner.new_report()
    _print(report.heading() + "\n")
    for cell in runner.run(report, isolate):
        if cell.check == runner.checks[0]:
            _print(report.label(cell.operator))
        _print(f"{cell.state.value} ")
        if cell.check == runner.checks[-1]:
            _print(f"\n{report.failures_of(cell.operator)}")
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
        self.path = libraries.loaded_path(library)
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
        self._facts = facts
        self.subjects = [
            Subject(f, self.device, recorded=self._recorded_of) for f in facts if f.name in wanted
        ]

    def _recorded_of(self, operator: str) -> list[Sample]:
        return self._recorded.get(operator, [])

    @cached_property
    def _recorded(self) -> Recorded:
        """What operators without samples are called with in this process."""
        wanted = [f.name for f in self._facts if not f.samples]
        sources = [Subject(f, self.device) for f in self._facts if may_call_others(f)]
        with plain(self.device):
            return recorded_samples(sources, wanted) if wanted else {}

    @property
    def needs_test_device(self) -> bool:
        """Whether a check compares the CPU with the test device."""
        return "device" in self.checks and self.device.type == "cpu"

    def new_report(self) -> Report:
        """A report without cells."""
        places = {s.facts.name: s.facts.location for s in self.subjects}
        return Report(
            self.namespace, torch.__version__, str(self.device), self.checks, places,
            overrides=self.overrides, others=self.others,
        )  # fmt: skip

    def run(self, report: Report, isolate: bool) -> Iterator[Cell]:
        """Run everything, and yield the cells in the order of the matrix, each when it is in the
        report, as what is known of an operator's samples."""
        if isolate:
            names = [subject.facts.name for subject in self.subjects]
            request = request_of(self.path, names, self.checks, self.device)
            found = isolated_outcomes(request)
        else:
            found = self._outcomes_here()
        for operator, what, outcome in found:
            if not operator and what:
                warnings.warn(f"the check 'device' has nothing to check: {what}", stacklevel=3)
            elif not operator:
                continue
            elif outcome is None:
                report.add_origin(operator, what)
            else:
                cell = self.judged(operator, what, outcome)
                report.add(cell)
                yield cell

    def _outcomes_here(self) -> Iterator[tuple[str, str | Origin, Outcome | None]]:
        yield "", prepare_test_device() if self.needs_test_device else "", None
        for subject in self.subjects:
            yield subject.facts.name, subject.origin, None
            for name in self.checks:
                yield subject.facts.name, name, outcome_of(subject, name)

    def cell(self, subject: Subject, name: str) -> Cell:
        """Run one check of one operator."""
        return self.judged(subject.facts.name, name, outcome_of(subject, name))

    def judged(self, operator: str, name: str, outcome: Outcome) -> Cell:
        """The cell of an outcome, by what is known to fail."""
        state, reason = outcome.state, outcome.reason
        known = self.known.reason(operator, name)
        if known is not None and state is State.FAILED:
            state, reason = State.KNOWN, f"{known} ({(reason.splitlines() or [''])[0]})"
        elif known is not None and state is not State.NOT_RUN:
            says = {State.PASSED: "", State.REFUSED: f", it refuses ({reason})"}
            says = says.get(state, f", there is nothing to check ({reason})")
            reason = f"it no longer fails{says}; it is known to fail: {known}"
            state = State.FAILED
        return Cell(operator, name, state, reason, outcome.seconds, outcome.error)


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


__all__ = ["CheckError", "Facts", "Runner", "check", "prepare_test_device"]
