# SPDX-License-Identifier: BSD-3-Clause
"""build_ext for operator libraries: generate, compile with ninja, link, copy with the record.

Derives from torch's BuildExtension, which knows compilers, nvcc and ninja. An OpLibrary's part that
depends on torch and on CUDA is filled into a copy for the time of the build, so that the setup.py's
own object still lists all sources, `.cu` included, when a source distribution asks.
"""

from __future__ import annotations

import copy
import itertools
import logging
import os
import shlex
import subprocess
import sys

import torch
from setuptools import Distribution
from setuptools.errors import BaseError, CCompilerError

# At import it warns of a CUDA_HOME that it guesses and that we set anew below.
logging.getLogger("torch.utils.cpp_extension").setLevel(logging.ERROR)
from torch.utils import cpp_extension  # noqa: E402

import torchext  # noqa: E402

from . import (  # noqa: E402
    compilation,
    compiled_once,
    cuda,
    cuda_code,
    cuda_on_host,
    environment,
    linking,
    platforms,
    precompiled,
    record,
)
from .build_log import BuildLog  # noqa: E402
from .diagnosis import explain  # noqa: E402
from .generate import generate  # noqa: E402
from .one_build import one_build  # noqa: E402
from .op_library import OpLibrary  # noqa: E402

_INCLUDES_PYTHON = "-DTORCH_API_INCLUDE_EXTENSION_H"
# What torch's command and the linker raise for a failure that is not a bug of ours
BUILD_FAILURES = (BaseError, CCompilerError, OSError, RuntimeError, ValueError,
                  subprocess.CalledProcessError)  # fmt: skip

# Where the parts that need Python are, beside the library, which does not.
_FOR_PYTHON = {"python": record.python_part_path, "runtime": record.runtime_path}


def _has_library(extensions) -> bool:
    return any(isinstance(ext, OpLibrary) for ext in extensions or ())


class BuildExtension(cpp_extension.BuildExtension):
    """Builds every OpLibrary of a setup.py; other extensions are built as torch builds them."""

    def __init__(self, distribution: Distribution, **options) -> None:
        if _has_library(distribution.ext_modules):
            environment.put_ninja_on_path()  # before torch looks whether there is one
        super().__init__(distribution, **options)

    def finalize_options(self) -> None:
        self._build_temp_was_chosen = self.build_temp is not None
        super().finalize_options()

    def run(self) -> None:
        if not _has_library(self.extensions):
            super().run()
            return
        self.platform = platforms.current()
        environment.prepare(self.platform)
        self.capabilities = platforms.cpu_capabilities()
        self._decide_cuda()
        self.is_in_place = bool(self.inplace or self.editable_mode)  # the first is reset below
        self.parallel = None  # ninja compiles side by side; the log is one extension's at a time
        objects = self.build_temp
        if not self._build_temp_was_chosen:
            # One folder a torch and flavour, always in the project: `pip install -e` would
            # use a temporary one and compile everything again.
            objects = os.path.join("build", "temp-torch-")
            flavour = "-cuda" if self.cuda.home else ""
            self.build_temp = f"{objects}{torch.__version__}{flavour}"
        with one_build(os.path.join("build", "lock"), objects):
            super().run()

    def _decide_cuda(self) -> None:
        self.cuda = cuda.decide(torch.version.cuda)
        cuda.set_environment(self.cuda, torch.cuda.is_available())
        # torch looks for the toolkit when cpp_extension is imported, and takes a wrapper script of
        # nvcc for the toolkit itself
        cpp_extension.CUDA_HOME = self.cuda.home or cpp_extension.CUDA_HOME
        home, reason = self.cuda.home, self.cuda.reason
        on = f"with CUDA kernels ({home})" if home else f"without CUDA kernels ({reason})"
        print(f"building for torch {torch.__version__} {on}", flush=True)
        if os.environ.get("TORCHEXT_CPU_CAPABILITIES", "").strip():
            print(f"with CPU vectors for {', '.join(self.capabilities)}", flush=True)

    def build_extensions(self) -> None:
        described = self.extensions
        self.extensions = [
            self._prepare(ext) if isinstance(ext, OpLibrary) else ext for ext in described
        ]
        try:
            super().build_extensions()
        except RuntimeError as error:  # such as a compiler that torch refuses
            hint = "\nTORCHEXT_CUDA=0 builds without CUDA kernels." if self.cuda.home else ""
            raise SystemExit(f"error: {error}{hint}") from None
        finally:
            self.extensions = described

    def _prepare(self, library: OpLibrary) -> OpLibrary:
        """Return a copy of `library` with what this build adds: generated code, torch, CUDA."""
        if library.unmatched:
            raise SystemExit(f"error: {library.name}: no file is named {library.unmatched}")
        prepared = copy.copy(library)
        prepared.described = library
        prepared.manifest = generate(library)
        prepared.extra_compile_args = self._compile_flags(library)
        self._take_from_cache(prepared)
        prepared.sources = self._sources(prepared)
        device = "cuda" if self.cuda.home else "cpu"
        prepared.library_dirs = [*library.library_dirs, *cpp_extension.library_paths(device)]
        prepared.libraries = [*library.libraries, *self.platform.torch_libraries]
        # in the command, so that another version's headers compile everything, however old they are
        macros = [("TORCHEXT_BUILT_BY", torchext.__version__)]
        macros += platforms.without_cpu_capabilities(self.capabilities)
        if self.cuda.home:
            prepared.libraries += self.platform.cuda_libraries
            macros.append(("TORCHEXT_WITH_CUDA", None))
        prepared.define_macros = [*library.define_macros, *macros]
        return prepared

    def _take_from_cache(self, prepared: OpLibrary) -> None:
        """Add what libraries share: torch's headers and objects, as its flags compile them.

        An object that is not in the cache is compiled with the library.
        """
        macros = [f"-D{k}" if v is None else f"-D{k}={v}" for k, v in prepared.define_macros]
        cxx = prepared.extra_compile_args["cxx"]
        flags = [*self.compiler.compiler_so[1:], *macros, *cxx]
        # who builds in place will build again; who installs leaves nothing behind
        chosen = {"compiler": os.environ["CXX"], "flags": flags, "is_made": self.is_in_place}
        headers = precompiled.headers(**chosen).linked_into(self._folder(prepared))
        prepared.headers = headers
        manifest = prepared.manifest
        prepared.include_dirs = [*headers.include_dirs, *self._include_dirs(prepared)]
        prepared.generated = {"boxed": manifest.sources}
        if manifest.python_sources:
            prepared.generated["python"] = manifest.python_sources
        # Who installs may have no compiler; in place it is compiled when something asks for it.
        if manifest.falls_back or not self.is_in_place:
            prepared.generated["runtime"] = []
        prepared.objects = compiled_once.objects([*prepared.generated], headers, **chosen)
        for part, sources in prepared.generated.items():
            if part not in prepared.objects:
                prepared.generated[part] = [*sources, compiled_once.source(part)]

    def _sources(self, prepared: OpLibrary) -> list[str]:
        # first what its author wrote, whose mistakes then come after seconds
        sources = [*sorted(prepared.sources), *itertools.chain(*prepared.generated.values())]
        if not self.cuda.home:
            sources = [path for path in sources if not path.endswith(".cu")]
        # the object of a path that leads out of the project would be outside of the folder of them
        sources = [os.path.abspath(p) if p.startswith(os.pardir) else p for p in sources]
        by_object: dict[str, str] = {}
        for path in sources:
            other = by_object.setdefault(os.path.splitext(path)[0], path)
            if other != path:
                raise SystemExit(
                    f"error: {prepared.name}: {other} and {path} would be compiled to the same "
                    "object file; rename one or move it to another folder"
                )
        return sources

    def _include_dirs(self, prepared: OpLibrary) -> list[str]:
        own = [*prepared.manifest.include_dirs, *prepared.include_dirs]
        torchs = cpp_extension.include_paths("cuda" if self.cuda.home else "cpu")
        math = cuda.math_include_dirs(self.cuda.home) if self.cuda.home else []
        return [*(os.path.abspath(path) for path in own), *torchs, *math]

    def _compile_flags(self, library: OpLibrary) -> dict[str, list[str]]:
        given = library.extra_compile_args
        by_compiler = given if isinstance(given, dict) else {"cxx": given, "nvcc": given}
        # the environment stands last, so that CXXFLAGS="-O0 -g" has its way
        environs = shlex.split(os.environ.get("CXXFLAGS", ""))
        own = compilation.flags(self.platform, os.environ["CXX"])
        cxx = [*own, *by_compiler.get("cxx", ()), *environs]
        compilation.refuse_other_threads(os.environ["CXX"], cxx)
        nvcc = [*self.platform.cuda_compile_flags, *by_compiler.get("nvcc", ())]
        return {"cxx": cxx, "nvcc": nvcc}

    def build_extension(self, ext) -> None:
        if not isinstance(ext, OpLibrary):
            super().build_extension(ext)
            return
        failure = None
        with BuildLog(os.path.join(self._folder(ext), "build.log")) as log:
            try:
                object_of = self._compile_own(ext)
                vectors = self._compile_vectors(ext)
                built = self._link(ext, dict(object_of), vectors)
                if cuda_on_host.is_wanted(ext.described, ext.manifest.sources):
                    self._build_for_host(ext, object_of, vectors)
            except BUILD_FAILURES as error:
                failure = error
        if failure is not None:
            explained = explain(log.text, ext.manifest.kernels)
            print(explained or f"error: {failure}", file=sys.stderr, flush=True)
            raise SystemExit(f"error: {ext.name} was not built, see above")
        cuda_code.write(self._nvcc_command(ext), ext.name)
        self._install(built, self.get_ext_fullpath(ext.name), self._record(ext).to_json())

    def _nvcc_command(self, ext: OpLibrary) -> cuda_code.Command:
        library = ext.described
        own = [*ext.manifest.include_dirs, *library.include_dirs]
        return cuda_code.Command(
            sources=cuda_on_host.kernel_files(library, ext.manifest.sources),
            include_dirs=[os.path.abspath(path) for path in own],
            macros=[["TORCHEXT_WITH_CUDA", None], *map(list, library.define_macros)],
            flags=[f for f in ext.extra_compile_args["nvcc"] if f != _INCLUDES_PYTHON],
        )

    def _folder(self, ext: OpLibrary) -> str:
        """Return where objects, build.ninja and ninja's log of `ext` are: one folder each."""
        return os.path.join(self.build_temp, ext.name)

    def _build_for_host(
        self, ext: OpLibrary, object_of: dict[str, str], vectors: list[str]
    ) -> None:
        """Build the object with the library's CUDA kernels for the host."""
        given = os.environ["CXX"]
        with cuda_on_host.gcc() as compiler:
            cxx = ext.extra_compile_args["cxx"]
            if compiler != given:  # of the library's own flags what any compiler takes
                own = compilation.flags(self.platform, compiler)
                cxx = [*own, *cuda_on_host.common(cxx)]
            try:
                kernels = cuda_on_host.prepare(ext.described, compiler, cxx)
            except cuda_on_host.TranslationError as error:
                raise RuntimeError(str(error)) from None
            dirs = [*kernels.include_dirs, *ext.include_dirs]
            made = self._compile(ext, kernels.sources, dirs, kernels.flags, "cuda_on_host")
            made |= self._compile(ext, kernels.units, dirs, cxx, "cuda_on_host/units")
            boxed = self._objects_of(ext, "boxed", dict(object_of))
            own = [object_of[path] for path in ext.sources if path.endswith(".cpp")]
            libraries = [f"-l{name}" for name in self.platform.torch_libraries]
            cuda_on_host.link(
                ext.described, kernels, self._linker(), list(made.values()),
                [*own, *vectors, *boxed], libraries, self.platform.cpp_runtime,
            )  # fmt: skip

    def _linker(self) -> list[str]:
        return [os.environ["CXX"], *compilation.link_flags(self.platform, os.environ["CXX"])]

    def _compile_own(self, ext: OpLibrary) -> dict[str, str]:
        """Compile what all instruction sets share; return the object of each source."""
        if not ext.headers.flags:
            return self._compile(ext, ext.sources, ext.include_dirs)
        asking = [path for path in ext.sources if precompiled.is_asked_for(path)]
        others = [path for path in ext.sources if path not in asking]
        cxx = [*ext.extra_compile_args["cxx"], *ext.headers.flags]
        made = self._compile(ext, others, ext.include_dirs) if others else {}
        if asking:
            made |= self._compile(ext, asking, ext.include_dirs, cxx, "precompiled")
        return made

    def _compile(
        self,
        ext: OpLibrary,
        sources: list[str],
        include_dirs: list[str],
        cxx: list[str] | None = None,
        folder: str = "",
    ) -> dict[str, str]:
        """Compile what changed; ninja knows. Return the object of each source."""
        given = dict(ext.extra_compile_args)
        given["cxx"] = given["cxx"] if cxx is None else cxx
        # of cpp_extension's, by which <torch/torch.h> includes Python, which is not linked
        flags = {k: [flag for flag in v if flag != _INCLUDES_PYTHON] for k, v in given.items()}
        if compilation.is_gcc(os.environ["CXX"]):
            flags["cxx"] = [*compilation.LESS_MEMORY, *flags["cxx"]]
        objects = self.compiler.compile(
            sources,
            output_dir=os.path.join(self._folder(ext), folder),
            macros=ext.define_macros,
            include_dirs=include_dirs,
            debug=self.debug,
            extra_postargs=flags,
        )
        return dict(zip(sources, objects))

    def _compile_vectors(self, ext: OpLibrary) -> list[str]:
        """Compile what there is for each instruction set; return the objects."""
        objects: list[str] = []
        sources = [*ext.manifest.vector_sources, *ext.vector_sources]
        if sources:
            for name, flags in self.capabilities.items():
                cxx = [*ext.extra_compile_args["cxx"], *flags]
                made = self._compile(ext, sources, ext.include_dirs, cxx, f"vectors_{name}")
                objects += made.values()
        return objects

    def _link(self, ext: OpLibrary, object_of: dict[str, str], vectors: list[str]) -> str:
        """Link `ext` beside its objects, where each torch has its own; return the library."""
        library = os.path.join(self._folder(ext), os.path.basename(self.get_ext_filename(ext.name)))
        for_python = {
            part: self._objects_of(ext, part, object_of)
            for part in ("python", "runtime")
            if part in ext.generated
        }
        objects = [*self._objects_of(ext, "boxed", object_of), *object_of.values(), *vectors]
        environs = shlex.split(os.environ.get("LDFLAGS", ""))
        platform = self.platform
        command = [
            *self._linker(),
            *objects,
            *(f"-L{folder}" for folder in ext.library_dirs),
            *(f"-l{name}" for name in ext.libraries),
            *ext.extra_link_args,
            *environs,
        ]
        linking.link(command, objects, library, platform.cpp_runtime)
        for part, objects in for_python.items():
            command = [
                os.environ["CXX"],
                *compilation.python_link_flags(platform, os.environ["CXX"]),
                *map(os.path.abspath, objects),
                *(f"-L{folder}" for folder in cpp_extension.library_paths("cpu")),
                *(f"-l{name}" for name in (*platform.torch_libraries, *platform.python_libraries)),
                *environs,
            ]
            if part == "python":
                linking.link_python_part(
                    command, objects, library, platform.cpp_runtime, platform.origin
                )
            else:
                linking.link(command, objects, record.runtime_path(library), platform.cpp_runtime)
        for part, path_of in _FOR_PYTHON.items():
            if part not in for_python:
                linking.remove(path_of(library))
        for path in ext.manifest.python:
            stem, _ = os.path.splitext(library)
            linking.copy(path, f"{stem}_{os.path.basename(path)}")
        return library

    def _objects_of(self, ext: OpLibrary, part: str, object_of: dict[str, str]) -> list[str]:
        """Take the objects of a part out of `object_of`, and add the one of the cache."""
        compiled = filter(object_of.__contains__, ext.generated[part])  # `.cu` may be left out
        objects = [object_of.pop(source) for source in compiled]
        if part in ext.objects:
            # a copy, since the cache may forget it
            own = os.path.join(self._folder(ext), f"{part}.o")
            linking.copy_changed(ext.objects[part], own)
            objects.append(own)
        return objects

    def _record(self, ext: OpLibrary) -> record.BuildRecord:
        return record.of_installed_torch(
            ext.namespace,
            torchext.__version__,
            cuda_kernels=self.cuda.home is not None,
            python_part="python" in ext.generated,
            runtime="runtime" in ext.generated,
        )

    def _install(self, built: str, target: str, text: str) -> None:
        """Copy a library and what belongs to it, and write the record."""
        files, absent = {built: target}, []
        for path_of in (*_FOR_PYTHON.values(), record.operator_table_path):
            if os.path.exists(path_of(built)):
                files[path_of(built)] = path_of(target)
            else:
                absent.append(path_of(target))
        linking.install(files, text, record.record_path(target))
        for path in absent:
            linking.remove(path)

    def get_ext_filename(self, fullname: str) -> str:
        if not isinstance(self.ext_map.get(fullname), OpLibrary):
            return super().get_ext_filename(fullname)
        return os.path.join(*fullname.split(".")) + platforms.current().library_suffix

    def copy_extensions_to_source(self) -> None:
        described = self.extensions
        for regular, inplace in self._own_output_mapping().items():
            with open(record.record_path(regular), encoding="utf-8") as text:
                self._install(regular, inplace, text.read())
        self.extensions = [ext for ext in described if not isinstance(ext, OpLibrary)]
        try:
            super().copy_extensions_to_source()
        finally:
            self.extensions = described

    def _own_output_mapping(self) -> dict[str, str]:
        """Return for each OpLibrary its file in the build folder and the one in the package."""
        build_py = self.get_finalized_command("build_py")
        pairs = [
            self._get_inplace_equivalent(build_py, ext)
            for ext in self.extensions
            if isinstance(ext, OpLibrary)
        ]
        return {regular: inplace for inplace, regular in pairs}

    def get_output_mapping(self) -> dict[str, str]:
        mapping = super().get_output_mapping()
        if self.inplace:
            for regular, inplace in self._own_output_mapping().items():
                mapping.update(zip(_beside(regular), _beside(inplace)))
        return mapping

    def get_outputs(self) -> list[str]:
        outputs = super().get_outputs()
        libraries = [ext for ext in self.extensions if isinstance(ext, OpLibrary)]
        paths = [self.get_ext_fullpath(ext.name) for ext in libraries]
        beside = [path for library in paths for path in _beside(library)]
        return sorted({*outputs, *([] if self.inplace else beside)})


def _beside(library: str) -> list[str]:
    """Return what belongs to a library that is built: its record, and of what it has for Python and
    the table of operators what is there."""
    parts = [path_of(library) for path_of in (*_FOR_PYTHON.values(), record.operator_table_path)]
    return [record.record_path(library), *filter(os.path.exists, parts)]
