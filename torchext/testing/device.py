# SPDX-License-Identifier: BSD-3-Clause
"""The PrivateUse1 test device, named "torchext": built, loaded and named on first use.

Reads csrc/testing, beside the package in a checkout, inside it when installed; writes to
build/testing of the checkout, or to torch's extension cache. One build a torch version, kept
until a source changes.
"""

import contextlib
import ctypes
import functools
import os
import shlex
import sys
import threading
import types
from collections.abc import Iterator
from pathlib import Path

import torch
from torch.utils import cpp_extension

from .. import fallback
from ..runtime import runtime
from ..toolchain import csrc, environment
from ..toolchain.one_build import one_build

NAME = "torchext"
_LIBRARY = "torchext_test_device"
_loading = threading.Lock()

_CFLAGS = ["-O1", "-fvisibility=hidden"]
# --as-needed drops libtorch_python, which cpp_extension always names.
_LDFLAGS = ["-Wl,--as-needed", "-Wl,-z,defs", "-Wl,-z,nodelete"]


def device() -> torch.device:
    """Return the first of the two test devices; call it before the first backward of the process.

    On its first backward, autograd starts a thread for each device there is: a later one gets none.
    The first call compiles the device, once for each torch and Python, names the process's
    PrivateUse1 backend "torchext", and enables the CPU fallback for it.

    Raises RuntimeError where another backend is PrivateUse1, where the device cannot be compiled
    and after the first backward, and ImportError where torchext does not fit the installed torch.
    """
    with _loading:
        library = load()
    _check_autograd_thread(library)
    return torch.device(NAME, 0)


@functools.cache
def load() -> ctypes.CDLL:
    """Build, load and name the device, once in a process, and return its library. No backward is
    run: the process may fork, and each that it forks may use the device."""
    runtime()  # what does not fit this torch is found before anything is registered
    _check_not_taken()
    path = _build()
    # Global, so that a test's kernel finds torchext_test_device_current with dlsym.
    library = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    torch.utils.rename_privateuse1_backend(NAME)
    torch._register_device_module(NAME, _device_module(library))
    torch.utils.generate_methods_for_privateuse1_backend()
    # What has no kernel of the device's own runs on the CPU.
    fallback.enable(NAME)
    return library


@contextlib.contextmanager
def more_addresses(nbytes: int = 1 << 39) -> Iterator[None]:
    """Let tensors have more bytes than the machine, for those of which few are ever written."""
    give_out = load().torchext_test_device_addresses
    give_out.argtypes = [ctypes.c_size_t]
    give_out(nbytes)
    try:
        yield
    finally:
        give_out(0)


@functools.cache
def _check_autograd_thread(library: ctypes.CDLL) -> None:
    """Say now what autograd would report as an internal error on some later backward."""
    library.torchext_test_device_backward.restype = ctypes.c_char_p
    error = library.torchext_test_device_backward(0)
    if error is not None and b"device_ready_queues_" not in error:
        raise RuntimeError(f"the test device does not work: {error.decode(errors='replace')}")
    if error is not None:
        raise RuntimeError(
            "torchext.testing.device() was called after the first backward of this process, when "
            "autograd had started its device threads already; call it earlier."
        ) from RuntimeError(error.decode(errors="replace"))


def _check_not_taken() -> None:
    """Refuse where another backend already is PrivateUse1: a process has only one."""
    name = torch._C._get_privateuse1_backend_name()
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    is_used = has_kernel("aten::empty.memory_format", "PrivateUse1")
    if is_used or _has_another_fallback() or name not in ("privateuseone", NAME):
        raise RuntimeError(
            "torchext.testing.device() needs PyTorch's PrivateUse1 backend, "
            f"and another backend of this process has taken it under the name {name!r}."
        )


def _has_another_fallback() -> bool:
    """Whether another backend has said what becomes of operators without a kernel."""
    try:
        fallback.enable("privateuse1")
    except RuntimeError:
        return True
    fallback.disable("privateuse1")
    return False


def _build() -> str:
    """Compile and load csrc/testing; return the path of the shared object."""
    source = str(csrc.folder("testing") / "all.cpp")
    directory = _build_directory()
    environment.put_ninja_on_path()
    with one_build(str(directory / "torchext.lock"), str(directory)):
        # cpp_extension's own, for which it waits for ever: of a build that was killed
        (directory / "lock").unlink(missing_ok=True)
        try:
            return cpp_extension.load(
                _LIBRARY,
                [source],
                extra_cflags=[*_CFLAGS, *_flags("CXXFLAGS")],
                extra_include_paths=[str(csrc.folder("include"))],
                # load() appends to the list that it is given.
                extra_ldflags=[*_LDFLAGS, *_flags("LDFLAGS")],
                build_directory=str(directory),
                is_python_module=False,
            )
        except Exception as error:
            raise RuntimeError(f"the test device was not built: {error}") from error
        finally:
            # or else it takes what it did not build for built, the next time
            cpp_extension.JIT_EXTENSION_VERSIONER.entries.pop(_LIBRARY, None)


def _flags(variable: str) -> list[str]:
    """Return the user's own flags, as setuptools takes them and cpp_extension.load does not."""
    return shlex.split(os.environ.get(variable, ""))


def _build_directory() -> Path:
    """Return a directory of this torch and Python alone: their binaries do not mix."""
    checkout = Path(__file__).resolve().parents[2]
    if csrc.folder("testing").parent == checkout / "csrc":
        root = checkout / "build" / "testing"
    else:
        cache = os.environ.get("TORCH_EXTENSIONS_DIR") or cpp_extension.get_default_build_root()
        root = Path(cache) / "torchext_testing"
    return root / f"torch-{torch.__version__}-{sys.implementation.cache_tag}"


def _device_module(library: ctypes.CDLL) -> types.ModuleType:
    """Return torch.torchext: what torch asks a backend's module for."""

    def index_of(device: int | str | torch.device | None) -> int:
        if isinstance(device, int):
            return device
        index = None
        if device is not None:
            given = torch.device(device)
            if given.type != NAME:
                raise ValueError(f"expected a device of type {NAME!r}, not {str(given)!r}")
            index = given.index
        return library.torchext_test_device_current() if index is None else index

    def exchange(device: int | str | torch.device) -> int:
        index = index_of(device)
        previous = library.torchext_test_device_exchange(index)
        if previous < 0:
            raise RuntimeError(f"no test device has index {index}")
        return previous

    def set_device(device: int | str | torch.device) -> None:
        exchange(device)

    @contextlib.contextmanager
    def device_context(device: int | str | torch.device) -> Iterator[None]:
        previous = exchange(device)
        try:
            yield
        finally:
            exchange(previous)

    module = types.ModuleType(f"torch.{NAME}", "The test device of torchext.")
    module.is_available = lambda: True
    module.is_initialized = lambda: True
    module._initialized = True  # torch.utils.checkpoint asks before it saves the generator
    # Without it torch 2.11 takes the device for one that nobody has used yet.
    module._lazy_init = lambda: None
    module.device_count = library.torchext_test_device_count
    module.current_device = library.torchext_test_device_current
    module.set_device = set_device
    module.device = device_context
    module.synchronize = lambda device=None: torch.accelerator.synchronize(index_of(device))
    module.current_stream = lambda device=None: torch.accelerator.current_stream(index_of(device))
    # torch.autocast asks for it, and torch.utils.checkpoint for torch.autocast
    module.get_amp_supported_dtype = lambda: [torch.float16, torch.bfloat16]
    _add_random(module, library, index_of)
    return module


def _add_random(module: types.ModuleType, library: ctypes.CDLL, index_of) -> None:
    """Give the module what torch.random and torch.utils.checkpoint ask for."""
    library.torchext_test_device_seed.argtypes = [ctypes.c_int, ctypes.c_uint64]
    library.torchext_test_device_rng_state_size.restype = ctypes.c_int64
    for function in (
        library.torchext_test_device_get_rng_state, library.torchext_test_device_set_rng_state
    ):  # fmt: skip
        function.argtypes = [ctypes.c_int, ctypes.c_void_p]
    size = library.torchext_test_device_rng_state_size()

    def check(status: int, device) -> None:
        if status < 0:
            raise RuntimeError(
                f"no test device is {device!r}, or this is no state of its generator"
            )

    def manual_seed(seed: int, device=None) -> None:
        # as torch does, which takes negative seeds
        check(library.torchext_test_device_seed(index_of(device), int(seed) % 2**64), device)

    def manual_seed_all(seed: int) -> None:
        for index in range(library.torchext_test_device_count()):
            manual_seed(seed, index)

    def get_rng_state(device=None) -> torch.Tensor:
        # on the CPU, whatever the default device is
        state = torch.empty(size, dtype=torch.uint8, device="cpu")
        status = library.torchext_test_device_get_rng_state(index_of(device), state.data_ptr())
        check(status, device)
        return state

    def set_rng_state(state: torch.Tensor, device=None) -> None:
        state = state.cpu().contiguous()
        if state.dtype != torch.uint8 or state.numel() != size:
            raise RuntimeError(
                "a state of the test device's generator is what get_rng_state returns"
            )
        status = library.torchext_test_device_set_rng_state(index_of(device), state.data_ptr())
        check(status, device)

    module._is_in_bad_fork = lambda: False
    module.manual_seed = manual_seed
    module.manual_seed_all = manual_seed_all
    module.get_rng_state = get_rng_state
    module.set_rng_state = set_rng_state
