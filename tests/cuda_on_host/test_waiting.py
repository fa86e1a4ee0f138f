# SPDX-License-Identifier: BSD-3-Clause
"""Threads that wait for each other go on in every order; those that nobody comes for are found."""

from pathlib import Path

import pytest
import torch

from torchext.testing import cuda_on_host

SOURCE = Path(__file__).parent / "kernels" / "waiting.cu"
STEPS = 3_000_000

# Blocks, threads, a number, and the first numbers of the result.
FINISHED = {
    "last_lane": (1, 32, 0, [1]),
    "other_warp": (1, 64, 0, [1]),
    "vote_of_a_warp": (1, 64, 0, [1]),
    "vote_of_a_block": (2, 64, 0, [1]),
    "barrier_by_all": (5, 96, 0, [480]),
    "chain_of_warps": (1, 256, 0, [256]),
    "look_back": (20, 64, 0, [190, 1]),
    "turns": (1, 64, 2000, [2000]),
    "lock_of_a_lane": (2, 32, 0, [0]),
}
ENDLESS = {
    "barrier_of_a_block": 64,
    "barrier_of_a_warp": 32,
    "vote_for_nothing": 32,
    "active_for_nothing": 32,
    "shuffles": 32,
    "barrier_of_a_grid": 32,
}


def waiting(device, name, blocks, threads, n):
    return torch.ops.cuda_kernels.waiting(name, torch.empty(blocks, threads, device=device), n)


@pytest.mark.parametrize("order", [0, *range(1, 9)])
@pytest.mark.parametrize("name", FINISHED)
def test_every_thread_gets_on_at_some_time(device, name, order):
    blocks, threads, n, expected = FINISHED[name]
    with cuda_on_host.schedule(order=order):
        found = waiting(device, name, blocks, threads, n).tolist()
    assert found[: len(expected)] == expected
    if name == "lock_of_a_lane":
        assert found[2] == 64
        assert 64 <= found[1] <= 64 * 32


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("name", ENDLESS)
def test_who_waits_for_nobody_is_found(device, name, order):
    lines = SOURCE.read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if f"void {name}(" in line)
    line = 1 + next(i for i in range(start, len(lines)) if lines[i].endswith("// here"))
    with (
        cuda_on_host.schedule(order=order, most_steps=STEPS),
        pytest.raises(RuntimeError, match=f"no thread has ended for {STEPS} steps") as e,
    ):
        waiting(device, name, 2, ENDLESS[name], 0)
    place = int(str(e.value).split("waiting.cu:")[1].split(" ")[0].split("\n")[0])
    assert line - 1 <= place <= line + 1  # or the condition of its loop
