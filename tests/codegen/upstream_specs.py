# SPDX-License-Identifier: BSD-3-Clause
"""Entries of the packaged native_functions.yaml as text, and small specs made of them."""

from __future__ import annotations

import argparse
import re
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from upstream_output import unfolded
from upstream_torchgen import NATIVE_FUNCTIONS

from codegen.__main__ import EMITTERS, load_plan
from codegen.output import FileSet
from codegen.spec.keys import spec_keys
from codegen.spec.model import Operator

_KEYS = spec_keys(Operator)
# Keys whose every value is a case of its own; of the others it matters that they are there.
_VALUED = {
    "category_override", "device_check", "device_guard", "manual_cpp_binding",
    "manual_kernel_registration", "python_module", "structured", "tags",
    "use_const_ref_for_mutable_tensors", "variants",
}  # fmt: skip

Entry = dict[str, Any]
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


@cache
def entry_texts() -> tuple[str, ...]:
    """The entries as they stand in the file, comments between them included."""
    text = NATIVE_FUNCTIONS.read_text(encoding="utf-8")
    return tuple(re.split(r"^(?=- func:)", text, flags=re.MULTILINE)[1:])


@cache
def entry_values() -> tuple[Entry, ...]:
    """The same entries as values."""
    return tuple(yaml.load(NATIVE_FUNCTIONS.read_text(encoding="utf-8"), Loader=_Loader))


def dispatch_keys(entry: Entry) -> frozenset[str] | None:
    """The dispatch keys that the entry names; None where it has no `dispatch:`."""
    if "dispatch" not in entry:
        return None
    return frozenset(key.strip() for keys in entry["dispatch"] for key in keys.split(","))


def flags(entry: Entry) -> frozenset[str]:
    """The entry's keys that change what is generated."""
    return frozenset(name for name in entry if _KEYS[name].metadata["without_effect"] is None)


def cases(entry: Entry) -> set[object]:
    """What the entry is an example of."""
    found = {("dispatch keys", dispatch_keys(entry)), ("flags", flags(entry))}
    found |= {(name, str(entry[name]) if name in _VALUED else "") for name in entry}
    return found


def covering_shard(size: int) -> list[int]:
    """Indices of as few entries as it takes to have every case, filled up to `size` evenly."""
    found = {index: cases(entry) for index, entry in enumerate(entry_values())}
    missing = set().union(*found.values())
    chosen: list[int] = []
    while missing:
        best = max(found, key=lambda index: len(found[index] & missing))
        chosen.append(best)
        missing -= found.pop(best)
    rest = sorted(found)
    wanted = max(0, size - len(chosen))
    chosen += rest[:: max(1, len(rest) // wanted)][:wanted] if wanted else []
    return sorted({*chosen, *_other_forms(chosen)})


def _other_forms(chosen: list[int]) -> set[int]:
    """The entries without which structured ones are no whole."""
    entries = entry_values()

    def out_form(entry: Entry) -> str | None:
        own = entry["func"].partition("(")[0]
        return own if entry.get("structured") else entry.get("structured_delegate")

    wanted = {out_form(entries[index]) for index in chosen} - {None}
    return {index for index, entry in enumerate(entries) if out_form(entry) in wanted}


def generated_text(
    folder: Path, entries: Iterable[Entry], formulas: str | None = None
) -> dict[str, str]:
    """The code that is generated for these entries, without what says where they stand."""
    derivatives = folder / "formulas.yaml" if formulas else None
    if derivatives:
        derivatives.write_text(formulas, encoding="utf-8")
    spec = folder / "spec.yaml"
    text = yaml.dump(list(entries), Dumper=_Dumper, sort_keys=False, width=100_000)
    spec.write_text(text, encoding="utf-8")
    options = argparse.Namespace(
        namespace="aten2", native_functions=spec, derivatives=derivatives, keep_going=False
    )
    plan, _ = load_plan(options)
    files = FileSet()
    for emitter in EMITTERS:
        files.add(emitter.emit(plan))
    position = re.compile(r"""(^\s*// |"location": ")\S+:\d+:? ?""", re.MULTILINE)
    return {path: position.sub(r"\1", unfolded(file.text)) for path, file in files.files.items()}


def check_syntax(folder: Path, sources: list[str], includes: list[str], *flags: str) -> str:
    """Compile sources as one, without writing anything; returns what the compiler says."""
    from torch.utils.cpp_extension import include_paths

    from torchext.compat import cxx_standard
    from torchext.toolchain import environment, platforms

    compiler = environment.find_compiler(platforms.current())
    unit = folder / "everything.cpp"
    lines = [f'#include "{source}"\n' for source in sources]
    unit.write_text("".join(lines), encoding="utf-8")
    paths = include_paths()
    command = [
        compiler, f"-std={cxx_standard()}", "-fsyntax-only", "-Wall", "-Werror",
        *flags, f"-I{folder}",
        *(f"-I{folder / path}" for path in includes), *(f"-isystem{path}" for path in paths),
        str(unit),
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr
