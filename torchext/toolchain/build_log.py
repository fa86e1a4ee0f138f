# SPDX-License-Identifier: BSD-3-Clause
"""Captures what compilers and linkers print.

They write to file descriptors, not to sys.stdout, so descriptors 1 and 2 are pointed at a log file,
and a thread copies the file to the real output as it grows.
"""

from __future__ import annotations

import os
import re
import sys
import threading
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
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC
        self._file = os.open(self.path, flags, 0o644)
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


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
