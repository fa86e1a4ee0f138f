# SPDX-License-Identifier: BSD-3-Clause
"""A library's CUDA kernels for the host: an object beside the library, in the build folder alone.

Files are translated (cuda_translation) with the headers of the project that they include, and
compiled by GCC, with the library's flags where that is its compiler, so that the machine in
csrc/testing/cuda_on_host sees each access to memory. With them go the code that registers CUDA's
kernels, here for the test device, and of the library's objects what both need. torch's headers for
CUDA, which its CPU builds have as well, are translated once for a torch, and the machine is
compiled with them.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.utils import cpp_extension

from . import cache, csrc, environment, linking, platforms
from .compilation import Compiler, is_gcc
from .cuda_translation import TranslationError, includes, translated, translation
from .generate import read_manifest
from .one_build import one_build
from .op_library import OpLibrary

SWITCH = "TORCHEXT_CUDA_ON_HOST"  # "1": a build makes the object, beside what it makes anyhow
DEVICE_KEY = "PrivateUse1"
RUNTIME = "libtorchext_cuda_on_host.so"
_ARCHITECTURE = "900"  # what __CUDA_ARCH__ is
_FOLDER = os.path.join("build", "cuda_on_host")
# of torch's, where kernels include them
_TORCH_HEADERS = ("ATen/cuda", "ATen/native/cuda", "c10/cuda")
_TORCH_FILES = (
    "ATen/native/SharedReduceOps.h",
    "ATen/core/TensorAccessor.h",
    "torch/headeronly/core/TensorAccessor.h",
    "torch/headeronly/util/BFloat16.h",
    "torch/headeronly/util/Half.h",
)
_HEADER_SUFFIXES = (".h", ".hpp", ".cuh", ".inl")
# The compiler calls a function for each access to memory and in each block of code, which the
# machine has; only -O1 keeps the order of lines.
_KERNEL_FLAGS = (
    "-O1", "-g1", "-w", "-fno-strict-aliasing", "-fno-sanitize=all", "-fsanitize-coverage=trace-pc",
    "-fsanitize=thread,alignment,bounds,integer-divide-by-zero",
    "-UNDEBUG",  # as nvcc, which is not given Python's flags
    "-DTORCHEXT_CUDACC", f"-DTORCHEXT_CUDA_ARCH={_ARCHITECTURE}",
    "-include", "torchext/cuda_on_host/prelude.h",
)  # fmt: skip
_WRAPPED = (
    "memcpy", "memmove", "memset", "malloc", "free", "__ubsan_handle_type_mismatch_v1",
    "__ubsan_handle_divrem_overflow", "__ubsan_handle_out_of_bounds",
)  # fmt: skip


def path_of(project: str | os.PathLike, name: str) -> Path:
    """Where the object of a library is, by the name in its setup.py."""
    folder = Path(project) / _FOLDER / f"torch-{torch.__version__}"
    return folder / f"{name}.so"


def is_wanted(library: OpLibrary, generated: Iterable[str]) -> bool:
    """Whether this build makes the object of a library."""
    return os.environ.get(SWITCH) == "1" and bool(kernel_files(library, generated))


def kernel_files(library: OpLibrary, generated: Iterable[str]) -> list[str]:
    """The CUDA sources of the library, and then those that are generated for it."""
    files = [*sorted(library.sources), *sorted(generated)]
    return [path for path in files if path.endswith(".cu")]


@contextlib.contextmanager
def gcc() -> Iterator[str]:
    """Have GCC compile, whose sanitizers the machine knows, where a library's compiler is another.

    RuntimeError where there is none.
    """
    names = (environment.find_compiler(platforms.current()), "g++", "c++")
    found = next((name for name in names if shutil.which(name) and is_gcc(name)), None)
    if found is None:
        raise RuntimeError(
            f"CUDA kernels are compiled for the host by GCC, which {names[0]} is not: install g++"
        )
    chosen = {"CXX": found}
    if found != names[0] and "CXXFLAGS" in os.environ:  # which are those of another compiler
        chosen["CXXFLAGS"] = shlex.join(common(shlex.split(os.environ["CXXFLAGS"])))
    given = {name: os.environ.get(name) for name in chosen}
    os.environ.update(chosen)
    try:
        yield found
    finally:
        for name, value in given.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@dataclass(frozen=True)
class Kernels:
    """What an object is compiled from."""

    sources: list[str]
    flags: list[str]
    units: list[str]  # what is generated beside them, which has no kernel: with the library's flags
    include_dirs: list[str]
    runtime: Path


def prepare(library: OpLibrary, compiler: str, flags: Iterable[str]) -> Kernels:
    """Generate and translate everything; `flags` are those of the library.

    TranslationError where a file has what cannot run on the host.
    """
    from torchext.codegen.__main__ import main

    out = os.path.join(_FOLDER, library.name)
    generated = os.path.join(out, "generated")
    arguments = ["--namespace", library.namespace, "--native-functions", library.native_functions]
    if library.derivatives:
        arguments += ["--derivatives", library.derivatives]
    if main([*arguments, "--out", generated, "--cuda-as", DEVICE_KEY]) != 0:
        raise SystemExit(f"error: the operators of {library.name} were refused, see above")
    manifest = read_manifest(generated)
    headers = _torch_headers()
    given = library.extra_compile_args
    nvcc = given.get("nvcc", []) if isinstance(given, dict) else []
    own = [*manifest.include_dirs, *map(os.path.abspath, library.include_dirs)]
    kernels = kernel_files(library, manifest.sources)
    mirror = _Mirror(Path(out) / "src", own)
    sources = [mirror.source(path) for path in kernels]
    # what the generator has for the CPU is in the library's own objects
    units = [p for p in manifest.sources if os.path.basename(os.path.dirname(p)) == "units"]
    include = csrc.folder("testing") / "cuda_on_host" / "include"
    return Kernels(
        sources=sources,
        flags=[*flags, *common(nvcc), *_KERNEL_FLAGS],
        units=units,
        include_dirs=[str(include), str(headers), *map(os.path.abspath, own)],
        runtime=_runtime(compiler, headers),
    )


def common(flags: Iterable[str]) -> list[str]:
    """Of another compiler's flags what any takes."""
    return [flag for flag in flags if flag.startswith(("-D", "-U", "-I"))]


def link(
    library: OpLibrary, kernels: Kernels, compiler: list[str], objects: list[str], own: list[str],
    libraries: list[str], cpp_runtime: str,
) -> Path:  # fmt: skip
    """Link `objects`, with what they need of `own`, the library's, and return the path."""
    path = path_of(os.curdir, library.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    linking.copy_changed(str(kernels.runtime), str(path.parent / RUNTIME))
    archive = str(path.with_suffix(".a"))
    linking.remove(archive)
    subprocess.run(["ar", "rcs", archive, *own], check=True)
    command = [
        *compiler, *objects, archive, str(path.parent / RUNTIME), "-Wl,-rpath,$ORIGIN",
        *(f"-Wl,--wrap={name}" for name in _WRAPPED),
        *(f"-L{folder}" for folder in cpp_extension.library_paths("cpu")), *libraries,
        *shlex.split(os.environ.get("LDFLAGS", "")),
    ]  # fmt: skip
    linking.link(command, [*objects, archive], str(path), cpp_runtime)
    return path


def load_sources(
    name: str, sources: list[str], folder: Path, include_dirs: list[str], macros: list[str]
) -> Path:
    """Compile and load sources of any extension of torch, `.cu` and others, and return the machine.

    TranslationError where a file has what cannot run on the host, RuntimeError where it does not
    compile.
    """
    with gcc() as compiler:
        return _load_sources(name, sources, folder, include_dirs, macros, compiler)


def _load_sources(
    name: str, sources: list[str], folder: Path, include_dirs: list[str], macros: list[str],
    compiler: str,
) -> Path:  # fmt: skip
    headers = _torch_headers()
    runtime = _runtime(compiler, headers)
    environment.put_ninja_on_path()
    mirror = _Mirror(folder / "src", include_dirs)
    copies = [os.path.abspath(mirror.source(path)) for path in sources]
    include = csrc.folder("testing") / "cuda_on_host" / "include"
    with one_build(str(folder / "torchext.lock"), str(folder)):
        (folder / "lock").unlink(missing_ok=True)  # of a build that was killed
        ctypes.CDLL(str(runtime), mode=ctypes.RTLD_GLOBAL)
        cpp_extension.load(
            name,
            copies,
            build_directory=str(folder),
            is_python_module=False,
            extra_cflags=["-fvisibility=hidden", *macros, *_KERNEL_FLAGS],
            extra_include_paths=[
                str(path) for path in (include, headers, csrc.folder("include"), *include_dirs)
            ],
            extra_ldflags=[str(runtime), *(f"-Wl,--wrap={function}" for function in _WRAPPED)],
        )
    return runtime


class _Mirror:
    """Translated copies of files, each including the copies of what it includes of the project."""

    def __init__(self, folder: Path, include_dirs: list[str]) -> None:
        self.folder = folder
        self.include_dirs = [Path(path) for path in include_dirs]
        self.foreign = [Path(path).resolve() for path in cpp_extension.include_paths("cpu")]
        self.foreign.append(csrc.folder("include").resolve())
        self.done: dict[Path, Path] = {}
        self.arrays: dict[Path, frozenset[str]] = {}  # that each file declares, or what it includes

    def source(self, path: str) -> str:
        """The copy of a .cu file, under a name that a C++ compiler knows."""
        return os.path.relpath(self._copy(Path(path).resolve(), ".cpp"))

    def _copy(self, path: Path, suffix: str = "") -> Path:
        if path in self.done:
            return self.done[path]
        shown = os.path.relpath(path)
        inside = shown if not shown.startswith(os.pardir) else str(path).lstrip(os.sep)
        copy = (self.folder / f"{inside}{suffix if path.suffix != suffix else ''}").absolute()
        self.done[path] = copy
        text = path.read_text(encoding="utf-8")
        pieces, end, arrays = [], 0, frozenset[str]()
        for start, stop, name, is_quoted in includes(text):
            found = self._find(name, path.parent if is_quoted else None)
            if found is not None:
                pieces += [text[end:start], str(self._copy(found))]
                end = stop
                arrays |= self.arrays.get(found, frozenset())
        made = translation("".join([*pieces, text[end:]]), shown, arrays)
        self.arrays[path] = made.arrays
        write_changed(copy, f'#line 1 "{path}"\n{made.text}')
        return copy

    @staticmethod
    def _has_kernels(path: Path) -> bool:
        """Whether a header is one of those with which torchext's generated kernels are made."""
        return path.is_relative_to(csrc.folder("include").resolve()) and path.suffix == ".cuh"

    def _find(self, name: str, beside: Path | None) -> Path | None:
        """The project's own file of this name, where there is one."""
        for folder in [*([beside] if beside else []), *self.include_dirs]:
            path = (folder / name).resolve()
            if path.is_file():
                is_foreign = any(path.is_relative_to(other) for other in self.foreign)
                return None if is_foreign and not self._has_kernels(path) else path
        return None


def write_changed(path: Path, text: str) -> None:
    """Write a file where it would change, so that what was compiled of it stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def _torch_headers() -> Path:
    """The folder with torch's translated headers."""
    own = sorted(Path(__file__).parent.glob("cuda_*.py"))  # of what translates
    made_of = [torch.__version__, torch.__file__, *(p.read_text(encoding="utf-8") for p in own)]
    return cache.entry("cuda-headers", "\0".join(made_of), _translate_torch)


def _runtime(compiler: str, headers: Path) -> Path:
    """The machine that runs kernels, compiled once for a torch."""
    given = shlex.split(os.environ.get("CXXFLAGS", ""))
    flags = ["-O2", "-fPIC", "-fvisibility=hidden", "-g1", *given]
    chosen = Compiler.with_flags(compiler, flags)
    home = csrc.folder("testing") / "cuda_on_host"
    source = home / "runtime" / "all.cpp"
    dirs = [f"-I{path}" for path in (home / "include", headers, csrc.folder("include"))]

    def make(folder: Path) -> list[str]:
        print("compiling the machine that runs kernels on the host, once for all", flush=True)
        read = chosen.compile(source, folder / "all.o", [*dirs, "-c"])
        command = [
            *chosen.command[:1], "-shared", f"-Wl,-soname,{RUNTIME}", str(folder / "all.o"),
            *(f"-L{path}" for path in cpp_extension.library_paths("cpu")), "-lc10", "-ltorch_cpu",
            *shlex.split(os.environ.get("LDFLAGS", "")), "-Wl,-z,defs,-z,nodelete",
            "-o", str(folder / RUNTIME),
        ]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True, text=True)
        return [*read, str(source)]

    return cache.entry("cuda-on-host", f"{chosen.text}{dirs}", make) / RUNTIME


def _translate_torch(folder: Path) -> list[str]:
    """Translate torch's headers for CUDA into a folder, and return what was read.

    One that has what the host cannot run becomes an error where it is included.
    """
    [torchs, *_] = [Path(path) for path in cpp_extension.include_paths("cpu")]
    paths = [path for part in _TORCH_HEADERS for path in sorted((torchs / part).rglob("*"))]
    paths = [path for path in paths if path.suffix in _HEADER_SUFFIXES]
    paths += [path for name in _TORCH_FILES if (path := torchs / name).exists()]  # of this torch
    for path in paths:
        try:
            text = translated(path.read_text(encoding="utf-8"), str(path))
        except TranslationError as error:
            text = f"#error {error}\n"
        write_changed(folder / path.relative_to(torchs), f'#line 1 "{path}"\n{text}')
    return [str(path) for path in paths]
