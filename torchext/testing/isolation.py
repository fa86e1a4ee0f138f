# SPDX-License-Identifier: BSD-3-Clause
"""The checks of each operator in a process of its own, so that a kernel that ends its process ends
one check.

A server, a Python of its own that runs no kernel, loads the library and is forked for each
operator. It is another process than the caller's because what forks must have no threads: the
caller may have run a backward, or hold a GPU. An accelerator's runtime survives no fork, and a
library that is loaded may have begun it: there each process is a Python of its own, which checks
one operator after the other until a check fails, for a kernel that fails can leave the runtime
unusable. Where a check ends its process, that is its outcome, and another process goes on behind
it.
"""

from __future__ import annotations

import collections
import contextlib
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from multiprocessing.connection import Connection

import torch

from .. import library as libraries
from . import cuda_on_host
from . import device as test_device
from .outcomes import Outcome
from .samples import Origin

_MOST_JOBS = 4


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
    forks: bool  # whether processes are forked, or are new
    kernels_on_host: list[tuple[str, str]]  # objects of CUDA kernels that the test device has


def request_of(
    library: str, operators: list[str], checks: list[str], device: torch.device
) -> Request:
    """The request for a library that is loaded here. On an accelerator one process runs at a time,
    for its memory."""
    loaded = libraries.loaded_paths()
    is_here = device.type in ("cpu", test_device.NAME)
    jobs = min(_MOST_JOBS, len(os.sched_getaffinity(0))) if is_here else 1
    return Request(
        library, [path for path in loaded if path != library], _packages_around(loaded),
        operators, checks, str(device), jobs, forks=is_here, kernels_on_host=cuda_on_host.opened(),
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
                        status = ending(server.wait())
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
    program = f"from {__package__}.isolation_server import serve; serve({sending.fileno()})"
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


def ending(status: int | None) -> str:
    """How a process ended, in words."""
    if status is not None and status < 0:
        with contextlib.suppress(ValueError):
            found = signal.Signals(-status)
            return f"died of {found.name} ({signal.strsignal(found)})"
    return f"ended with status {status}"


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
