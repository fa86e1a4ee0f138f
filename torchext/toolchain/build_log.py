# SPDX-License-Identifier: BSD-3-Clause
"""Captures what compilers and linkers print, and lets one build at a time into a folder.

Compilers write to file descriptors, not to sys.stdout, so descriptors 1 and 2 are pointed at a log
file, and a thread copies the file to the real output as it grows. The same open file is the lock:
ninja inherits it, so a ninja that outlives a killed build keeps the next build waiting until it is
done, instead of writing the same objects as the next one. Compilers do not inherit it, and live on
where ninja was killed too: they are found by what they write.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Callable

POLL_SECONDS = 0.05
# ninja's progress line with the whole command; only the source's name is for people
_COMMAND = re.compile(rb"^(\[\d+/\d+\] ).* -c (?:'([^']+)'|(\S+)) -o .*$")


class BuildLog:
    """`with BuildLog(path) as log:` everything printed inside is shown and is in `log.text`."""

    def __init__(self, path: str):
        self.path = path
        self.text = ""

    def __enter__(self) -> BuildLog:
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        _lock(self._file, self.path)
        _wait_for_compilers(os.path.dirname(self.path))
        os.ftruncate(self._file, 0)
        _flush()
        self._saved = [os.dup(descriptor) for descriptor in (1, 2)]
        for descriptor in (1, 2):
            os.dup2(self._file, descriptor)
        self._done = threading.Event()
        self._shower = threading.Thread(target=self._show, daemon=True)
        self._shower.start()
        return self

    def __exit__(self, *exception) -> None:
        _flush()
        for descriptor, saved in zip((1, 2), self._saved):
            os.dup2(saved, descriptor)
        self._done.set()
        self._shower.join()
        for descriptor in (*self._saved, self._file):
            os.close(descriptor)
        with open(self.path, encoding="utf-8", errors="replace") as log:
            self.text = log.read()

    def _show(self) -> None:
        """Copy whole lines from the log to the real output until the build is over."""
        write: Callable = lambda data: os.write(self._saved[0], data)  # noqa: E731
        with open(self.path, "rb") as log:
            rest = b""
            while True:
                over = self._done.wait(POLL_SECONDS)
                *lines, rest = (rest + log.read()).split(b"\n")
                for line in lines:
                    write(shortened(line) + b"\n")
                if over:
                    write(rest)
                    return


def shortened(line: bytes) -> bytes:
    """Return a progress line without the compiler's arguments; TORCHEXT_VERBOSE=1 keeps them."""
    command = _COMMAND.match(line)
    if not command or os.environ.get("TORCHEXT_VERBOSE") == "1":
        return line
    source = command[2] or command[3]
    return command[1] + os.path.relpath(source, os.getcwd().encode())


def _lock(descriptor: int, path: str) -> None:
    import fcntl  # POSIX; other platforms are refused before a log is opened

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(f"waiting for another build in {os.path.dirname(path)}", flush=True)
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def _wait_for_compilers(folder: str) -> None:
    """Wait for compilers of a killed build, which write into this folder after the next one has."""
    is_said = False
    while _writes_into(os.path.abspath(folder)):
        if not is_said:
            print(f"waiting for compilers of a build in {folder} that was killed", flush=True)
        is_said = True
        time.sleep(POLL_SECONDS)


def _writes_into(folder: str) -> bool:
    """Whether a process was started with `-o` and a path in this folder."""
    output = f" -o {folder}{os.sep}".encode()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                if output in file.read().replace(b"\0", b" "):
                    return True
        except OSError:
            continue  # it has ended, or is another user's
    return False


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
