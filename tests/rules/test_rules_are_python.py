# SPDX-License-Identifier: BSD-3-Clause
"""Random rules about optional tensors do what Python makes of their expressions.

A size whose expression comes to a tensor that is missing is refused by that tensor's name; a check
that comes to one says nothing.
"""

from __future__ import annotations

import itertools

import pytest
import random_rules
import torch
from library_build import ROOT, build_and_load

SIZES = random_rules.sizes(16)
CHECKS = random_rules.conditions(16)
CALLS = [
    {"x": torch.ones(2, 3), "f": f} | dict(zip("abc", given))
    for f in (False, True)
    for given in itertools.product(
        (None, torch.ones(2, 3), torch.ones(1)),
        (None, torch.ones(3, 2)),
        (None, torch.ones(2, 3), torch.ones(())),
    )
]


@pytest.fixture(scope="module")
def ops():
    """An operator for each expression."""
    folder = ROOT / "build" / "random" / "randomrules"
    random_rules.write(folder, SIZES, CHECKS)
    return build_and_load(folder, "randomrules_library.so")


def outcome(call):
    """What a call gives, or the type of its error."""
    try:
        return call()
    except (AttributeError, IndexError, RuntimeError) as error:
        return error


def is_missing_somewhere(arguments) -> bool:
    return any(value is None for value in arguments.values())


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("index", range(len(SIZES)))
def test_a_size(index, device, ops) -> None:
    for arguments in CALLS:
        expected = outcome(lambda: random_rules.evaluated(SIZES[index], arguments))
        found = outcome(lambda: getattr(ops, f"sized{index}")(**on(device, arguments)))
        told = f"{SIZES[index]} of {shapes(arguments)}: {found!r}, not {expected!r}"
        if isinstance(expected, tuple):
            assert not isinstance(found, Exception) and found.shape == expected, told
        else:
            assert isinstance(found, Exception), told
            assert is_missing_somewhere(arguments) or isinstance(found, IndexError), told


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("index", range(len(CHECKS)))
def test_a_check(index, device, ops) -> None:
    for arguments in CALLS:
        expected = outcome(lambda: random_rules.evaluated(CHECKS[index], arguments))
        found = outcome(lambda: getattr(ops, f"checked{index}")(**on(device, arguments)))
        told = f"{CHECKS[index]} of {shapes(arguments)}: {found!r}, not {expected!r}"
        if isinstance(expected, IndexError) and is_missing_somewhere(arguments):
            continue  # which of the two is met first is left open
        if isinstance(expected, IndexError):
            assert isinstance(found, IndexError), told
        else:
            is_refused = expected is False
            assert isinstance(found, RuntimeError) == is_refused, told
            assert not isinstance(found, IndexError), told


def on(device, arguments):
    return {k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in arguments.items()}


def shapes(arguments):
    return {k: tuple(v.shape) if isinstance(v, torch.Tensor) else v for k, v in arguments.items()}
