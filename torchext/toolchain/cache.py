# SPDX-License-Identifier: BSD-3-Clause
"""What every library of a user would compile alike, kept from build to build and shared by them.

An entry is a folder, made whole or not at all: under another name, which a rename ends, so that a
build that is killed leaves nothing that another takes for an entry. Its name holds what it was made
of, the states of the files that were read included: what changed has another name.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from .locks import locked

VARIABLE = "TORCHEXT_CACHE_DIR"
SWITCH = "TORCHEXT_PRECOMPILED"  # "0" neither reads nor writes it
KEPT = 6  # entries of a kind; the last used stay
_FILES = "files.json"  # in an entry: the states of the files that it was made of
_UNFINISHED = "unfinished-"
_ABANDONED_SECONDS = 24 * 3600  # after which no build that is alive can be at work on one


def folder() -> Path:
    """Return where entries are kept: TORCHEXT_CACHE_DIR, else torchext in the user's cache."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "torchext"


def shared(
    kind: str, what: str, made_of: str, make: Callable[[Path], list[str]], is_made: bool
) -> Path | None:
    """Return the folder that `make` filled for this text; None where a build does without.

    That is where the user said so, where it is not there and not to be made, and, with a line of
    why, where it cannot be made. `what` is what it is called then.
    """
    if os.environ.get(SWITCH) == "0":
        return None

    def make_and_say(unfinished: Path) -> list[str]:
        print(f"compiling {what} into {folder()}, once for all", flush=True)
        return make(unfinished)

    try:
        return entry(kind, made_of, make_and_say) if is_made else find(kind, made_of)
    except OSError as error:
        problem = str(error)
    except subprocess.CalledProcessError as error:
        problem = error.stderr.strip() or str(error)
    say_without(what, problem)
    return None


def say_without(what: str, problem: str) -> None:
    """Say that a build does without what the cache has, and why."""
    print(f"building without {what} of the cache: {problem}", file=sys.stderr, flush=True)


def find(kind: str, made_of: str) -> Path | None:
    """Return the folder that an earlier call of `entry` filled for this text, if there is one."""
    found = _find(folder(), f"{kind}-{_digest(made_of)}")
    if found is not None:
        os.utime(found)  # used now
    return found


def entry(kind: str, made_of: str, make: Callable[[Path], list[str]]) -> Path:
    """Return the folder that `make` filled for this text, by this call or an earlier one.

    `make` gets an empty folder, and returns the files that it read: an entry is used as long as
    they are what they were. OSError where the cache cannot be written.
    """
    cache = folder()
    cache.mkdir(parents=True, exist_ok=True)
    key = f"{kind}-{_digest(made_of)}"
    with locked(cache / f"{key}.lock"):
        found = _find(cache, key)
        if found is None:
            found = _add(cache, key, make)
            _forget_the_oldest(cache, kind, found)
    os.utime(found)  # used now
    return found


def _find(cache: Path, key: str) -> Path | None:
    for candidate in sorted(cache.glob(f"{key}-*")):
        with contextlib.suppress(OSError, ValueError):
            states = json.loads((candidate / _FILES).read_text(encoding="utf-8"))
            if states == _states(states):
                return candidate
    return None


def _add(cache: Path, key: str, make: Callable[[Path], list[str]]) -> Path:
    unfinished = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=cache))
    try:
        states = json.dumps(_states(make(unfinished)))
        (unfinished / _FILES).write_text(states, encoding="utf-8")
        made = cache / f"{key}-{_digest(states)}"
        shutil.rmtree(made, ignore_errors=True)  # damaged, or it would have been found
        unfinished.rename(made)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return made


def _forget_the_oldest(cache: Path, kind: str, keep: Path) -> None:
    """Delete what is over the bound of a kind, and what builds left that were killed.

    A build that uses headers which are deleted goes on: GCC reads torch's, and for Clang a build
    has a link of its own.
    """
    folders = [path for path in cache.iterdir() if path.is_dir() and path != keep]
    by_age = sorted(folders, key=_last_used, reverse=True)
    entries = [path for path in by_age if path.name.startswith(f"{kind}-")]
    abandoned = time.time() - _ABANDONED_SECONDS
    unfinished = [path for path in by_age if path.name.startswith(_UNFINISHED)]
    unfinished = [path for path in unfinished if _last_used(path) < abandoned]
    for path in [*entries[KEPT - 1 :], *unfinished]:
        shutil.rmtree(path, ignore_errors=True)


def _last_used(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0  # another build deleted it just now


def _states(paths) -> dict[str, list[int]]:
    found = ((path, os.stat(path)) for path in paths)
    return {path: [status.st_mtime_ns, status.st_size] for path, status in found}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
