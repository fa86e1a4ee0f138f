# SPDX-License-Identifier: BSD-3-Clause
"""What generated code puts around a PrivateUse1 kernel: device guard, same-device check."""

import importlib
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

SOURCES = Path(__file__).parent / "guard_ops"


@pytest.fixture(scope="module")
def guard_ops(device):
    """The operators of guard_ops/, built by the public path and kept from run to run."""
    import torchext

    device_module = importlib.import_module("torchext.testing.device")
    folder = device_module._build_directory() / "guard_ops"
    # copytree keeps modification times, so that ninja sees what is unchanged.
    shutil.copytree(SOURCES, folder, dirs_exist_ok=True)
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(path or "." for path in sys.path))
    command = [sys.executable, "setup.py", "build_ext", "--inplace"]
    result = subprocess.run(
        command, check=False, cwd=folder, env=environment, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return torchext.load_library(folder / "guard_ops_library.so")


@pytest.mark.parametrize("index", [0, 1])
def test_a_kernel_runs_with_its_tensors_device_current(index, guard_ops, device):
    x = torch.ones(1, device=torch.device(device.type, index))
    for current in (0, 1):
        with torch.torchext.device(current):
            assert guard_ops.current_device(x) == index
            assert torch.torchext.current_device() == current


@pytest.mark.parametrize("given", ["y", "ys", "xs"])
def test_the_guard_is_that_of_the_first_tensor_that_is_there(given, guard_ops, second_device):
    x = torch.ones(1, device=second_device)
    tensors = {"y": None, "ys": [None], "xs": []}
    tensors[given] = x if given == "y" else [x]
    assert torch.torchext.current_device() == 0
    assert guard_ops.current_device_of_first(**tensors) == second_device.index


def test_the_guard_is_the_calling_threads(guard_ops, second_device):
    x = torch.ones(1, device=second_device)
    seen = []

    def call():
        seen.extend([guard_ops.current_device(x), torch.torchext.current_device()])

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    assert seen == [1, 0]


def test_a_kernel_that_throws_leaves_the_current_device_alone(guard_ops, second_device):
    with pytest.raises(RuntimeError, match="size of tensor"):
        guard_ops.add_pair(torch.ones(2, device=second_device), torch.ones(3, device=second_device))
    assert torch.torchext.current_device() == 0


@pytest.mark.parametrize("index", [0, 1])
def test_tensors_of_one_device_are_accepted(index, guard_ops, device):
    x = torch.ones(2, device=torch.device(device.type, index))
    result = guard_ops.add_pair(x, x)
    assert (result.device, result.tolist()) == (x.device, [2, 2])


@pytest.mark.parametrize("elsewhere", ["torchext:1", "cpu"])
def test_tensors_of_two_devices_name_operator_and_argument(elsewhere, guard_ops, device):
    x = torch.ones(2, device=device)
    with pytest.raises(RuntimeError, match=r"guard_ops::add_pair: .*'other' is on"):
        guard_ops.add_pair(x, torch.ones(2, device=elsewhere))


@pytest.mark.parametrize(("written", "read"), [("cpu", "meta"), ("meta", "cpu")])
def test_what_only_writes_does_not_pass_for_done_on_meta(written, read, guard_ops):
    """As its kernels, its generated Meta kernel takes tensors of one device: torch calls it for a
    tensor on the CPU beside one on Meta, and it would leave that as it was."""
    x = torch.ones(2, device=written)
    with pytest.raises(RuntimeError, match="guard_ops::assign_: .*'y' is on"):
        guard_ops.assign_(x, torch.zeros(2, device=read))
    assert guard_ops.assign_(torch.ones(2), torch.zeros(2)).tolist() == [0, 0]
    assert guard_ops.assign_(torch.ones(2, device="meta")).is_meta
