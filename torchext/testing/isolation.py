# SPDX-License-Identifier: BSD-3-Clause
"""The checks of each operator in a process of its own, so that a kernel that ends its process ends
one check.

A server, a Python of its own that runs no kernel, loads the library and is forked for each
operator. It is another process than the caller's because what forks must have no threads: the
caller may have run a backward, or hold a GPU. Where a check ends its process, that is its outcome,
and another process goes on behind it.
"""

from __future__ import annotations

import collections
import contextlib
import importlib
import mmap
import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from multiprocessing.connection import Connection, wait
from typing import Any

import torch

from .. import library as libraries
from . import calls
from . import device as test_device
from .checks.transforms import forgo_test_device
from .facts import table_of
from .outcomes import Outcome, outcome_of, plain, prepare_test_device
from .recording import Recorded, may_call_others, recorded_samples
from .report import State
from .samples import Origin
from .subject import Subject

_MOST_JOBS = 4
_ROOM = 4096  # bytes for what a process was doing


@dataclass(frozen=True)
class Request:
    """What a server is to do."""

    library: str  # the path of its shared object
    others: list[str]  # of those that are loaded beside it
    packages: list[str]  # that are imported and hold one of them: what they register counts
    operators: list[str]
    checks: list[str]
    device: str
    jobs: int


def request_of(
    library: str, operators: list[str], checks: list[str], device: torch.device
) -> Request:
    """The request for a library that is loaded here. On an accelerator one process runs at a time,
    for its memory."""
    loaded = libraries.loaded_paths()
    jobs = 1
    if device.type in ("cpu", test_device.NAME):
        jobs = min(_MOST_JOBS, len(os.sched_getaffinity(0)))
    return Request(
        library, [path for path in loaded if path != library], _packages_around(loaded),
        operators, checks, str(device), jobs,
    )  # fmt: skip


def isolated_outcomes(request: Request) -> Iterator[tuple[str, str | Origin, Outcome | None]]:
    """Run the checks of a request, and yield (operator, check, outcome) in the order of both as
    they come; before those of an operator, (operator, where its samples are from, None); and before
    all, ("", why the test device that one of them needs cannot be used or "", None).

    Raises RuntimeError where the server ends before its time; it says why on stderr.
    """
    receiving, sending = multiprocessing.Pipe(duplex=False)
    with receiving, contextlib.ExitStack() as ends:
        server = ends.enter_context(_started(sending, request))
        sending.close()
        operators = ["", *request.operators]
        buffers = {operator: collections.deque() for operator in operators}
        for operator in operators:
            for _ in range(1 + len(request.checks) if operator else 1):
                while not buffers[operator]:
                    try:
                        other, *message = receiving.recv()
                    except EOFError:
                        status = _ending(server.wait())
                        raise RuntimeError(f"the process of the checks {status}") from None
                    buffers[other].append(message)
                yield operator, *buffers[operator].popleft()


@contextlib.contextmanager
def _started(sending: Connection, request: Request) -> Iterator[subprocess.Popen]:
    """A server, which is at an end where the context is."""
    # Pools are per process; what set the number of threads by a call of torch's may not fork.
    threads = str(max(1, torch.get_num_threads() // request.jobs))
    environment = {**os.environ, "TORCHINDUCTOR_COMPILE_THREADS": "1", "OMP_NUM_THREADS": threads}
    environment["PYTHONPATH"] = os.pathsep.join(path or os.getcwd() for path in sys.path)
    program = f"from {__name__} import _serve; _serve({sending.fileno()})"
    server = subprocess.Popen(
        [sys.executable, *subprocess._args_from_interpreter_flags(), "-c", program],
        env=environment, stdin=subprocess.PIPE, pass_fds=[sending.fileno()],
    )  # fmt: skip
    try:
        with contextlib.suppress(BrokenPipeError):  # its end is seen by who receives
            server.stdin.write(pickle.dumps(request))
            server.stdin.close()
        yield server
    finally:
        server.terminate()
        server.wait()


def _packages_around(paths: list[str]) -> list[str]:
    """The packages that are imported here and hold a library."""
    folders = {os.path.dirname(os.path.realpath(path)) for path in paths}
    found = []
    for name, module in list(sys.modules.items()):
        spec = getattr(module, "__spec__", None)  # some modules of torch's answer to any name
        places = spec.submodule_search_locations if isinstance(spec, ModuleSpec) else None
        if folders & set(map(os.path.realpath, places or ())):
            found.append(name)
    return found


# -- in the server


def _serve(descriptor: int) -> None:
    """Fork for each operator of the request on stdin, and send what the processes do."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # which ends those that it forked
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
    if request.device.partition(":")[0] == test_device.NAME:
        test_device.load()
    if any(check.startswith("compile") or check == "opcheck" for check in request.checks):
        importlib.import_module("torch._inductor.compile_fx")


def _lack_of_device() -> str:
    """Build the test device for all; return why no process can use it, or ''. To use it takes a
    backward, which no process that forks may have run: one process tries."""
    reason = _said_elsewhere(prepare_test_device)
    if reason is None:
        reason = "a process that tries it ends, see above"
    if reason:
        forgo_test_device(reason)
    else:
        test_device.load()
    return reason


_FORK = multiprocessing.get_context("fork")


def _said_elsewhere(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function returns in a process of its own; None where that ends before."""
    receiving, sending = multiprocessing.Pipe(duplex=False)
    process = _FORK.Process(target=lambda: sending.send(function(*arguments)), daemon=True)
    process.start()
    sending.close()
    try:
        return receiving.recv()
    except EOFError:
        return None
    finally:
        process.join()


def _recorded_of(subject: Subject, wanted: list[str]) -> Recorded:
    with plain(subject.device):
        return recorded_samples([subject], wanted)


@dataclass
class _Work:
    """What is left to check of an operator."""

    operator: str
    checks: list[str]
    is_varied: bool = True
    is_first: bool = True


@dataclass
class _Worker:
    """A process and what it said."""

    work: _Work
    process: multiprocessing.Process
    receiving: Connection
    doing: mmap.mmap  # the call that it was in
    running: str | None = None  # the check that began and did not end
    done: list[str] = field(default_factory=list)


class _Server:
    def __init__(self, request: Request, sending: Connection) -> None:
        self.request, self.sending = request, sending
        table = table_of(request.library)
        self.facts = {facts.name: facts for facts in table.operators}
        self.device = torch.device(request.device)
        self.recorded = self._record()
        self.waiting = collections.deque(_Work(name, request.checks) for name in request.operators)
        self.workers: dict[Connection, _Worker] = {}

    def _record(self) -> Recorded:
        """What operators without samples are called with. Each that may call them has a process,
        whose end is for its own checks to find."""
        found: Recorded = {}
        names = [name for name in self.request.operators if not self.facts[name].samples]
        for facts in self.facts.values() if names else ():
            if may_call_others(facts):
                calls = _said_elsewhere(_recorded_of, Subject(facts, self.device), names)
                for name, samples in (calls or {}).items():
                    found.setdefault(name, []).extend(s for s in samples if s not in found[name])
        return found

    def run(self) -> None:
        while self.waiting or self.workers:
            while self.waiting and len(self.workers) < self.request.jobs:
                self._start(self.waiting.popleft())
            for receiving in wait(list(self.workers)):
                worker = self.workers[receiving]
                try:
                    message = receiving.recv()
                except (EOFError, OSError, pickle.UnpicklingError):  # it ended, in a message or not
                    del self.workers[receiving]
                    self._end(worker)
                else:
                    self._take(worker, *message)

    def _start(self, work: _Work) -> None:
        receiving, sending = multiprocessing.Pipe(duplex=False)
        doing = mmap.mmap(-1, _ROOM)
        recorded = self.recorded.get(work.operator, [])
        subject = Subject(
            self.facts[work.operator], self.device, work.is_varied, lambda _: recorded
        )
        process = _FORK.Process(
            target=_check_all, args=(subject, work, sending, doing), daemon=True
        )
        process.start()
        sending.close()
        self.workers[receiving] = _Worker(work, process, receiving, doing)

    def _take(self, worker: _Worker, what: str, outcome: Outcome | Origin | None) -> None:
        operator = worker.work.operator
        if outcome is None:
            worker.running = what
        elif isinstance(outcome, Origin):
            if worker.work.is_first:
                self.sending.send((operator, outcome, None))
            worker.work.is_first = False
        else:
            worker.running = None
            worker.done.append(what)
            self.sending.send((operator, what, outcome))

    def _end(self, worker: _Worker) -> None:
        """Go on behind a check that ended its process."""
        worker.receiving.close()
        worker.process.join()
        work = worker.work
        left = [check for check in work.checks if check not in worker.done]
        if not left:
            return
        ended = f"the process {_ending(worker.process.exitcode)}{_during(worker.doing)}"
        if work.is_first:
            self.sending.send((work.operator, Origin.SPEC, None))
        if worker.running is None:
            # Before the first of them: what all need cannot be had.
            for check in left:
                state = State.FAILED if check == "samples" else State.NOT_RUN
                self.sending.send((work.operator, check, Outcome(state, ended)))
            return
        crashed, *rest = left
        self.sending.send((work.operator, crashed, Outcome(State.FAILED, ended)))
        if rest:
            is_varied = work.is_varied and crashed != "samples"
            self.waiting.appendleft(_Work(work.operator, rest, is_varied, is_first=False))


def _ending(status: int | None) -> str:
    if status is not None and status < 0:
        with contextlib.suppress(ValueError):
            found = signal.Signals(-status)
            return f"died of {found.name} ({signal.strsignal(found)})"
    return f"ended with status {status}"


def _during(doing: mmap.mmap) -> str:
    text = doing[:].rstrip(b"\0").decode("utf-8", "replace")
    return f" in the call {text}" if text else ""


# -- in the process of an operator


def _check_all(subject: Subject, work: _Work, sending: Connection, doing: mmap.mmap) -> None:
    if "device" in work.checks and subject.device.type == "cpu":
        prepare_test_device()  # before the first backward

    def watch(call: calls.Call) -> None:
        text = str(call).encode()[:_ROOM]
        doing[:] = text.ljust(_ROOM, b"\0")

    calls.watch_calls(watch)
    sending.send(("samples", subject.origin))
    if "samples" not in work.checks:
        outcome_of(subject, "samples")  # which all need, and some processes do not survive
    for check in work.checks:
        sending.send((check, None))
        outcome = outcome_of(subject, check)
        sending.send((check, Outcome(outcome.state, outcome.reason, outcome.seconds)))
    sys.stdout.flush()
