# SPDX-License-Identifier: BSD-3-Clause
"""The memory of the test device: closed to everybody but the device's own kernels."""

import ctypes
import os
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

PROGRAM = """
import ctypes, sys
sys.path[:0] = {path!r}
import torch, torchext.testing
x = torch.arange(4.0, device=torchext.testing.device()) + 1  # opened and closed by kernels
print(x.sum().item(), flush=True)
{touch}
print("survived", flush=True)
"""
# A kernel that goes on behind what it has opened.
OVERRUN = """
y = torch.zeros({}, device=x.device)
runtime = ctypes.CDLL(None)
runtime.torchext_test_device_open.argtypes = [ctypes.c_void_p]
assert runtime.torchext_test_device_open(y.data_ptr()) == 0
ctypes.memset(y.data_ptr(), 1, y.nbytes)
ctypes.memset(y.data_ptr() + y.nbytes, 1, 64)
"""
MESSAGE = "torchext: memory of the test device was touched outside of the device's own kernels"


@pytest.mark.parametrize(
    "touch",
    [
        "ctypes.string_at(x.data_ptr(), 4)",
        "ctypes.memset(x.data_ptr() + 12, 0, 4)",
        "address = x.data_ptr(); del x; ctypes.string_at(address, 4)",
        "y = x.view(2, 2)[1]; y.add_(1); ctypes.string_at(y.data_ptr(), 4)",
        OVERRUN.format(1024),
        OVERRUN.format(1000),
    ],
    ids=["read", "written", "after its end", "after a kernel", "behind a page", "behind an end"],
)
def test_who_touches_it_dies_and_is_told_why(touch, device):
    program = PROGRAM.format(path=[path or "." for path in sys.path], touch=touch)
    result = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True,
        env={**os.environ, "TORCHEXT_FALLBACK": "silent"},
    )  # fmt: skip
    assert result.returncode == -signal.SIGSEGV
    assert result.stdout == "10.0\n"
    # before it torch may warn that it finds no GPU
    assert any(line.startswith(MESSAGE) for line in result.stderr.splitlines())


def test_another_fault_is_left_to_others(device):
    program = PROGRAM.format(
        path=[path or "." for path in sys.path], touch="ctypes.string_at(8, 1)"
    )
    result = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", program],
        check=False, capture_output=True, text=True,
        env={**os.environ, "TORCHEXT_FALLBACK": "silent"},
    )  # fmt: skip
    assert result.returncode == -signal.SIGSEGV
    assert MESSAGE not in result.stderr
    assert "Fatal Python error: Segmentation fault" in result.stderr


def test_memory_that_is_not_the_devices_cannot_be_opened(device):
    library = ctypes.CDLL(None)
    buffer = ctypes.create_string_buffer(8)
    library.torchext_test_device_open.argtypes = [ctypes.c_void_p]
    assert library.torchext_test_device_open(ctypes.addressof(buffer)) == -1
    assert library.torchext_test_device_open(None) == 0


def test_released_memory_is_used_again(device):
    torch.empty(1 << 20, device=device).fill_(1)
    before = resident_bytes()
    for _ in range(200):
        torch.empty(1 << 20, device=device).fill_(1)  # 4 MiB each
    assert resident_bytes() - before < 64 << 20


def resident_bytes():
    """The memory of this process that is in use now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_pinned_memory_is_known_and_copied(device):
    x = torch.arange(6.0)
    pinned = x.pin_memory()
    assert pinned.is_pinned() and pinned[2:].is_pinned() and not x.is_pinned()
    assert torch.equal(pinned.to(device, non_blocking=True).cpu(), x)
    assert torch.empty(3, pin_memory=True).is_pinned()
    assert torch.empty(0, pin_memory=True).numel() == 0


def test_more_memory_than_there_is_is_an_error(device):
    for nbytes in (1 << 50, torch.accelerator.get_memory_info(device)[0] + 1):
        with pytest.raises(torch.OutOfMemoryError, match=f"out of memory on {device}.* {nbytes}$"):
            torch.empty(nbytes, dtype=torch.uint8, device=device)
    assert torch.ones(2, device=device).tolist() == [1, 1]


FORKS = """
import os, sys, threading
sys.path[:0] = {path!r}
import torch, torchext.testing
x = torch.{first}(1000, device=torchext.testing.device())
stop = []
def work():
    while not stop: x.{called}()
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        torch.empty(2, device='torchext').fill_(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
stop.append(1)
print("survived", flush=True)
"""


@pytest.mark.parametrize(("first", "called"), [("ones", "exp"), ("randn", "normal_")])
def test_a_child_of_a_process_with_busy_threads_runs(first, called, device):
    """Also where the first thing that was done on the device was to draw random numbers, whose
    mutex is held while others are taken."""
    path = [path or "." for path in sys.path]
    program = FORKS.format(path=path, first=first, called=called)
    result = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=120,
        env={**os.environ, "TORCHEXT_FALLBACK": "silent"},
    )  # fmt: skip
    assert result.stdout == "survived\n", result.stderr


def test_threads_open_and_close_one_tensor(device):
    x = torch.ones(64, device=device)
    wrong = []

    def work():
        for _ in range(200):
            if x.cpu().sum() != 64 or x.clone().sum().item() != 64:
                wrong.append(threading.get_ident())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_fresh_memory_holds_no_zeros(device):
    assert torch.empty(5, device=device).isnan().all()
    again = torch.ones(5, device=device)
    del again
    assert torch.empty(5, device=device).isnan().all()


def test_statistics_count_what_is_given_out(device):
    torch.accelerator.reset_peak_memory_stats(device)
    before = torch.accelerator.memory_allocated(device)
    x = torch.empty(1000, device=device)
    assert torch.accelerator.memory_allocated(device) == before + 4000
    free, total = torch.accelerator.get_memory_info(device)
    assert total - free == before + 4000
    del x
    assert torch.accelerator.memory_allocated(device) == before
    assert torch.accelerator.max_memory_allocated(device) >= before + 4000
    torch.accelerator.empty_cache()
