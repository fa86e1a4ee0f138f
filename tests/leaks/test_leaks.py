# SPDX-License-Identifier: BSD-3-Clause
"""Operators leave no memory behind; `make leaks` makes fifty times as many calls."""

import ctypes
import gc

import pytest
import torch
from memory import growth, subjects

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
    found = [growth(name, call, CALLS) for name, call in subjects("myns")]
    assert len(found) > 60
    # A cache that fills late looks like a leak once; a leak goes on.
    again = {name: call for name, call in subjects("myns")}
    suspects = [g.name for g in found if not g.is_flat]
    leaking = [g for name in suspects if not (g := growth(name, again[name], CALLS)).is_flat]
    assert not leaking


def test_a_leak_of_the_smallest_block_is_seen():
    malloc = ctypes.CDLL(None).malloc
    malloc.restype = ctypes.c_void_p
    found = growth("malloc", lambda: malloc(1), CALLS)
    assert not found.is_flat
    assert found.bytes >= 16 * CALLS


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
