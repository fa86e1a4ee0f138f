# SPDX-License-Identifier: BSD-3-Clause
"""Which entry an error of the compiler or the linker belongs to.

Generated code stands under comments that name an operator's schema, and `#line` directives point
into derivatives.yaml; undefined symbols are found in the function that refers to them, whose
mangled name holds the operator's.
"""

from __future__ import annotations

import re
import subprocess
from bisect import bisect_right
from collections.abc import Iterable
from pathlib import Path

_COMMENT = re.compile(r"^\s*// \S+\.ya?ml:\d+: (?:\w+: )?([\w.]+)\(")
_ENTRY = re.compile(r"^- name:\s*([^\s(]+)\(")
_DEFINED = re.compile(
    r"^(?:struct .*?(\w+) (?:final )?: |[\w:].*?\b(\w+)::\w+\(|[\w:].*?\b(\w+)\()"
)
_PLACE = re.compile(r"^(?:In file included from |\s+from )?(\S+?\.\w+):(\d+)[:,]", re.MULTILINE)
_ERROR = re.compile(r"\b(?:fatal )?error: (.*)")
_UNDEFINED = re.compile(r"undefined (?:reference to|symbol:?) [`']?([\w.$@]+)")
_SECTION = re.compile(r"^RELOCATION RECORDS FOR \[\.(?:text|data|rodata)[^\]]*?\.(_Z\w+)[^\]]*\]:")


def _marks(path: Path) -> tuple[list[int], list[str]]:
    """The lines on which the part of another operator begins, and the operators."""
    pattern = _ENTRY if path.suffix == ".yaml" else _COMMENT
    lines = path.read_text(encoding="utf-8").splitlines()
    found = [(n, m[1]) for n, line in enumerate(lines, 1) if (m := pattern.match(line))]
    return [n for n, _ in found], [name for _, name in found]


def of_compiler(output: str, files: dict[str, Path]) -> tuple[dict[str, str], list[str]]:
    """Operator to its first error, and the errors that belong to none.

    `files` are the generated files and derivatives.yaml by the ends of their paths.
    """
    operators: dict[str, str] = {}
    orphans = []
    marks: dict[str, tuple[list[int], list[str]]] = {}

    def operator_at(match: re.Match) -> str | None:
        file = Path(match[1]).name
        if file not in files:
            return None
        numbers, names = marks.setdefault(file, marks.get(file) or _marks(files[file]))
        index = bisect_right(numbers, int(match[2])) - 1
        return names[index] if index >= 0 else None

    for block in _blocks(output):
        message = _ERROR.search(block)[1]
        name = next(filter(None, map(operator_at, _PLACE.finditer(block))), None)
        if name:
            operators.setdefault(name, message)
        else:
            orphans.append(message)
    return operators, orphans


def _blocks(output: str) -> Iterable[str]:
    """Each error with the lines that lead to it and the notes that follow."""
    block: list[str] = []
    lead: list[str] = []
    for line in output.splitlines():
        if _ERROR.search(line):
            if block:
                yield "\n".join(block)
            block, lead = [line, *lead], []
        elif "required from" in line or "In " in line:
            lead.append(line)
            block.append(line) if block else None
        elif block:
            block.append(line)
    if block:
        yield "\n".join(block)


def undefined_symbols(output: str) -> list[str]:
    """The symbols that the linker misses, mangled."""
    return sorted(set(_UNDEFINED.findall(output)))


def of_symbols(
    objects: Iterable[Path], symbols: Iterable[str], sources: Iterable[Path]
) -> tuple[dict[str, set[str]], set[str]]:
    """Operator to the undefined symbols that its functions use, and those used by none."""
    symbols = set(symbols)
    owners = _identifiers(sources)
    found: dict[str, set[str]] = {}
    placed: set[str] = set()
    for path in objects:
        for function, symbol in _references(path, symbols):
            name = _owner(function, owners)
            if name:
                found.setdefault(name, set()).add(symbol)
                placed.add(symbol)
    return found, symbols - placed


def _references(path: Path, symbols: set[str]) -> Iterable[tuple[str, str]]:
    """Pairs of a function of the object and a symbol that it refers to."""
    command = ["objdump", "-r", "-w", str(path)]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    function = ""
    for line in listing.splitlines():
        section = _SECTION.match(line)
        if section:
            function = section[1]
        elif line.startswith("RELOCATION"):
            function = ""
        elif function:
            target = line.split(" ")[-1]
            symbol = re.split(r"[-+]0x", target)[0]
            if symbol in symbols:
                yield function, symbol


def _identifiers(sources: Iterable[Path]) -> dict[str, str]:
    """Classes and functions that generated sources define to the operators that they serve."""
    owners: dict[str, str] = {}
    for path in sources:
        name = None
        for line in path.read_text(encoding="utf-8").splitlines():
            comment, defined = _COMMENT.match(line), _DEFINED.match(line)
            if comment:
                name = comment[1]
            elif line.startswith("}"):
                continue
            elif name and defined:
                owners.setdefault(defined[1] or defined[2] or defined[3], name)
    return owners


def _owner(function: str, owners: dict[str, str]) -> str | None:
    """The operator whose class or function stands in a mangled name: each as length and text."""
    for match in re.finditer(r"(\d+)(?=[A-Za-z_])", function):
        for digits in (match[1], *(match[1][i:] for i in range(1, len(match[1])))):
            name = function[match.end() : match.end() + int(digits)]
            if name in owners:
                return owners[name]
    return None
