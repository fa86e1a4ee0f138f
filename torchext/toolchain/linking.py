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

from .record import python_part_path


def link(
    command: list[str],
    objects: list[str],
    library: str,
    cpp_runtime: str,
    folder: str | None = None,
) -> bool:
    """Run `command` + `-o library`, unless it made this library of these very files already.

    RuntimeError where the library has a C++ runtime of its own in place of `cpp_runtime`.
    """
    stamp = library + ".link.json"
    files = filter(os.path.isfile, [*objects, *command, *_libraries(command)])
    inputs = {"command": command, "files": {path: _state(path) for path in files}}
    if os.path.exists(library) and _read(stamp) == inputs:
        return False
    os.makedirs(os.path.dirname(library), exist_ok=True)
    print(f"linking {os.path.relpath(library)}", flush=True)
    remove(stamp)  # a library that this build made has no other's stamp, if the build is killed
    made = os.path.abspath(library) + ".new"
    # the descriptors, not sys.stdout: the build log captures those
    subprocess.run([*command, "-o", made], cwd=folder, stdout=1, stderr=2, check=True)
    _check_cpp_runtime(library, cpp_runtime, command[0])
    os.replace(library + ".new", library)
    write_text(stamp, json.dumps(inputs))
    return True


def _check_cpp_runtime(library: str, cpp_runtime: str, compiler: str) -> None:
    """Look for the name of `cpp_runtime`, which a library that needs it has as a string."""
    with open(library + ".new", "rb") as file:
        if f"{cpp_runtime}\0".encode() in file.read():
            return
    remove(library + ".new")
    raise RuntimeError(
        f"{os.path.basename(library)} was linked without {cpp_runtime}, the C++ runtime of torch. "
        "One of its own in the same process ends in crashes, of streams and locales for instance. "
        f"{compiler} links a static one, by itself or for -static-libstdc++ in LDFLAGS or "
        "extra_link_args, or libc++ for -stdlib=libc++: take that away, or set CXX to another "
        "compiler"
    )


def _libraries(command: list[str]) -> list[str]:
    """Return where the linker may find what `-l` names, torch's libraries and a user's archives."""
    folders = [word[2:] for word in command if word.startswith("-L")]
    names = [word[2:] for word in command if word.startswith("-l")]
    return [
        os.path.join(folder, f"lib{name}{suffix}")
        for folder in folders
        for name in names
        for suffix in (".so", ".a")
    ]


def link_python_part(
    command: list[str], objects: list[str], library: str, cpp_runtime: str, origin: str
) -> str:
    """Link what needs Python beside `library`, which it finds by its own folder when loaded.

    A linker notes a library by the path that it was given, if the library has no name of its own.
    So it is given `$ORIGIN/_C.so`: the loader puts the folder in, and the whole path is the key by
    which it looks for what it has loaded already. The bare name would not do: in the second package
    that has a `_C.so`, it would mean the one of the first.
    """
    part = python_part_path(library)
    folder = os.path.dirname(part)
    name = os.path.basename(library)
    given = os.path.join(folder, origin, name)
    os.makedirs(os.path.dirname(given), exist_ok=True)
    if not os.path.islink(given):
        os.symlink(os.path.join(os.pardir, name), given)
    link([*command, f"{origin}/{name}"], objects, part, cpp_runtime, folder)
    return part


def install(libraries: dict[str, str], record: str, target_record: str) -> None:
    """Copy libraries and write their record; nothing is touched where all are the same."""
    changed = {
        library: target
        for library, target in libraries.items()
        if not (os.path.exists(target) and filecmp.cmp(library, target, shallow=False))
    }
    if not changed and _text(target_record) == record:
        return
    os.makedirs(os.path.dirname(target_record) or ".", exist_ok=True)
    # Without a record a library does not load: a build killed here leaves no wrong pair.
    remove(target_record)
    for library, target in changed.items():
        copy(library, target)
    write_text(target_record, record)


def copy(path: str, target: str) -> None:
    """Copy a file whole or not at all."""
    shutil.copyfile(path, target + ".new")
    shutil.copymode(path, target + ".new")
    os.replace(target + ".new", target)


def copy_changed(path: str, target: str) -> None:
    """Copy a file unless it is there, whole or not at all."""
    if not (os.path.exists(target) and filecmp.cmp(path, target, shallow=False)):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        copy(path, target)


def remove(path: str) -> None:
    """Delete a file, if it is there."""
    if os.path.exists(path):
        os.remove(path)


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
