# SPDX-License-Identifier: BSD-3-Clause
"""torchext.testing.device() in fresh processes: one build, and two ways in which it cannot work."""

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # most start processes that import torch, some compile

WAITING = "waiting for compilers of a build that was killed"


def start(code: str) -> subprocess.Popen:
    """Start `code` in a Python of its own that imports from where this one does."""
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(path or "." for path in sys.path))
    command = [sys.executable, "-c", code]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True)


def run(code: str) -> subprocess.CompletedProcess:
    with start(code) as process:
        output, errors = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


@pytest.fixture
def shared_object(device) -> Path:
    module = importlib.import_module("torchext.testing.device")
    return module._build_directory() / "torchext_test_device.so"


def test_nothing_is_rebuilt_when_nothing_changed(shared_object):
    before = shared_object.stat().st_mtime_ns
    # A lock that a killed build left behind must not hold this one up.
    shared_object.with_name("lock").touch()
    result = run("import torchext.testing as t; print(t.device(), t.device())")
    assert result.stdout == "torchext:0 torchext:0\n", result.stderr
    assert shared_object.stat().st_mtime_ns == before


def test_the_ninja_of_the_environment_is_found(shared_object, tmp_path, monkeypatch):
    """Whether or not the environment is activated. Nothing is compiled, so that no compiler is
    needed; torch would compile again without a ccache that it has found before."""
    if ccache := shutil.which("ccache"):
        (tmp_path / "ccache").symlink_to(ccache)
    monkeypatch.setenv("PATH", str(tmp_path))
    result = run("import torchext.testing as t; print(t.device())")
    assert result.stdout == "torchext:0\n", result.stderr


def test_a_build_that_failed_is_built_the_next_time(device, tmp_path):
    """And not taken for built by torch, which keeps in mind what it has begun."""
    result = run(
        "import importlib, os, pathlib, torchext.testing\n"
        "device = importlib.import_module('torchext.testing.device')\n"
        f"device._build_directory = lambda: pathlib.Path({str(tmp_path)!r})\n"
        "os.environ['CXX'] = 'false'\n"
        "for _ in range(2):\n"
        "    try:\n"
        "        device._build()\n"
        "    except RuntimeError as error:\n"
        "        print(str(error).partition(':')[0])\n"
    )
    assert result.stdout == "the test device was not built\n" * 2, result.stderr


USES_IT = """
import os, resource, torch, torchext.testing
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + ({mebibytes} << 20),) * 2)
try:
    print((torch.ones(3, device=torchext.testing.device()) * 2).tolist(), flush=True)
except RuntimeError as error:
    print(error, flush=True)
pid = os.fork()
if pid == 0:
    os._exit(0)
print(os.waitpid(pid, 0)[1])
"""


def test_a_process_with_few_addresses(device):
    """The device takes as many as there are; without any it says so, and a fork is no crash."""
    result = run(USES_IT.format(mebibytes=6000))
    assert result.stdout == "[2.0, 2.0, 2.0]\n0\n", result.stderr
    result = run(USES_IT.format(mebibytes=800))
    assert "needs a gibibyte of addresses" in result.stdout, result.stderr
    assert result.stdout.endswith("\n0\n"), result.stderr


def test_compilers_of_a_killed_build_are_waited_for(shared_object, tmp_path):
    """They write beside their own working directory, which is where they are found by."""
    command = [sys.executable, "-c", "import time; time.sleep(600)", "-o", "events.o"]
    with (
        subprocess.Popen(command, cwd=shared_object.parent) as compiler,
        start("import torchext.testing as t; print(t.device())") as process,
    ):
        said = ""
        while WAITING not in said and (line := process.stderr.readline()):
            said += line
        compiler.kill()
        output, _ = process.communicate()
    assert WAITING in said
    assert output == "torchext:0\n"


def test_the_device_needs_no_libtorch_python(shared_object):
    assert b"libtorch_cpu.so" in shared_object.read_bytes()
    assert b"libtorch_python.so" not in shared_object.read_bytes()


@pytest.mark.parametrize(
    ("taken_by", "name"),
    [
        ("torch.utils.rename_privateuse1_backend('other')", "other"),
        (
            "library = torch.library.Library('aten', 'IMPL')\n"
            "library.impl('empty.memory_format', lambda *args, **kwargs: None, 'PrivateUse1')",
            "privateuseone",
        ),
        (
            "library = torch.library.Library('_', 'IMPL')\n"
            "library.fallback(lambda *args, **kwargs: None, 'PrivateUse1')",
            "privateuseone",
        ),
    ],
)
def test_another_backend_in_its_place_is_one_clear_error(taken_by, name, device):
    """By its name, or by its kernels or its fallback where it has kept torch's name."""
    result = run(f"import torch, torchext.testing\n{taken_by}\ntorchext.testing.device()")
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == (
        "RuntimeError: torchext.testing.device() needs PyTorch's PrivateUse1 backend, "
        f"and another backend of this process has taken it under the name {name!r}."
    )


def test_threads_that_call_it_first_wait_for_one_another(device):
    result = run(
        "import sys, threading, time, torch, torchext.testing\n"
        "module = sys.modules['torchext.testing.device']\n"
        "build, devices = module._build, []\n"
        "module._build = lambda: (time.sleep(0.2), build())[1]\n"
        "call = lambda: devices.append(torchext.testing.device())\n"
        "threads = [threading.Thread(target=call) for _ in range(4)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
        "print(len(devices), *set(devices))"
    )
    assert result.stdout.splitlines()[-1] == "4 torchext:0", result.stderr


def test_a_call_after_the_first_backward_is_a_clear_error(device):
    result = run(
        "import torch, torchext.testing\n"
        "torch.ones(1, requires_grad=True).backward()\n"
        "torchext.testing.device()"
    )
    assert result.returncode == 1
    assert "was called after the first backward of this process" in result.stderr.splitlines()[-1]
