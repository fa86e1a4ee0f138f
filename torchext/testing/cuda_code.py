# SPDX-License-Identifier: BSD-3-Clause
"""What can be known of CUDA kernels' speed without a GPU, from the machine code that nvcc makes.

`python -m torchext.testing.cuda_code my_ops`, in the folder of the project that builds `my_ops`:
registers, spills, shared memory, occupancy, and how wide the loads and stores of global memory are,
of each kernel for each architecture. Needs nvcc and nvdisasm, and no CUDA build of torch.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from .. import library as libraries
from ..toolchain import csrc, cuda, environment, platforms, record
from ..toolchain import cuda_code as toolchain
from . import projects

ARCHITECTURES = ("80", "90", "100")
BLOCKS = (128, 256, 512, 1024)
# Of a multiprocessor: threads, bytes of shared memory, and of these what a block may have. From the
# tables of compute capabilities in the CUDA programming guide; registers are 65,536 in all of them.
_MULTIPROCESSORS = {
    "75": (1024, 64 << 10, 64 << 10),
    "80": (2048, 164 << 10, 163 << 10),
    "86": (1536, 100 << 10, 99 << 10),
    "87": (1536, 164 << 10, 163 << 10),
    "89": (1536, 100 << 10, 99 << 10),
    "90": (2048, 228 << 10, 227 << 10),
    "100": (2048, 228 << 10, 227 << 10),
    "103": (2048, 228 << 10, 227 << 10),
    "120": (1536, 100 << 10, 99 << 10),
    "121": (1536, 100 << 10, 99 << 10),
}


@dataclass(frozen=True)
class KernelCode:
    """The machine code of a kernel for an architecture.

    kernel: its name with the template's arguments. source: its file, as in setup.py.
    architecture: such as "90". registers: of a thread, in 32 bits. spill_bytes: that a thread
    writes to local memory and reads from there for want of registers. stack_bytes: of local memory.
    shared_bytes: static.
    occupancy: by the threads of a block, without dynamic shared memory, the share of a
    multiprocessor's threads that it has room for; 0 where such a block cannot run.
    loads, stores: of global memory: how many instructions there are of how many bytes each.
    atomics: how many instructions there are.
    """

    kernel: str
    source: str
    architecture: str
    registers: int
    spill_bytes: int
    stack_bytes: int
    shared_bytes: int
    occupancy: dict[int, float]
    loads: dict[int, int]
    stores: dict[int, int]
    atomics: int


def kernels(
    library: str | os.PathLike,
    *,
    project: str | os.PathLike | None = None,
    architectures: Sequence[str] = ARCHITECTURES,
    sources: Iterable[str] = (),
) -> list[KernelCode]:
    """Compile a library's CUDA kernels with nvcc, and read what it makes of them.

    library, project: as of torchext.testing.cuda_on_host.load. architectures: without "sm_", such
    as "90" or "90a". sources: files of the library, if not all.

    Builds the library in place first, without what did not change. Raises RuntimeError where nvcc
    or nvdisasm is missing, where a file does not compile, and where the library has no kernels;
    ValueError for an architecture that is not known.
    """
    for architecture in architectures:
        _multiprocessor(architecture)
    nvdisasm = find_nvdisasm()
    path = libraries.loaded_path(library)
    namespace = record.BuildRecord.read(record.record_path(path)).namespace
    folder = projects.folder_of(path, namespace, project)
    projects.build(folder, f"{path} was not built", {})
    command = projects.built_for(path, toolchain.path_of(folder, "*"))
    if command is None:
        raise RuntimeError(f"{path} has no CUDA sources: in its setup.py there is no .cu file")
    return read(toolchain.compile_kernels(command, folder, architectures, tuple(sources)), nvdisasm)


def read(codes: Iterable[toolchain.MachineCode], nvdisasm: str) -> list[KernelCode]:
    """The kernels of compiled files."""
    return _with_occupancy([kernel for code in codes for kernel in _read(code, nvdisasm)])


def _multiprocessor(architecture: str) -> tuple[int, int, int]:
    known = _MULTIPROCESSORS.get(architecture.rstrip("af"))
    if known is None:
        raise ValueError(
            f"the architecture {architecture!r} is not known: {', '.join(_MULTIPROCESSORS)}, "
            "and with an a or f behind"
        )
    return known


def find_nvdisasm() -> str:
    """The path of the program; RuntimeError where there is none."""
    home = cuda.find_toolkit()
    packages = sysconfig.get_path("purelib")
    folders = [*([os.path.join(home, "bin")] if home else []), *os.get_exec_path()]
    folders += sorted(glob.glob(os.path.join(packages, "nvidia", "cu*", "bin")), reverse=True)
    folders.append(os.path.join(packages, "triton", "backends", "nvidia", "bin"))
    found = shutil.which("nvdisasm", path=os.pathsep.join(folders))
    if found is None:
        raise RuntimeError(
            "there is no nvdisasm, which reads machine code: it comes with the CUDA toolkit and "
            "with pip install nvidia-cuda-nvdisasm"
        )
    return found


# -- what ptxas and nvdisasm say

_ENTRY = re.compile(r"Compiling entry function '(\w+)' for 'sm_(\w+)'")
_PROPERTIES = re.compile(r"Function properties for (\w+)")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_LABEL = re.compile(r"^\.text\.(\w+):$")
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9.]+)")
_LOADS = ("LD", "LDG", "LDGSTS")
_STORES = ("ST", "STG")
_ATOMICS = ("ATOM", "ATOMG", "RED", "REDG")
_WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32}


def _read(code: toolchain.MachineCode, nvdisasm: str) -> list[KernelCode]:
    done = subprocess.run(
        [nvdisasm, "-c", str(code.cubin)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode != 0:
        raise RuntimeError(f"nvdisasm failed with {code.cubin}:\n{done.stdout}")
    accesses = _accesses(done.stdout)
    used = _used(code.said)
    names = _demangled(list(used))
    return sorted(
        (
            KernelCode(
                kernel=names[symbol], source=code.source, architecture=code.architecture,
                **numbers, occupancy={}, **accesses[symbol],
            )
            for symbol, numbers in used.items()
        ),
        key=lambda kernel: kernel.kernel,
    )  # fmt: skip


def _used(said: str) -> dict[str, dict[str, int]]:
    """What ptxas says of each kernel, by its symbol."""
    found: dict[str, dict[str, int]] = {}
    entry = function = ""
    for line in said.splitlines():
        if begun := _ENTRY.search(line):
            entry = begun[1]
            found[entry] = {"registers": 0, "spill_bytes": 0, "stack_bytes": 0, "shared_bytes": 0}
        elif named := _PROPERTIES.search(line):
            function = named[1]
        elif (spills := _SPILLS.search(line)) and function == entry != "":
            found[entry]["stack_bytes"] = int(spills[1])
            found[entry]["spill_bytes"] = int(spills[2]) + int(spills[3])
        elif (registers := _USED.search(line)) and entry:
            found[entry]["registers"] = int(registers[1])
            shared = _SHARED.search(line)
            found[entry]["shared_bytes"] = int(shared[1]) if shared else 0
    return found


def _accesses(assembly: str) -> dict[str, dict]:
    """The accesses to global memory of each function, by its symbol."""
    found: dict[str, dict] = {}
    current: dict = {}
    for line in assembly.splitlines():
        if label := _LABEL.match(line):
            current = found.setdefault(label[1], {"loads": {}, "stores": {}, "atomics": 0})
        elif instruction := _INSTRUCTION.match(line):
            operation, *modifiers = instruction[1].split(".")
            width = next((_WIDTHS[m] for m in reversed(modifiers) if m in _WIDTHS), 4)
            if operation in _LOADS:
                current["loads"][width] = current["loads"].get(width, 0) + 1
            elif operation in _STORES:
                current["stores"][width] = current["stores"].get(width, 0) + 1
            elif operation in _ATOMICS:
                current["atomics"] += 1
    return found


def _demangled(symbols: list[str]) -> dict[str, str]:
    """The name of each kernel, without the types of its parameters."""
    if not symbols:
        return {}
    done = subprocess.run(
        ["c++filt"], input="\n".join(symbols), text=True, stdout=subprocess.PIPE, check=True
    )
    return dict(zip(symbols, map(_name, done.stdout.splitlines()), strict=True))


def _name(signature: str) -> str:
    """`void (anonymous namespace)::f<4, T>(T const*)` is `f<4, T>`."""
    depth, end = 0, len(signature)
    for i in range(len(signature) - 1, -1, -1):  # the last parentheses are those of the parameters
        depth += {")": 1, "(": -1}.get(signature[i], 0)
        if depth == 0 and signature[i] == "(":
            end = i
            break
    return signature[:end].removeprefix("void ").replace("(anonymous namespace)::", "")


# -- occupancy


def occupancies(launches: Sequence[tuple[str, int, int, int, int]]) -> list[float]:
    """The share of a multiprocessor's threads that it has room for, as the toolkit calculates it,
    for each of some launches: architecture, registers of a thread, static shared memory in bytes,
    threads of a block, dynamic shared memory in bytes."""
    lines = []
    for architecture, registers, shared, threads, dynamic in launches:
        number = architecture.rstrip("af")
        room = " ".join(map(str, _multiprocessor(architecture)))
        lines.append(
            f"{number[:-1]} {number[-1]} {room} {registers} {shared} 1024 {threads} {dynamic}"
        )
    blocks = _calculated(lines)
    return [
        count * threads / _multiprocessor(architecture)[0]
        for count, (architecture, _, _, threads, _) in zip(blocks, launches, strict=True)
    ]


def _calculated(lines: list[str]) -> list[int]:
    source = csrc.folder("testing") / "cuda_code" / "occupancy.cpp"
    compiler = environment.find_compiler(platforms.current())
    headers = os.path.join(cuda.find_toolkit() or "", "include")
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "occupancy")
        subprocess.run([compiler, f"-I{headers}", "-o", program, str(source)], check=True)
        done = subprocess.run(
            [program], input="\n".join(lines), text=True, stdout=subprocess.PIPE, check=True
        )
    return [int(line) for line in done.stdout.split()]


def _with_occupancy(found: list[KernelCode]) -> list[KernelCode]:
    shares = iter(
        occupancies(
            [
                (kernel.architecture, kernel.registers, kernel.shared_bytes, threads, 0)
                for kernel in found
                for threads in BLOCKS
            ]
        )
    )
    return [replace(kernel, occupancy={n: next(shares) for n in BLOCKS}) for kernel in found]


# -- the table


def table(found: Iterable[KernelCode]) -> str:
    """A line for each kernel and architecture; the widths of loads and stores are in bytes, each
    with how many instructions have it."""
    head = ("kernel", "sm", "registers", "spilled", "shared", *map(str, BLOCKS), "loads", "stores")
    rows = [head]
    for kernel in found:
        shares = [f"{100 * kernel.occupancy[n]:.0f} %" for n in BLOCKS]
        rows.append(
            (
                _short(kernel.kernel), kernel.architecture, str(kernel.registers),
                str(kernel.spill_bytes), str(kernel.shared_bytes), *shares,
                _widths(kernel.loads), _widths(kernel.stores),
            )
        )  # fmt: skip
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    lines = []
    for row in rows:
        cells = [
            text.ljust(width) if i in (0, len(head) - 2, len(head) - 1) else text.rjust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _short(name: str, most: int = 60) -> str:
    return name if len(name) <= most else name[: most - 3] + "..."


def _widths(counts: dict[int, int]) -> str:
    return " ".join(f"{width}:{count}" for width, count in sorted(counts.items(), reverse=True))


def main(argv: list[str] | None = None) -> int:
    """Print the table of a library; 1 where it cannot be made."""
    parser = argparse.ArgumentParser(
        prog="python -m torchext.testing.cuda_code", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("library", help="the name of the package that holds it")
    parser.add_argument("--project", help="the folder with its setup.py (default: this one)")
    parser.add_argument("--sources", nargs="+", default=[], metavar="FILE", help="those alone")
    parser.add_argument(
        "--architectures", nargs="+", default=ARCHITECTURES, metavar="NUMBER",
        help=f"such as 90 or 90a (default: {' '.join(ARCHITECTURES)})",
    )  # fmt: skip
    parser.add_argument("--json", metavar="FILE", help="write everything there as well")
    options = parser.parse_args(argv)
    sys.path.append(options.project or os.getcwd())  # what was built in place
    try:
        found = kernels(
            options.library, project=options.project,
            architectures=options.architectures, sources=options.sources,
        )  # fmt: skip
    except (ImportError, RuntimeError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(table(found))
    if options.json:
        text = json.dumps([asdict(kernel) for kernel in found], indent=1)
        Path(options.json).write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
