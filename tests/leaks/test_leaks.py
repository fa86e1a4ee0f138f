# SPDX-License-Identifier: BSD-3-Clause
"""Operators leave no memory behind; `make leaks` makes fifty times as many calls."""

import ctypes
import gc
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from memory import HAS_MALLINFO2, growth, override, settled, subjects

pytestmark = pytest.mark.skipif(not HAS_MALLINFO2, reason="glibc before 2.33")

CALLS = 2000


@pytest.fixture(autouse=True)
def quiet_process():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    gc.freeze()  # what earlier tests made is not searched again for every operator
    yield
    gc.unfreeze()
    torch.set_num_threads(threads)


def test_no_operator_of_myns_leaks():
    found = [settled(name, call, CALLS) for name, call in subjects("myns")]
    assert len(found) > 60
    assert not [one for one in found if not one.is_flat]


def test_an_override_leaks_nothing():
    assert settled("override", override, CALLS).is_flat


def test_the_fallback_and_the_test_device_leak_nothing():
    """In a process of its own: autograd's threads of the device begin with it."""
    command = [sys.executable, str(Path(__file__).with_name("memory.py"))]
    command += "--device torchext --calls 1000 --operators neg rms_norm zero_out".split()
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.splitlines()[-1].startswith("6 subjects, 1000 calls each")


def test_a_leak_of_the_smallest_block_is_seen():
    malloc = ctypes.CDLL(None).malloc
    malloc.restype = ctypes.c_void_p
    found = growth("malloc", lambda: malloc(1), CALLS)
    assert not found.is_flat
    assert found.bytes >= 16 * CALLS
    assert not settled("malloc", lambda: malloc(1), CALLS).is_flat


def test_what_stops_growing_is_no_leak():
    kept = []
    found = settled("cache", lambda: len(kept) < 2 * CALLS and kept.append(object()), CALLS)
    assert found.is_flat
    assert found.calls > CALLS


def test_an_object_of_python_that_is_kept_is_seen():
    kept = []
    found = growth("object", lambda: kept.append(object()), CALLS)
    assert not found.is_flat
    kept = [None] * (2 * CALLS)  # whose own memory does not grow
    places = iter(range(2 * CALLS))
    found = growth("object", lambda: kept.__setitem__(next(places), object()), CALLS)
    assert found.bytes > 15 * CALLS


def test_a_tensor_that_is_kept_is_seen():
    kept = []
    found = growth("kept", lambda: kept.append(torch.empty(1)), CALLS)
    assert not found.is_flat
    assert found.bytes > 64 * CALLS
