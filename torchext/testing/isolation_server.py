# SPDX-License-Identifier: BSD-3-Clause
"""The server of the isolated checks, a Python of its own, and the processes that it starts."""

from __future__ import annotations

import collections
import contextlib
import functools
import importlib
import mmap
import multiprocessing
import multiprocessing.connection
import pickle
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

import torch

from .. import library as libraries
from . import calls, cuda_on_host
from .checks.transforms import forgo_test_device
from .device import NAME, load
from .facts import Facts, table_of
from .isolation import Request, ending
from .outcomes import Outcome, outcome_of, plain, prepare_test_device
from .recording import Recorded, may_call_others, recorded_samples
from .report import State
from .samples import Origin, Sample
from .subject import Subject

_ROOM = 4096  # bytes for what a process was doing


def serve(descriptor: int) -> None:
    """Check the operators of the request on stdin in other processes, and send what these say."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # which ends those that it started
    with Connection(descriptor, readable=False) as sending:
        request = pickle.load(sys.stdin.buffer)
        _load(request)
        needs_device = "device" in request.checks and request.device == "cpu"
        sending.send(("", _lack_of_device() if needs_device else "", None))
        _Server(request, sending).run()


def _load(request: Request) -> None:
    """Load what the processes have in common, which takes seconds; nothing here starts a thread."""
    for path in (request.library, *request.others):
        libraries.load_library(path)
    for name in request.packages:
        importlib.import_module(name)
    if request.device.partition(":")[0] == NAME or request.kernels_on_host:
        load()
    for path, namespace in request.kernels_on_host:
        cuda_on_host.open_object(path, namespace)
    if any(check.startswith("compile") or check == "opcheck" for check in request.checks):
        _warm_compiler()
    if {"gradgradcheck", "forward_mode"} & set(request.checks):
        importlib.import_module("torch._decomp.decompositions_for_jvp")


def _warm_compiler() -> None:
    """Compile something: what torch.compile imports, asks of the machine and keeps takes each
    process seconds where the server has none of it. Nothing is differentiated: a process that forks
    may have run no backward."""
    with contextlib.suppress(Exception):  # of a machine without a compiler, which a check tells
        for dynamic in (False, True):
            compiled = torch.compile(_warming, fullgraph=True, dynamic=dynamic)
            compiled(torch.ones(3, 4))
    torch._dynamo.reset()


def _warming(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return (x.sin() + 1).sum(1), x.t().contiguous()


def _lack_of_device() -> str:
    """Build the test device for all; return why no process can use it, or ''. To use it takes a
    backward, which no process that forks may have run: one process tries."""
    reason = _said_elsewhere(prepare_test_device)
    if reason is None:
        reason = "a process that tries it ends, see above"
    if reason:
        forgo_test_device(reason)
    else:
        load()
    return reason


_FORK = multiprocessing.get_context("fork")


_SPAWN = multiprocessing.get_context("spawn")


def _said_elsewhere(function: Callable[..., Any], *arguments: Any, forks: bool = True) -> Any:
    """What a function returns in a process of its own; None where that ends before."""
    receiving, sending = multiprocessing.Pipe(duplex=False)
    context = _FORK if forks else _SPAWN
    process = context.Process(target=_say, args=(sending, function, *arguments), daemon=True)
    process.start()
    sending.close()
    try:
        return receiving.recv()
    except EOFError:
        return None
    finally:
        process.join()


def _say(sending: Connection, function: Callable[..., Any], *arguments: Any) -> None:
    sending.send(function(*arguments))


@functools.cache
def _facts_of(library: str) -> dict[str, Facts]:
    return {facts.name: facts for facts in table_of(library).operators}


def _recorded_of(request: Request, operator: str, wanted: list[str]) -> Recorded:
    if not request.forks:
        _load(request)
    subject = Subject(_facts_of(request.library)[operator], torch.device(request.device))
    with plain(subject.device):
        return recorded_samples([subject], wanted)


@dataclass
class _Work:
    """What is left to check of an operator."""

    operator: str
    checks: list[str]
    recorded: list[Sample]
    is_varied: bool = True
    is_first: bool = True


@dataclass
class _Worker:
    """A process and what it said of the first of its works."""

    works: list[_Work]
    process: multiprocessing.Process
    receiving: Connection
    doing: tempfile._TemporaryFileWrapper  # the call that it was in
    running: str | None = None  # the check that began and did not end
    is_begun: bool = False  # something was said of that work
    is_used: bool = False  # a work is done


class _Server:
    def __init__(self, request: Request, sending: Connection) -> None:
        self.request, self.sending = request, sending
        self.facts = _facts_of(request.library)
        recorded = self._record()
        self.waiting = collections.deque(
            _Work(name, [*request.checks], recorded.get(name, [])) for name in request.operators
        )
        self.workers: dict[Connection, _Worker] = {}

    def _record(self) -> Recorded:
        """What operators without samples are called with. Each that may call them has a process,
        whose end is for its own checks to find."""
        found: Recorded = {}
        request = self.request
        names = [name for name in request.operators if not self.facts[name].samples]
        for facts in self.facts.values() if names else ():
            if may_call_others(facts):
                arguments = (request, facts.name, names)
                calls = _said_elsewhere(_recorded_of, *arguments, forks=request.forks)
                for name, samples in (calls or {}).items():
                    found.setdefault(name, []).extend(s for s in samples if s not in found[name])
        return found

    def run(self) -> None:
        while self.waiting or self.workers:
            while self.waiting and len(self.workers) < self.request.jobs:
                works = [self.waiting.popleft()]
                if not self.request.forks:  # a new process is worth more than one
                    works += self.waiting
                    self.waiting.clear()
                self._start(works)
            for receiving in wait(list(self.workers)):
                worker = self.workers[receiving]
                try:
                    message = receiving.recv()
                except (EOFError, OSError, pickle.UnpicklingError):  # it ended, in a message or not
                    del self.workers[receiving]
                    self._end(worker)
                else:
                    self._take(worker, *message)

    def _start(self, works: list[_Work]) -> None:
        receiving, sending = multiprocessing.Pipe(duplex=False)
        doing = tempfile.NamedTemporaryFile()  # noqa: SIM115  # it is the worker's
        doing.truncate(_ROOM)
        context = _FORK if self.request.forks else _SPAWN
        process = context.Process(
            target=_check_all, args=(self.request, works, sending, doing.name), daemon=True
        )
        process.start()
        sending.close()
        self.workers[receiving] = _Worker(works, process, receiving, doing)

    def _take(self, worker: _Worker, what: str, outcome: Outcome | Origin | None) -> None:
        work = worker.works[0]
        if outcome is None:
            worker.running = what
        elif isinstance(outcome, Origin):
            if work.is_first:
                self.sending.send((work.operator, outcome, None))
            work.is_first = False
        else:
            worker.running = None
            work.checks.remove(what)
            self.sending.send((work.operator, what, outcome))
        worker.is_begun = True
        if not work.checks:
            del worker.works[0]
            worker.is_begun, worker.is_used = False, True

    def _end(self, worker: _Worker) -> None:
        """Go on behind a process that ended: behind the check that ended it, or with the operators
        that it left to another."""
        worker.receiving.close()
        worker.process.join()
        status, text = worker.process.exitcode, _text_of(worker.doing)
        worker.doing.close()
        if status == 0 and worker.is_used and not worker.is_begun:
            self.waiting.extendleft(reversed(worker.works))
        elif worker.works:
            self.waiting.extendleft(reversed(worker.works[1:]))
            ended = f"the process {ending(status)}{text}"
            self._end_in(worker.works[0], worker.running, ended)

    def _end_in(self, work: _Work, running: str | None, ended: str) -> None:
        """Say that a process ended in a check, and go on with the other checks."""
        if work.is_first:
            self.sending.send((work.operator, Origin.SPEC, None))
        if running is None:
            # Before the first of them: what all need cannot be had.
            for check in work.checks:
                state = State.FAILED if check == "samples" else State.NOT_RUN
                self.sending.send((work.operator, check, Outcome(state, ended)))
            return
        crashed, *rest = work.checks
        self.sending.send((work.operator, crashed, Outcome(State.FAILED, ended)))
        if rest:
            work.checks, work.is_first = rest, False
            work.is_varied = work.is_varied and crashed != "samples"
            self.waiting.appendleft(work)


def _text_of(doing: tempfile._TemporaryFileWrapper) -> str:
    doing.seek(0)
    text = doing.read().rstrip(b"\0").decode("utf-8", "replace")
    return f" in the call {text}" if text else ""


# -- in the process of an operator, or of several


def _check_all(request: Request, works: list[_Work], sending: Connection, doing: str) -> None:
    """Run the checks of the operators; a new process ends behind one of which a check failed."""
    if not request.forks:
        _load(request)
    if "device" in request.checks and torch.device(request.device).type == "cpu":
        prepare_test_device()  # before the first backward
    with open(doing, "r+b") as file, mmap.mmap(file.fileno(), _ROOM) as room:

        def watch(call: calls.Call) -> None:
            text = str(call).encode()[:_ROOM]
            room[:] = text.ljust(_ROOM, b"\0")

        calls.watch_calls(watch)
        for work in works:
            states = list(_checked(request, work, sending))
            if State.FAILED in states:
                break
        calls.watch_calls(None)
    sys.stdout.flush()


def _checked(request: Request, work: _Work, sending: Connection) -> Iterator[State]:
    facts, device = _facts_of(request.library)[work.operator], torch.device(request.device)
    subject = Subject(facts, device, work.is_varied, lambda _: work.recorded)
    sending.send(("samples", subject.origin))
    if "samples" not in work.checks:
        outcome_of(subject, "samples")  # which all need, and some processes do not survive
    for check in work.checks:
        sending.send((check, None))
        outcome = outcome_of(subject, check)
        sending.send((check, Outcome(outcome.state, outcome.reason, outcome.seconds)))
        yield outcome.state
