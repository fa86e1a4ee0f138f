# SPDX-License-Identifier: BSD-3-Clause
"""Files that one process holds at a time; who is killed lets go of them."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def locked(path: str | os.PathLike) -> Iterator[None]:
    """Hold the file `path` alone, and say so where another build has it. OSError where its folder
    has no locks."""
    import fcntl  # POSIX; other platforms are refused before

    with open(path, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = f"waiting for another build in {os.path.dirname(path)}"
            print(message, file=sys.stderr, flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
