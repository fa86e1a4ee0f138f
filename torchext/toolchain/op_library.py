# SPDX-License-Identifier: BSD-3-Clause
"""OpLibrary: what a setup.py says about one operator library. Imports neither torch nor codegen."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable

from setuptools import Extension

# The options of setuptools.Extension that make sense for a library that is no Python module
OPTIONS = frozenset(
    {"include_dirs", "define_macros", "extra_compile_args", "extra_link_args", "libraries",
     "library_dirs"}
)  # fmt: skip
HEADERS = (".h", ".hpp", ".cuh")


class OpLibrary(Extension):
    """One shared object of operators: two YAML files and kernels; the build adds generated code.

    `name` is dotted like a module's ("my_ops._C" becomes my_ops/_C.so). `sources` are files or
    globs (`**` allowed) relative to the setup.py; `.cu` files are left out where CUDA is not built.
    `cpu_capabilities` are files or globs of C++ that is compiled once for each instruction set that
    is built for, see torchext/cpu_capabilities.h; what they name is none of the `sources`.
    `extra_compile_args` is {"cxx": [...], "nvcc": [...]}, or one list for both.
    """

    def __init__(
        self,
        name: str,
        *,
        namespace: str,
        native_functions: str,
        derivatives: str | None = None,
        sources: Iterable[str] = (),
        cpu_capabilities: Iterable[str] = (),
        **options,
    ):
        unknown = sorted(options.keys() - OPTIONS)
        if unknown:
            known = sorted(OPTIONS)
            raise TypeError(f"OpLibrary {name!r}: unknown options {unknown}; known: {known}")
        self.namespace = namespace
        self.native_functions = native_functions
        self.derivatives = derivatives
        files, self.unmatched = expand(sources)
        self.vector_sources, unmatched = expand(cpu_capabilities)
        self.unmatched += unmatched
        files = [path for path in files if path not in self.vector_sources]
        options = {key: _as_own(value) for key, value in options.items()}
        super().__init__(name, files, language="c++", **options)
        # For the source distribution only: what to compile again is ninja's to know.
        self.depends = [path for path in (native_functions, derivatives) if path]
        self.depends += self.vector_sources
        self.depends += headers_beside(
            [*files, *self.vector_sources, *(f"{d}/" for d in self.include_dirs)]
        )

    @property
    def manifest_dir(self) -> str:
        """Where the generated code of this library goes, relative to the project."""
        return os.path.join("build", "generated", self.namespace)


def expand(patterns: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the files that globs name, sorted, and the patterns that name none."""
    files: set[str] = set()
    unmatched = []
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        found = [os.path.normpath(path) for path in glob.glob(os.fspath(pattern), recursive=True)]
        # a wide glob must not pick up what an earlier build generated
        found = [path for path in found if not path.startswith("build" + os.sep)]
        files.update(found)
        if not found:
            unmatched.append(os.fspath(pattern))
    return sorted(files), unmatched


def headers_beside(paths: Iterable[str]) -> list[str]:
    """Return the headers in the folders of `paths` that lie inside the project."""
    folders = {os.path.normpath(os.path.dirname(path) or ".") for path in paths}
    inside = [f for f in folders if not os.path.isabs(f) and not f.startswith("..")]
    return sorted(
        os.path.normpath(os.path.join(folder, name))
        for folder in inside
        if os.path.isdir(folder)
        for name in os.listdir(folder)
        if name.endswith(HEADERS)
    )


def _as_own(value):
    """Copy an option, so that the build changes nothing in the setup.py's own lists."""
    return dict(value) if isinstance(value, dict) else list(value)
