# SPDX-License-Identifier: BSD-3-Clause
"""Builds the mirror by the public path: codegen, compiler, linker.

Each of the three may refuse single entries. What the codegen rejects is left out by it; what does
not compile is left out of the YAML files, and the rest is built again; for what does not link, the
missing symbols are bound to a function that raises, so that the rest can be loaded and compared.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from torchext.toolchain import compiled_once

from . import blame, compiler, kernels, spec
from .spec import Operator

ROOT = Path(__file__).absolute().parents[2]
_MOST_ROUNDS = 8

_MISSING = """\
#include <stdexcept>

// Every symbol that neither torch nor torchext exports is bound to this function.
extern "C" __attribute__((visibility("hidden"))) void torchext_upstream_missing() {
  throw std::runtime_error("a helper of this formula is not exported");
}
"""


@dataclass
class Built:
    """What came of the operators of the mirror."""

    library: Path | None = None
    rejected: dict[str, str] = field(default_factory=dict)  # by the codegen, and why
    broken: dict[str, str] = field(default_factory=dict)  # what the compiler said
    unlinked: dict[str, list[str]] = field(default_factory=dict)  # the symbols that are missing
    # errors that could not be told to be of one entry
    orphans: list[str] = field(default_factory=list)
    codegen_seconds: float = 0.0


def build(operators: Iterable[Operator], folder: Path, flags: list[str]) -> Built:
    """Build what can be built of the operators into `folder`; only what changed is compiled."""
    operators, folder = list(operators), folder.resolve()
    built = Built()
    remembered = folder / "broken.json"
    built.broken = _remembered(remembered, operators)
    for _ in range(_MOST_ROUNDS):
        kept = [op for op in operators if not {op.name, op.entry} & built.broken.keys()]
        manifest = _generate(kept, folder, built)
        sources = _sources(manifest, kept, folder)
        result = compiler.compile_all(sources, folder, flags, _helpers(sources, folder))
        built.orphans = []
        if not result.output:
            _link(result, manifest, folder, built)
            break
        files = {path.name: path for path in [*sources, *_headers(manifest, folder)]}
        files["derivatives.yaml"] = folder / "derivatives.yaml"
        found, built.orphans = blame.of_compiler(result.output, files)
        (folder / "errors.log").write_text(result.output, encoding="utf-8")
        if not found:
            break
        built.broken |= found
        remembered.write_text(json.dumps(built.broken, indent=1), encoding="utf-8")
    for operator in operators:
        for refused in (built.broken, built.rejected):
            if operator.entry in refused:
                refused.setdefault(operator.name, f"{operator.entry}: {refused[operator.entry]}")
    return built


def _remembered(path: Path, operators: list[Operator]) -> dict[str, str]:
    """What did not compile in an earlier run with the same code generator and headers."""
    names = {operator.name for operator in operators}
    newest = max(
        p.stat().st_mtime
        for part in ("codegen", "csrc/include")
        for p in (ROOT / part).rglob("*")
        if p.suffix in (".py", ".h")
    )
    if not path.exists() or path.stat().st_mtime < newest:
        return {}
    found = json.loads(path.read_text(encoding="utf-8"))
    return {name: why for name, why in found.items() if name in names}


def _generate(operators: list[Operator], folder: Path, built: Built) -> dict:
    """Run the codegen as a user does; returns its manifest."""
    native, derivatives = spec.write(operators, folder)
    out = folder / "generated"
    command = [sys.executable, "-m", "codegen", "--namespace", spec.NAMESPACE]
    command += ["--native-functions", str(native), "--derivatives", str(derivatives)]
    begin = time.monotonic()
    done = subprocess.run(
        [*command, "--out", str(out), "--keep-going"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    built.codegen_seconds = round(time.monotonic() - begin, 2)
    if done.returncode:
        raise SystemExit(f"error: the codegen failed\n{done.stdout}{done.stderr}")
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    built.rejected = {item["op"]: item["reason"] for item in manifest["rejected"]}
    return manifest


def _sources(manifest: dict, operators: list[Operator], folder: Path) -> list[Path]:
    """All sources of the library: the generated ones, those that all libraries have alike, the
    kernels and the raising function."""
    own = folder / "kernels"
    sources = kernels.write(spec.NAMESPACE, operators, manifest["kernels"], own)
    missing = own / "missing.cpp"
    if not missing.exists():
        missing.write_text(_MISSING, encoding="utf-8")
    generated = compiler.parts(manifest, folder / "generated")
    return [*generated, Path(compiled_once.source("boxed")), *sources, missing]


def _headers(manifest: dict, folder: Path) -> list[Path]:
    """The headers that may hold errors: those of nodes, which have names that no source has."""
    paths = [folder / "generated" / path for path in manifest["headers"]]
    return [path for path in paths if path.parent.name == "nodes"]


def _helpers(sources: list[Path], folder: Path) -> dict[Path, Path]:
    """Sources whose formulas call helpers that torchext lacks, and a header that declares them.

    So that they compile, and only the linker refuses them.
    """
    names = compiler.missing_helpers(ROOT / "csrc" / "include" / "torchext")
    header = folder / "upstream_helpers.h"
    text = compiler.helper_declarations(names, spec.NAMESPACE)
    if not header.exists() or header.read_text(encoding="utf-8") != text:
        header.write_text(text, encoding="utf-8")
    return {path: header for path in sources if compiler.calls_any(path, names)}


def _link(result: compiler.Compiled, manifest: dict, folder: Path, built: Built) -> None:
    """Link the library, and note which operators only do because their symbols are replaced."""
    library = folder / f"{spec.NAMESPACE}_library.so"
    output = compiler.link(result.objects, library, ())
    symbols = blame.undefined_symbols(output)
    if output and not symbols:
        built.orphans.append(output.strip().splitlines()[-1])
        return
    if symbols:
        sources = compiler.parts(manifest, folder / "generated")
        found, lost = blame.of_symbols(result.objects, symbols, sources)
        built.unlinked = {name: sorted(found[name]) for name in sorted(found)}
        built.orphans += [f"undefined symbol {symbol} of no operator" for symbol in sorted(lost)]
        bound = [f"-Wl,--defsym={symbol}=torchext_upstream_missing" for symbol in symbols]
        output = compiler.link(result.objects, library, bound)
        if output:
            built.orphans.append(output.strip().splitlines()[-1])
            return
    compiler.write_record(library, spec.NAMESPACE)
    built.library = library
