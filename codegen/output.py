# SPDX-License-Identifier: BSD-3-Clause
"""Generated files as values, and the one place that touches the disk.

Writes what changed, deletes what an earlier run wrote and this one does not, and keeps the list
in manifest.json. All files are made before the first is written, and all are on the disk, under
other names, before the first takes the place of an earlier one.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from .cpp.folding import fold

MANIFEST = "manifest.json"
# Its lists of files.
_ROLES = (
    "sources",
    "vector_sources",
    "parts",
    "headers",
    "python_sources",
    "python_parts",
    "python",
)
# Comments say where an entry stands in its spec; a change of that alone changes no code.
_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n{3,}")
_SPEC_LINE = re.compile(r"(\.ya?ml):\d+")
_LINE_DIRECTIVE = re.compile(r"^#line \d+ ", re.MULTILINE)
# After a `#line` into a spec: the generated file's own lines again.
RESTORE_LINE = "#line restored"


@dataclass(frozen=True)
class File:
    """One generated file: its path below the output folder, its text, and its role in a build."""

    path: str
    text: str
    # "source", "vector_source" (for each instruction set), "header", "python_source" (C++ that
    # needs Python), "python"; what such a source includes is a "part" or "python_part"
    role: str


@dataclass
class FileSet:
    """What one run generates; refuses to make the same file twice."""

    files: dict[str, File] = field(default_factory=dict)

    def add(self, files: Iterable[File]) -> None:
        """Take in the files of one emitter."""
        for file in files:
            if file.path in self.files:
                raise ValueError(f"two emitters write {file.path}")
            if file.role == "python":
                self.files[file.path] = replace(file, text=file.text.rstrip("\n") + "\n")
                continue
            text = fold(file.text)
            if "\n\n\n" in text:  # an empty part leaves its blank lines behind
                text = _BLANK_LINES.sub("\n\n", text)
            text = text.rstrip("\n") + "\n"
            self.files[file.path] = replace(file, text=_with_own_lines(text, file.path))

    def paths(self, role: str) -> list[str]:
        """The paths of all files of one role, sorted."""
        return sorted(f.path for f in self.files.values() if f.role == role)

    def write(self, folder: Path, manifest: dict[str, Any]) -> list[str]:
        """Bring the folder to this state; returns the paths whose text changed."""
        texts = {path: file.text.encode() for path, file in self.files.items()}
        texts[MANIFEST] = (json.dumps(manifest, indent=2) + "\n").encode()
        for parent in {os.path.dirname(path) for path in texts}:
            (folder / parent).mkdir(parents=True, exist_ok=True)
        with _locked(folder):
            stale = _listed(folder / MANIFEST) - set(self.files)
            changed = _replace_all(folder, texts)
            for path in stale:
                if (folder / path).is_file():
                    (folder / path).unlink()
        return sorted(changed - {MANIFEST})


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Wait for another run that writes there; where folders have no locks, nobody waits."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _listed(manifest: Path) -> set[str]:
    """The files that an earlier run wrote."""
    try:
        data = json.loads(manifest.read_text(encoding="utf-8"))
        listed = [path for role in _ROLES for path in data.get(role, [])]
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        return set()
    paths = [Path(p) for p in listed if isinstance(p, str)]
    return {p.as_posix() for p in paths if not p.is_absolute() and ".." not in p.parts}


def _replace_all(folder: Path, texts: dict[str, bytes]) -> set[str]:
    """Write the texts that differ, in their order; returns their paths.

    What is left over of a run that fails is taken away, and no earlier file is changed where one
    cannot be written.
    """
    changed: dict[str, Path] = {}
    try:
        for path, text in texts.items():
            old = _old_text(folder / path)
            if old == text:
                continue
            changed[path] = (folder / path).with_name(f"{os.path.basename(path)}.new")
            changed[path].write_bytes(text)
            if old is not None and _without_spec_lines(old) == _without_spec_lines(text):
                _copy_time(folder / path, changed[path])
        for path, new in changed.items():
            new.replace(folder / path)
    except BaseException:
        for new in changed.values():
            with contextlib.suppress(OSError):
                new.unlink()
        raise
    return set(changed)


def _old_text(path: Path) -> bytes | None:
    """What stands in a file; None where nothing can be read."""
    try:
        return path.read_bytes()
    except IsADirectoryError:
        raise  # no file can take its place
    except OSError:
        return None


def _copy_time(old: Path, new: Path) -> None:
    """Give a new file the time of change of an old one, whose code is the same: only lines of a
    spec in comments moved, and nothing need be compiled again."""
    stat = old.stat()
    os.utime(new, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def _without_spec_lines(content: bytes) -> str:
    text = _LINE_DIRECTIVE.sub("#line ", content.decode(errors="surrogateescape"))
    return _COMMENT.sub(lambda comment: _SPEC_LINE.sub(r"\1", comment.group()), text)


def _with_own_lines(text: str, path: str) -> str:
    """The text with every RESTORE_LINE naming the line that follows it."""
    if RESTORE_LINE not in text:
        return text
    lines = text.split("\n")
    for index, line in enumerate(lines):
        if line == RESTORE_LINE:
            lines[index] = f'#line {index + 2} "{path}"'
    return "\n".join(lines)


class SpecLine(Protocol):
    """A line of a spec."""

    @property
    def file(self) -> str: ...

    @property
    def line(self) -> int: ...


def line_of(place: SpecLine) -> str:
    """What says that the next line stands in a spec."""
    return f'#line {place.line} "{place.file}"'


def own_includes(headers: Iterable[tuple[str, SpecLine]]) -> list[str]:
    """The lines that include a library's own headers, each named on a line of a spec."""
    lines = [[line_of(line), f"#include <{header}>"] for header, line in headers]
    return [*itertools.chain(*lines), RESTORE_LINE] if lines else []


def banner(emitter: str, specs: Iterable[str]) -> str:
    """The first lines of every generated file: who wrote it, and from what, which is what to
    change."""
    return (
        f"// Generated by {emitter.removeprefix('torchext.')} from {' and '.join(specs)}.\n"
        "// Do not edit: change those. This file is free of conditions: use it under any licence.\n"
    )
