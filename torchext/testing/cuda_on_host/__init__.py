# SPDX-License-Identifier: BSD-3-Clause
"""A library's CUDA kernels on the host: built from its .cu files as they are, for the test device.

`python -m torchext.testing.cuda_on_host my_ops` checks every operator with them, in the folder of
the project that builds `my_ops`. docs/cuda-without-gpu.md says what it finds.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.utils import cpp_extension

from ... import library as libraries
from ...toolchain import cuda_on_host as toolchain
from ...toolchain import record
from .. import device as test_device
from .. import projects

more_addresses = test_device.more_addresses

_RUNTIME = "the machine"
_OPENED: dict[str, ctypes.CDLL] = {}  # by path, and the machine
_NAMESPACES: dict[str, str] = {}  # of the objects, by path


class _Ran(ctypes.Structure):
    """`Ran` of csrc/testing/cuda_on_host/runtime/machine.h."""

    _fields_ = [
        ("kernel", ctypes.c_char_p),
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("shared_bytes", ctypes.c_uint64),
        ("read_bytes", ctypes.c_uint64),
        ("written_bytes", ctypes.c_uint64),
    ]


_RECORDED: list[list[Launch]] = []  # of each `recorded` that lasts


@ctypes.CFUNCTYPE(None, ctypes.POINTER(_Ran))
def _record(launch: ctypes._Pointer) -> None:
    ran = launch.contents
    grid, block = tuple(ran.grid), tuple(ran.block)
    for found in list(_RECORDED):
        found.append(
            Launch(
                ran.kernel.decode(), grid, block, ran.shared_bytes,
                ran.read_bytes, ran.written_bytes,
            )
        )  # fmt: skip


def load(library: str | os.PathLike, project: str | os.PathLike | None = None) -> torch.device:
    """Build a library's CUDA kernels for the host, and let tensors of the test device have them.

    library: as of torchext.load_library, or the namespace of one that is loaded.
    project: the folder with the setup.py that builds it; by default the current folder or the
    nearest one around the library, the first whose setup.py speaks of the library's namespace.

    Returns the test device, which `torchext.testing.device` brings up. Takes a build of the library
    in place, and of its kernels what changed. Raises RuntimeError where these cannot be built,
    where the library has none, and where no project is found.
    """
    path = libraries.loaded_path(library)
    namespace = record.BuildRecord.read(record.record_path(path)).namespace
    found = _built(path, projects.folder_of(path, namespace, project))
    device = test_device.device()
    open_object(found, namespace)
    return device


def load_sources(
    name: str,
    sources: Iterable[str | os.PathLike],
    *,
    include_dirs: Iterable[str | os.PathLike] = (),
    macros: Iterable[str] = (),
    build_directory: str | os.PathLike | None = None,
) -> torch.device:
    """Compile the sources of any extension of torch with its CUDA kernels on the host, and load it.

    What it registers for CUDA, by whichever way of torch's, it registers for the test device, and
    where it asks whether a tensor is on a GPU, it asks whether it is on the test device.

    name: of the shared object. sources: `.cu` files and others. include_dirs: of its own headers.
    macros: such as "-DWITH_CUDA". build_directory: by default one of torch's extension cache.

    Returns the test device. Raises RuntimeError where a file does not compile, and where it has
    what the host cannot run.
    """
    device = test_device.device()
    folder = Path(build_directory or cpp_extension._get_build_directory(name, False)).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        runtime = toolchain.load_sources(
            name, [os.path.abspath(path) for path in sources], folder,
            [os.path.abspath(path) for path in include_dirs], list(macros),
        )  # fmt: skip
    except toolchain.TranslationError as error:
        raise RuntimeError(str(error)) from None
    _OPENED.setdefault(_RUNTIME, ctypes.CDLL(str(runtime), mode=ctypes.RTLD_GLOBAL))
    return device


@contextlib.contextmanager
def schedule(
    *,
    order: int | None = None,
    most_blocks: int = 0,
    most_steps: int = 2_000_000_000,
    finds_races: bool = True,
    may_read_absent_lanes: bool = False,
    may_leave_before_barriers: bool = False,
) -> Iterator[None]:
    """How kernels run on the host while this lasts, in all threads.

    order: of warps and blocks, which an error names; None: another one for each launch, 0: their
    own.
    most_blocks: of a grid along x, for a kernel that goes over what is beyond; 0 is no bound.
    most_steps: blocks of code that the threads of a launch may go through until one of them ends,
    before their loops are taken for ones without end; to wait for others counts as 16.
    finds_races: whether accesses to shared memory that no barrier orders are errors. A kernel that
    orders them by locks of its own needs False.
    may_read_absent_lanes: whether a shuffle may read a lane that takes no part in it, which gives
    bits that mean nothing: for a kernel that does not use them.
    may_leave_before_barriers: whether threads may have left the kernel before a barrier that the
    others of their block come to, as devices from compute capability 7.0 on allow.
    """
    switches = (finds_races, may_read_absent_lanes, may_leave_before_barriers)
    _configure(-1 if order is None else order, most_blocks, most_steps, *switches)
    try:
        yield
    finally:
        _configure(-1, 0, 2_000_000_000, True, False, False)


@dataclass(frozen=True)
class Launch:
    """A launch of a kernel on the host.

    kernel: as the launch has it, with the names of its template's arguments.
    grid, block: along x, y and z. shared_bytes: of dynamic shared memory.
    read_bytes, written_bytes: of the device's memory, which its threads asked for. A byte counts as
    often as it is read or written, whatever caches would do, and a byte that an atomic operation
    changes as both.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    read_bytes: int
    written_bytes: int


@contextlib.contextmanager
def recorded() -> Iterator[list[Launch]]:
    """The launches of all threads while this lasts, in the order in which they ended; those that
    fail are not among them."""
    found: list[Launch] = []
    record = _runtime().torchext_cuda_on_host_record
    _RECORDED.append(found)
    record(_record)
    try:
        yield found
    finally:
        _RECORDED[:] = [other for other in _RECORDED if other is not found]
        if not _RECORDED:
            record(None)


def launches() -> int:
    """How many kernels were launched on the host in this process."""
    count = _runtime().torchext_cuda_on_host_launches
    count.restype = ctypes.c_uint64
    return count()


def open_object(path: str | os.PathLike, namespace: str) -> None:
    """Register the kernels of an object that `load` built, for the test device, which is loaded."""
    name = os.fspath(path)
    if name in _OPENED:
        return
    if _RUNTIME not in _OPENED:
        runtime = os.path.join(os.path.dirname(name), toolchain.RUNTIME)
        _OPENED[_RUNTIME] = ctypes.CDLL(runtime, mode=ctypes.RTLD_GLOBAL)
    found = ctypes.CDLL(name)
    error_of = getattr(found, f"torchext_library_error_{namespace}")
    error_of.restype = ctypes.c_char_p
    if error := error_of():
        raise RuntimeError(error.decode())
    _OPENED[name] = found
    _NAMESPACES[name] = namespace


def opened() -> list[tuple[str, str]]:
    """The objects that were opened here, each with its namespace."""
    return list(_NAMESPACES.items())


def stands_for_cuda(namespace: str) -> bool:
    """Whether the test device has the CUDA kernels of a library."""
    return namespace in _NAMESPACES.values()


def _built(library: str, project: Path) -> Path:
    """Build the kernels of a library and return their object."""
    failure = f"the CUDA kernels of {library} were not built"
    projects.build(project, failure, {toolchain.SWITCH: "1"})
    path = projects.built_for(library, toolchain.path_of(project, "*"))
    if path is None:
        raise RuntimeError(f"{library} has no CUDA sources: in its setup.py there is no .cu file")
    return path


def _runtime() -> ctypes.CDLL:
    if _RUNTIME not in _OPENED:
        raise RuntimeError("no kernels are loaded: call torchext.testing.cuda_on_host.load first")
    return _OPENED[_RUNTIME]


def _configure(order: int, most_blocks: int, most_steps: int, *switches: bool) -> None:
    configure = _runtime().torchext_cuda_on_host_configure
    numbers = [ctypes.c_int64, ctypes.c_uint64, ctypes.c_uint64]
    configure.argtypes = [*numbers, *(ctypes.c_int for _ in switches)]
    configure(order, most_blocks, most_steps, *switches)
