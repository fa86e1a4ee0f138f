# SPDX-License-Identifier: BSD-3-Clause
"""Writes docs/porting.md from the files of examples/torchlpc and from what their measurement found:
`python docs/make_porting.py`."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "torchlpc"
PAGE = ROOT / "docs" / "porting.md"
MEASURED = ROOT / "benchmarks" / "results" / "torchlpc.json"


def page() -> str:
    """The whole page."""
    measured = json.loads(MEASURED.read_text(encoding="utf-8"))
    template = (ROOT / "docs" / "porting.template.md").read_text(encoding="utf-8")
    pieces = {
        "native_functions": _file("native_functions.yaml"),
        "derivatives": _file("derivatives.yaml"),
        "formulas": _file("torchlpc_formulas.h"),
        "kernels": _file("original_cpu.cpp"),
        "registration": _file("skip_registration.h"),
        "setup": _file("setup.py"),
        "python_layer": _constants("port.py", ("LOADED", "LPC", "RECURRENCE")),
        "known_failures": _file("known_failures.txt"),
        "measured": _costs(measured),
        "works": _works(measured),
        "torch": measured["torch"],
        "machine": measured["machine"],
    }
    for name, text in pieces.items():
        if f"{{{name}}}" not in template:
            raise ValueError(f"porting.template.md has no {{{name}}}")
        template = template.replace(f"{{{name}}}", text)
    return template


def _file(name: str) -> str:
    """A file of the example without its licence."""
    lines = (EXAMPLE / name).read_text(encoding="utf-8").splitlines()
    while lines and (lines[0].lstrip("#/ ").startswith("SPDX") or lines[0] in ("", "//")):
        lines = lines[1:]
    return "\n".join(lines)


def _constants(name: str, wanted: Iterable[str]) -> str:
    """The texts of a Python file that are assigned to these names."""
    body = ast.parse((EXAMPLE / name).read_text(encoding="utf-8")).body
    texts = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
    }
    return "\n\n".join(texts[name].strip("\n") for name in wanted)


def _costs(measured: dict) -> str:
    lines, seconds = measured["lines"], measured["build_seconds"]
    spec = ("native_functions.yaml", "derivatives.yaml", "torchlpc_formulas.h")
    glue = ("setup.py", "original_cpu.cpp", "original_cuda.cu", "skip_registration.h")
    python = ("torchlpc/core.py", "torchlpc/recurrence.py", "torchlpc/__init__.py")

    def count(which: str, files: Iterable[str]) -> int:
        return sum(lines[which].get(file, 0) for file in files)

    rows = [("", "as it is", "ported")]
    for title, files in (
        ("lines of Python", python), ("lines of YAML and formulas", spec),
        ("lines of setup.py and around the kernels", glue),
    ):  # fmt: skip
        rows.append((title, count("original", files), count("ported", files)))
    for title, kind in (("seconds to build", "wall"), ("seconds of processors to build", "cpu")):
        first, again = seconds["ported"][kind], seconds["ported, headers compiled before"][kind]
        rows.append((title, f"{seconds['original'][kind]:.0f}", f"{first:.0f}, then {again:.0f}"))
    for situation, f in measured["calls"].items():
        low, high = f["ratio_quartiles"]
        ported = f"{f['ported_us']:.1f} ({f['ratio']:.2f}, {low:.2f} to {high:.2f})"
        rows.append((f"µs: {situation}", f"{f['original_us']:.1f}", ported))
    return _table(rows)


def _works(measured: dict) -> str:
    works = measured["works"]
    marks = {True: "✓", False: "✗"}
    rows = [("", "as it is", "ported")]
    for name in works["original"]:
        rows.append((name, marks[works["original"][name]], marks[works["ported"][name]]))
    return _table(rows)


def _table(rows: list[tuple]) -> str:
    first, *others = [f"| {' | '.join(map(str, row))} |" for row in rows]
    return "\n".join([first, "| --- " * len(rows[0]) + "|", *others])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}", file=sys.stderr)
