# SPDX-License-Identifier: BSD-3-Clause
"""Links when objects or the command changed, and puts files in place in one step.

Every file is written beside its target and renamed over it: a build that is killed leaves the old
file or the new one, and a process that has the old library open keeps it.
"""

from __future__ import annotations

import filecmp
import json
import os
import shutil
import subprocess


def link(command: list[str], objects: list[str], library: str) -> bool:
    """Run `command` + `-o library`, unless it made this library of these very objects already."""
    stamp = library + ".link.json"
    inputs = {"command": command, "objects": {path: _state(path) for path in objects}}
    if os.path.exists(library) and _read(stamp) == inputs:
        return False
    os.makedirs(os.path.dirname(library), exist_ok=True)
    print(f"linking {os.path.relpath(library)}", flush=True)
    # the descriptors, not sys.stdout: the build log captures those
    subprocess.run([*command, "-o", library + ".new"], stdout=1, stderr=2, check=True)
    os.replace(library + ".new", library)
    write_text(stamp, json.dumps(inputs))
    return True


def install(library: str, record: str, target: str, target_record: str) -> None:
    """Copy a library and write its record beside it; nothing is touched where both are the same."""
    same = os.path.exists(target) and filecmp.cmp(library, target, shallow=False)
    if same and _text(target_record) == record:
        return
    os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
    # Without a record a library does not load: a build killed here leaves no wrong pair.
    if os.path.exists(target_record):
        os.remove(target_record)
    if not same:
        shutil.copyfile(library, target + ".new")
        shutil.copymode(library, target + ".new")
        os.replace(target + ".new", target)
    write_text(target_record, record)


def write_text(path: str, text: str) -> None:
    """Write a file whole or not at all."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".new", path)


def _state(path: str) -> list[int]:
    status = os.stat(path)
    return [status.st_mtime_ns, status.st_size]


def _text(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return None


def _read(path: str):
    try:
        return json.loads(_text(path) or "null")
    except ValueError:
        return None
