# SPDX-License-Identifier: BSD-3-Clause
"""Builds the library with sanitizers and runs it under them: `make sanitize`.

    python tests/sanitize/run.py address    # AddressSanitizer and UndefinedBehaviorSanitizer
    python tests/sanitize/run.py thread     # ThreadSanitizer, from a C++ program

First mistakes of our own (seeded/) must be reported; then the operator tests and the threads must
not be. Works on a copy of the project in build/sanitize. Any report fails; what suppressions-*.txt
leave out are frames of others only, each with its reason.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
COPIED = ("codegen", "csrc", "torchext", "tests/ops", "tests/sanitize", "tests/leaks",
          "tests/fallback", *(f"tests/{p.name}" for p in (ROOT / "tests").glob("*.py")),
          "setup.py", "pyproject.toml", "native_functions.yaml",
          "derivatives.yaml", "README.md", "LICENSE")  # fmt: skip
BUILT = shutil.ignore_patterns("*.so", "_C*.json", "__pycache__", "build")
# -O1: at -O3 frames are missing. vptr: types that cross libraries of hidden visibility differ.
FLAGS = {
    "address": "-fsanitize=address,undefined -fno-sanitize=vptr -fno-omit-frame-pointer -O1 -g1",
    "thread": "-fsanitize=thread -fno-omit-frame-pointer -O1 -g1",
}
# torch.compile starts compilers, which would inherit the sanitizer; tests/ops without it.
LEFT_OUT = ("test_compile.py", "test_export.py")
CALLS_OF_A_THREAD = {"address": 20, "thread": 300}
THREADS = 8
_UNDEFINED = ": runtime error: "


class Sanitizer:
    """One kind of sanitizer, with its copy of the project and where it reports."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.folder = ROOT / "build" / "sanitize" / kind
        self.reports = self.folder / "reports"

    def build(self) -> None:
        """Copy what changed and compile it with the sanitizer."""
        for name in COPIED:
            source, target = ROOT / name, self.folder / name
            self._remove_what_is_gone(source, target)
            if source.is_dir():
                shutil.copytree(source, target, ignore=BUILT, dirs_exist_ok=True)
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)
        # where an installed torchext has its generator, for the seeded library
        generator = self.folder / "torchext" / "codegen"
        if not generator.is_symlink():
            generator.symlink_to(self.folder / "codegen")
        for folder in (self.folder, self.seeded):
            self._setup(folder)

    @staticmethod
    def _remove_what_is_gone(source: Path, target: Path) -> None:
        """Delete sources and tests of the copy that the project has no more."""
        for path in target.rglob("*"):
            relative = path.relative_to(target)
            is_source = path.suffix in (".py", ".yaml", ".h", ".cpp", ".txt")
            if is_source and "build" not in relative.parts and not (source / relative).exists():
                path.unlink()

    @property
    def seeded(self) -> Path:
        """The project of the library that has mistakes."""
        return self.folder / "tests" / "sanitize" / "seeded"

    @property
    def seeded_library(self) -> Path:
        return self.seeded / "seeded_library.so"

    @property
    def cuda_kernels(self) -> Path:
        """The object with the library's CUDA kernels on the host."""
        return next(self.folder.glob("build/cuda_on_host/*/torchext*.so"))

    def _setup(self, folder: Path) -> None:
        flags = FLAGS[self.kind]
        environment = {"CXXFLAGS": flags, "LDFLAGS": flags, "PYTHONPATH": str(self.folder)}
        if (
            self.kind == "address"
        ):  # with the other, the machine would call the sanitizer's functions
            environment["TORCHEXT_CUDA_ON_HOST"] = "1"
        command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
        subprocess.run(command, check=True, cwd=folder, env={**os.environ, **environment})

    def build_for_the_fallback(self) -> None:
        """Build the library that the tests of the fallback call, and the test device; here, because
        compilers would be slow under the sanitizer."""
        code = (
            "import importlib, library_build, pathlib, torch\n"
            "library_build.build(pathlib.Path('tests/fallback/fallbacktest').absolute())\n"
            "torch.ops.load_library = print  # the sanitizer must be there before\n"
            "importlib.import_module('torchext.testing.device')._build()\n"
        )
        command = [sys.executable, "-c", code]
        subprocess.run(command, check=True, cwd=self.folder, env=self.environment())

    def check_instrumented(self) -> None:
        """Every library that was built here calls the sanitizer: a run of others finds nothing."""
        entry = b"__asan_" if self.kind == "address" else b"__tsan_"
        for path in [*(self.folder / "torchext").glob("*.so"), *self.folder.glob("build/**/*.so")]:
            if entry not in path.read_bytes():
                raise SystemExit(f"error: {path} is built without the {self.kind} sanitizer")

    def run(self, command: list[str], check: bool = True) -> tuple[int, str]:
        """Run a command under the sanitizer; returns its status and its reports."""
        shutil.rmtree(self.reports, ignore_errors=True)
        self.reports.mkdir(parents=True)
        printed = self.folder / "stderr.txt"
        with open(printed, "wb") as file:
            result = subprocess.run(
                command, check=False, cwd=self.folder, env=self.environment(), stderr=file
            )
        found = [path.read_text(errors="replace") for path in sorted(self.reports.iterdir())]
        # beside AddressSanitizer, the one for undefined behaviour knows no file but stderr
        text = printed.read_text(errors="replace")
        found += [text] if _UNDEFINED in text else []
        if check and result.returncode != 0 and not found:
            raise SystemExit(
                f"error: {' '.join(command)} ended with {result.returncode}\n{text[-20_000:]}"
            )
        return result.returncode, "\n".join(found)

    def environment(self) -> dict[str, str]:
        """Variables for a program under the sanitizer."""
        log = f"log_path={self.reports / 'report'}"
        undefined = HERE / "suppressions-undefined.txt"
        flags = FLAGS[self.kind]
        return {
            **os.environ,
            **{"CXXFLAGS": flags, "LDFLAGS": flags},  # of the libraries that tests build
            "PYTHONPATH": os.pathsep.join([str(self.folder), str(self.folder / "tests")]),
            # its threads synchronize in a library that is not instrumented
            "OMP_NUM_THREADS": "1",
            # leaks: Python and torch keep what they made; tests/leaks counts ours
            "ASAN_OPTIONS": f"{log}:detect_leaks=0:allocator_may_return_null=1",
            # a report ends the process: a test may keep its stderr to itself
            "UBSAN_OPTIONS": f"{log}:print_stacktrace=1:halt_on_error=1:suppressions={undefined}",
            # of torch it sees the mutexes, and not the counts of references that order a release
            "TSAN_OPTIONS": f"{log}:suppressions={HERE / 'suppressions-thread.txt'}"
            ":ignore_noninstrumented_modules=1",
        }

    def expect_silence(self, what: str, command: list[str]) -> None:
        """Run what must pass without a report."""
        status, reports = self.run(command)
        print(f"{self.kind}: {what}: status {status}, {len(reports.splitlines())} lines reported")
        if status != 0 or reports:
            raise SystemExit(f"error: {what} under the {self.kind} sanitizer\n{reports[:20_000]}")

    def expect_report(self, what: str, command: list[str], words: str) -> None:
        """Run a seeded mistake, which must be reported."""
        _, reports = self.run(command, check=False)
        print(f"{self.kind}: {what}: {'reported' if words in reports else 'NOT REPORTED'}")
        if words not in reports:
            raise SystemExit(f"error: the sanitizer does not see {what}\n{reports[:20_000]}")


def check_address(sanitizer: Sanitizer) -> None:
    """The operator tests, the fallback and threads in Python, with the sanitizer loaded first."""
    sanitizer.build_for_the_fallback()
    sanitizer.check_instrumented()
    python = ["env", f"LD_PRELOAD={_runtime('libasan.so')} {_runtime('libubsan.so')}",
              sys.executable]  # fmt: skip
    call = f"import torch, torchext; ops = torchext.load_library({str(sanitizer.seeded_library)!r})"
    overflow = [*python, "-c", f"{call}; ops.overflow(torch.ones(3))"]
    sanitizer.expect_report("a seeded overflow", overflow, "heap-buffer-overflow")
    undefined = [*python, "-c", f"{call}; ops.undefined(64)"]
    sanitizer.expect_report("a seeded shift by too many bits", undefined, "shift exponent 64")
    threads = [*python, "tests/sanitize/threads.py", *_counts(sanitizer.kind)]
    sanitizer.expect_silence(f"{THREADS} threads and children that fork", threads)
    device = [*python, "tests/sanitize/on_device.py", str(CALLS_OF_A_THREAD[sanitizer.kind])]
    sanitizer.expect_silence("every operator, with backward, on the test device", device)
    kernels = [*python, "tests/sanitize/cuda_kernels.py", str(sanitizer.cuda_kernels), "3"]
    sanitizer.expect_silence("every CUDA kernel on the host", kernels)
    left_out = [f"--ignore=tests/ops/{name}" for name in LEFT_OUT]
    # Captured, a report of a test that passes would not be seen.
    plugins = ["-p", "no:cacheprovider", "-p", "no:xdist", "-q", "--capture=no"]
    tests = [*python, "-m", "pytest", *plugins, *left_out, "tests/ops"]
    sanitizer.expect_silence("the operator tests", tests)
    arguments = [*python, "-m", "pytest", *plugins, "tests/fallback/test_fallback_arguments.py"]
    sanitizer.expect_silence("the fallback's arguments", arguments)


def check_thread(sanitizer: Sanitizer) -> None:
    """A C++ program: Python's own threads synchronize where the sanitizer does not look."""
    driver = _build_driver(sanitizer)
    sanitizer.check_instrumented()
    # with some kernels the loader puts objects where the sanitizer keeps its own
    fixed = ["setarch", "-R"] if shutil.which("setarch") else []
    race = [*fixed, driver, "seeded", str(sanitizer.seeded_library)]
    sanitizer.expect_report("a seeded race", race, "data race")
    sanitizer.expect_silence("what torch counts the references of", [*fixed, driver, "counted"])
    threads = [*fixed, driver, *_counts(sanitizer.kind)]
    sanitizer.expect_silence(f"{THREADS} threads", threads)


def _counts(kind: str) -> list[str]:
    return [str(THREADS), str(CALLS_OF_A_THREAD[kind])]


def _runtime(name: str) -> str:
    """The path of a library of the compiler."""
    compiler = os.environ.get("CXX", "c++")
    command = [compiler, f"-print-file-name={name}"]
    path = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    if not os.path.isabs(path):
        raise SystemExit(f"error: {compiler} has no {name}")
    return os.path.realpath(path)


def _build_driver(sanitizer: Sanitizer) -> str:
    """Compile driver.cpp, with the test device and what of the overrides is not Python's, and link
    it with the library."""
    from torch.utils.cpp_extension import load

    folder, flags = sanitizer.folder, FLAGS[sanitizer.kind].split()
    runtime, generated = folder / "csrc" / "runtime", folder / "build" / "generated" / "myns"
    sources = [
        HERE / "driver.cpp",
        *(runtime / f"{name}.cpp" for name in ("override", "layers", "contract", "expectation")),
        folder / "csrc" / "testing" / "all.cpp",
    ]
    include = folder / "csrc" / "include"
    includes = [include, include / "torchext" / "replacements", runtime, generated / "include"]
    built = folder / "build" / "driver"
    built.mkdir(parents=True, exist_ok=True)
    # load()'s own, for which it waits for ever: of a run that was killed
    (built / "lock").unlink(missing_ok=True)
    libraries = [f"-L{folder / 'torchext'}", "-l:_C.so", f"-Wl,-rpath,{folder / 'torchext'}"]
    return load(
        "driver", sorted(map(str, sources)), extra_cflags=flags,
        extra_ldflags=[*flags, "-Wl,--no-as-needed", *libraries],
        extra_include_paths=list(map(str, includes)), build_directory=str(built),
        is_python_module=False, is_standalone=True,
    )  # fmt: skip


CHECKS = {"address": check_address, "thread": check_thread}


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", nargs="*", choices=[*CHECKS, []], help="which (default: all)")
    for kind in parser.parse_args().kind or CHECKS:
        sanitizer = Sanitizer(kind)
        sanitizer.build()
        CHECKS[kind](sanitizer)
    print("sanitizers: no report but the seeded ones")


if __name__ == "__main__":
    main()
