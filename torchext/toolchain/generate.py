# SPDX-License-Identifier: BSD-3-Clause
"""Runs the code generator for one library and reads what it wrote."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

from .op_library import OpLibrary


@dataclass(frozen=True)
class Manifest:
    """What the generator lists in manifest.json, as paths relative to the project."""

    sources: list[str]
    # what is compiled once for each instruction set of the CPU
    vector_sources: list[str]
    # what needs Python: the classes of backward nodes
    python_sources: list[str]
    include_dirs: list[str]
    # what stands beside the library: the table of operators
    python: list[str]
    # one dictionary a kernel: name, prototype, schema, location, key
    kernels: list[dict]
    # whether an operator has `cpu_fallback`, which warns
    falls_back: bool


def generate(library: OpLibrary) -> Manifest:
    """Write the generated code of `library`; errors in the specs end the build, already printed."""
    from torchext.codegen.__main__ import main

    out = library.manifest_dir
    arguments = ["--namespace", library.namespace, "--native-functions", library.native_functions]
    if library.derivatives:
        arguments += ["--derivatives", library.derivatives]
    if main([*arguments, "--out", out]) != 0:
        raise SystemExit(f"error: the operators of {library.name} were refused, see above")
    return read_manifest(out)


def read_manifest(out: str) -> Manifest:
    """Read the manifest of the generated folder `out`."""
    with open(os.path.join(out, "manifest.json"), encoding="utf-8") as file:
        content = json.load(file)

    def inside(paths: list[str]) -> list[str]:
        return [os.path.normpath(os.path.join(out, path)) for path in paths]

    return Manifest(
        sources=inside(content["sources"]),
        vector_sources=inside(content["vector_sources"]),
        python_sources=inside(content["python_sources"]),
        include_dirs=inside(content["include_dirs"]),
        python=inside(content["python"]),
        kernels=content["kernels"],
        falls_back=content["falls_back"],
    )
