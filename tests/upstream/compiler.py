# SPDX-License-Identifier: BSD-3-Clause
"""Compiles and links with the flags of torchext's toolchain, and goes on where files fail."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.utils import cpp_extension

import torchext
from torchext.compat import cxx_standard
from torchext.toolchain import compilation, environment, linking, platforms, record

_NINJA = """\
cxx = {cxx}
flags = {flags}

rule precompile
  command = $cxx -MMD -MF $out.d $flags -x c++-header $in -o $out
  depfile = $out.d
  deps = gcc
  description = $in

rule compile
  command = $cxx -MMD -MF $out.d $flags -include {header} $extra -c $in -o $out
  depfile = $out.d
  deps = gcc
  description = $in

build {header}.gch: precompile {header}
"""
# Nearly all of the time that a generated file takes is that of these headers.
_PRECOMPILED = """\
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torchext/derivative_helpers.h>
#include <torchext/generated/autograd_not_implemented.h>
#include <torchext/generated/compiled_autograd.h>
#include <torchext/generated/library.h>
#include <torchext/generated/operator_handle.h>
"""
_PROGRESS = re.compile(r"\[\d+/\d+\] \S*?([^/\s]+)$", re.MULTILINE)
# declarations stand in column 0, or behind a result type that fills a line
_DECLARED = re.compile(r"^(?=[A-Za-z])[^(;{}=]*?\b(\w+)\(", re.MULTILINE)
_CALLED = re.compile(r"\b(\w+)\s*\(")
_COMMENTS = re.compile(r"//[^\n]*|#[^\n]*")


@dataclass(frozen=True)
class Compiled:
    """What a run of the compiler left."""

    objects: list[Path]
    output: str  # of the files that failed; empty where all are compiled


def compile_all(
    sources: list[Path], folder: Path, flags: list[str], forced: Mapping[Path, Path]
) -> Compiled:
    """Compile what changed; `forced` gives sources a header that is included before all others."""
    environment.prepare(platforms.current())
    header = folder / "precompiled.h"
    if not header.exists() or header.read_text(encoding="utf-8") != _PRECOMPILED:
        header.write_text(_PRECOMPILED, encoding="utf-8")
    options = shlex.join(_flags(folder, flags))
    lines = [_NINJA.format(cxx=os.environ["CXX"], flags=options, header=_escaped(header))]
    objects = []
    for source in sources:
        path = folder / "objects" / f"{source.parent.name}_{source.stem}.o"
        objects.append(path)
        needs = f"{_escaped(source)} | {_escaped(header)}.gch"
        lines.append(f"build {_escaped(path)}: compile {needs}\n")
        if source in forced:
            lines[-1] += f"  extra = -include {forced[source]}\n"
    (folder / "build.ninja").write_text("".join(lines), encoding="utf-8")
    command = ["ninja", "-C", str(folder), "-k", "0", "-j", os.environ["MAX_JOBS"]]
    return Compiled(objects, _run_ninja(command))


def parts(manifest: dict, generated: Path) -> list[Path]:
    """What is compiled, each part of a unit for itself: an error leaves out the part alone."""
    sources = [path for path in manifest["sources"] if not path.startswith("units/")]
    return [generated / path for path in (*manifest["parts"], *sources)]


def _run_ninja(command: list[str]) -> str:
    """Run ninja, show which files it compiles, and return what it says where any fails."""
    environ = {**os.environ, "NINJA_STATUS": "[%f/%t] "}
    lines = []
    with subprocess.Popen(
        command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        for line in process.stdout:
            lines.append(line)
            if progress := _PROGRESS.match(line):
                print(progress[0], file=sys.stderr, flush=True)
    return "".join(lines) if process.returncode else ""


def _flags(folder: Path, flags: list[str]) -> list[str]:
    generated = folder / "generated"
    manifest = json.loads((generated / "manifest.json").read_text(encoding="utf-8"))
    own = [generated / path for path in manifest["include_dirs"]]
    return [
        f"-std={cxx_standard()}", "-fPIC",
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
        *compilation.flags(platforms.current(), os.environ["CXX"]),
        # the function that refers to a missing symbol is known by its section
        "-ffunction-sections",
        *flags,
        *(f"-I{path.absolute()}" for path in own),
        *(part for path in cpp_extension.include_paths() for part in ("-isystem", path)),
    ]  # fmt: skip


def _escaped(path: Path) -> str:
    return re.sub(r"([ :$])", r"$\1", str(path.absolute()))


def link(objects: Iterable[Path], library: Path, more: Iterable[str]) -> str:
    """Link as torchext does; returns what the linker says where it fails, else ''."""
    platform = platforms.current()
    cxx = os.environ["CXX"]
    command = [cxx, *compilation.link_flags(platform, cxx), "-Wl,--no-demangle"]
    command += sorted(map(str, objects))
    command += [f"-L{path}" for path in cpp_extension.library_paths("cpu")]
    command += [f"-l{name}" for name in platform.torch_libraries]
    new = str(library) + ".new"
    done = subprocess.run([*command, *more, "-o", new], capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr
    os.replace(new, library)
    return ""


def write_record(library: Path, namespace: str) -> None:
    """Write what `torchext.load_library` reads before it opens a library."""
    text = record.of_installed_torch(namespace, torchext.__version__, False).to_json()
    linking.write_text(record.record_path(str(library)), text)


def missing_helpers(runtime: Path) -> frozenset[str]:
    """The functions of upstream's FunctionsManual.h that torchext's headers do not declare."""
    ours: set[str] = set()
    for path in sorted(runtime.rglob("*.h")):
        ours |= _declared(path)
    return frozenset(_declared(_manual()) - ours)


def _manual() -> Path:
    folder = Path(torch.__file__).parent / "include" / "torch" / "csrc" / "autograd"
    return folder / "FunctionsManual.h"


def _declared(header: Path) -> set[str]:
    if not header.exists():
        return set()
    return set(_DECLARED.findall(_COMMENTS.sub("", header.read_text(encoding="utf-8"))))


def helper_declarations(names: Iterable[str], namespace: str) -> str:
    """A header that makes upstream's declarations visible to formulas."""
    usings = [f"using torch::autograd::generated::details::{name};" for name in sorted(names)]
    return "\n".join(
        [
            "#pragma once",
            "#include <torch/csrc/autograd/FunctionsManual.h>",
            "namespace torchext_upstream_helpers {",
            *usings,
            "} // namespace torchext_upstream_helpers",
            f"namespace torchext::generated::{namespace} {{",
            "using namespace torchext_upstream_helpers;",
            f"}} // namespace torchext::generated::{namespace}",
            "",
        ]
    )


def calls_any(source: Path, names: frozenset[str]) -> bool:
    """Whether a source calls a function of one of these names."""
    return not names.isdisjoint(_CALLED.findall(source.read_text(encoding="utf-8")))
