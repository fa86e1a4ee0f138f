# SPDX-License-Identifier: BSD-3-Clause
"""One build at a time in a project: the others wait, and for what a killed one left running."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator

from .locks import locked

POLL_SECONDS = 0.05


@contextlib.contextmanager
def one_build(lock: str, objects: str) -> Iterator[None]:
    """Hold the file `lock`; `objects` is how the paths of all folders with objects begin.

    A build that is killed lets go of the lock, but ninja may live on, and compilers, to which ninja
    gives process groups of their own: they would write objects while the next build does, or after.
    They hold no lock that they could inherit, and are found by what they write.
    """
    os.makedirs(os.path.dirname(lock), exist_ok=True)
    with locked(lock):
        _wait_for_orphans(os.path.abspath(objects))
        yield


def _wait_for_orphans(objects: str) -> None:
    is_said = False
    while any(_builds(process, objects) for process in filter(str.isdigit, os.listdir("/proc"))):
        if not is_said:
            message = "waiting for compilers of a build that was killed"
            print(message, file=sys.stderr, flush=True)
        is_said = True
        time.sleep(POLL_SECONDS)


def _builds(process: str, objects: str) -> bool:
    """Whether a process is ninja in one of the folders, or compiles or links there.

    A path of its command is spelled as here, or without symbolic links, as working directories are.
    """
    real = os.path.realpath(objects)
    try:
        with open(f"/proc/{process}/cmdline", "rb") as file:
            command = file.read().replace(b"\0", b" ")
        if any(f" -o {path}".encode() in command for path in (objects, real)):
            return True
        is_ninja = os.path.basename(command.partition(b" ")[0]) == b"ninja"
        writes = is_ninja or b" -o " in command
        return writes and os.readlink(f"/proc/{process}/cwd").startswith(real)
    except OSError:
        return False  # it has ended, or is another user's
