# SPDX-License-Identifier: BSD-3-Clause
"""What a kernel does wrong is an error that names kernel, block, thread and line."""

import re
from pathlib import Path

import pytest
import torch

from torchext.testing import cuda_on_host

SOURCE = Path(__file__).parent / "kernels" / "mistakes.cu"
STEPS = 20_000_000

# The kernel, and what is said of it.
OF_A_THREAD = {
    "missing_barrier": "reads shared memory that",
    "barrier_missing_before_reuse": "shared memory that thread .* with no barrier between the two",
    "missing_warp_barrier": "reads shared memory that",
    "written_by_two": "writes shared memory that thread .* wrote another value to at .*mistakes.cu",
    "divergent_barrier": r"waits at __syncthreads\(\), and 24 of the block's 64 threads have left",
    "different_barriers": r"waits at __syncthreads\(\) while thread \(0, 0, 0\) waits at another",
    "shuffle_from_nobody": r"__shfl_down_sync\(\) reads lane \d+, which takes no part in it: the "
    "lanes that do are 0-15",
    "mask_of_others": r"calls __shfl_xor_sync\(\) with a mask without its own lane",
    "lanes_that_do_not_come": r"waits at __syncwarp\(\) for the lanes 0-31, of which 16-31 wait",
    "write_behind_the_end": "writes 4 bytes .* behind the end of an allocation of 256 bytes",
    "read_before_the_begin": "reads 4 bytes 4 before the begin of an allocation of 256 bytes",
    "shared_out_of_bounds": "indexes an array out of its bounds, with 64",
    "dynamic_shared_out_of_bounds": "writes 4 bytes of shared memory out of bounds",
    "shared_never_written": "reads shared memory that no thread has written to yet",
    "misaligned": "not aligned to 16 bytes",
    "local_out_of_bounds": "indexes an array out of its bounds, with 4",
    "null_pointer": "reads 4 bytes through a null pointer",
    "memory_of_the_host": "reads 4 bytes of memory that is not the device's",
    "endless_loop": f"goes on, and no thread has ended for {STEPS} steps",
    "endless_loop_without_memory": f"goes on, and no thread has ended for {STEPS} steps",
    "endless_while_without_code": f"goes on, and no thread has ended for {STEPS} steps",
    "endless_for_without_code": f"goes on, and no thread has ended for {STEPS} steps",
    "endless_goto_without_code": f"goes on, and no thread has ended for {STEPS} steps",
    "endless_wait_without_code": f"goes on, and no thread has ended for {STEPS} steps",
    "endless_recursion": "calls functions without end: its stack is used up",
    "divides_by_zero": "divides an integer by zero",
    "second_written_by_two": "writes shared memory that thread .* wrote another value to",
    "far_beyond_a_variable": "reads 4 bytes of shared memory out of bounds",
    "different_shuffles": r"waits at __shfl_(up|down)_sync\(\) for the lanes 0-31",
    "misaligned_load": "not aligned to 16 bytes",
    "number_of_the_host": "reads 4 bytes of memory that is not the device's",
    "reads_across_the_end": "reads 4 bytes across the end of an allocation",
    "failed_assertion": "an assertion failed: threadIdx.x < 33",
    "failed_kernel_assertion": "an assertion failed: threadIdx.x < 33",
    "traps": r"calls __trap\(\)",
    "has_assembly": "has inline PTX, which cannot run on the host",
}
OF_A_LAUNCH = {
    "no_blocks": r"a launch of \(0, 1, 1\) blocks of \(64, 1, 1\) threads runs nothing",
    "too_many_threads": r"a block has at most 1024 threads, .* not \(2048, 1, 1\)",
    "too_many_in_z": r"a block has at most 1024 threads, .* not \(1, 1, 128\)",
    "too_large_a_grid": r"at most \(2147483647, 65535, 65535\) blocks, not \(1, 70000, 1\)",
    "too_much_shared_memory": "at most 232448 bytes of shared memory, not 307200",
    "much_shared_memory": "need cudaFuncSetAttribute",
}


def line_of(name: str) -> int:
    """Where the comment `here` stands in a kernel, or behind a launch."""
    lines = SOURCE.read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if re.search(rf'(void|== ")\W*{name}\b', line))
    if name == "far_beyond_a_variable":
        start = next(i for i, line in enumerate(lines) if "element(" in line)
    if name == "endless_recursion":
        start = next(i for i, line in enumerate(lines) if "recursive(" in line)
    return 1 + next(i for i in range(start, len(lines)) if lines[i].endswith("// here"))


@pytest.mark.parametrize("order", [None, 0, 7])
@pytest.mark.parametrize("name", OF_A_THREAD)
def test_a_mistake_of_a_kernel_is_an_error_that_says_where(device, name, order):
    x = torch.randn(64).to(device)
    with (
        cuda_on_host.schedule(order=order, most_steps=STEPS),
        pytest.raises(RuntimeError, match=OF_A_THREAD[name]) as caught,
    ):
        torch.ops.cuda_kernels.mistake(name, x)
    message = str(caught.value).splitlines()[0]
    assert re.match(r"kernel \S+, block \(\d, 0, 0\), thread \(\d+, 0, 0\): ", message)
    places = [int(line) for line in re.findall(r"mistakes\.cu:(\d+)", message)]
    first = line_of(name)
    # of two accesses without an order, the one that came second in this run is the one that fails
    assert first in places or name == "barrier_missing_before_reuse" and first + 2 in places
    assert ("in order" in message) == (order != 0)


@pytest.mark.parametrize("name", OF_A_LAUNCH)
def test_a_launch_that_no_device_takes_is_an_error(device, name):
    with pytest.raises(RuntimeError, match=OF_A_LAUNCH[name]) as caught:
        torch.ops.cuda_kernels.mistake(name, torch.randn(64).to(device))
    assert f"mistakes.cu:{line_of(name)}: " in str(caught.value)


def test_a_cooperative_launch_has_no_more_blocks_than_run_at_once(device):
    expected = "at most 264 blocks of 1024 threads, which run at once, not 300"
    with pytest.raises(RuntimeError, match=expected):
        torch.ops.cuda_kernels.mistake("more blocks than run at once", torch.randn(64).to(device))


@pytest.mark.parametrize("order", [0, 1, 2])
def test_threads_may_leave_before_a_barrier_where_that_is_said(device, order):
    x = torch.randn(64)
    with (
        cuda_on_host.schedule(order=order),
        pytest.raises(RuntimeError, match="24 of the block's 64 threads have left"),
    ):
        torch.ops.cuda_kernels.mistake("divergent_barrier", x.to(device))
    with cuda_on_host.schedule(order=order, may_leave_before_barriers=True):
        found = torch.ops.cuda_kernels.mistake("divergent_barrier", x.to(device))
    assert torch.equal(found.cpu()[:40], x[:40])


def test_more_shared_memory_than_48_kib_is_there_when_the_kernel_was_given_it(device):
    x = torch.randn(64)
    found = torch.ops.cuda_kernels.mistake("as much as was asked for", x.to(device), 100 << 10)
    assert torch.equal(found.cpu(), x)


@pytest.mark.parametrize("order", [0, *range(1, 30)])
def test_who_waits_for_lanes_that_end_goes_on(device, order):
    x = torch.randn(32)
    with cuda_on_host.schedule(order=order):
        found = torch.ops.cuda_kernels.mistake("masks that overlap", x.to(device))
    assert torch.equal(found.cpu(), x)


def test_a_kernel_that_throws_is_an_error(device):
    with pytest.raises(RuntimeError, match="throws, which no kernel can: never"):
        torch.ops.cuda_kernels.mistake("throws", torch.randn(64).to(device))


def test_a_launch_on_the_default_stream_is_an_error_where_torch_is_on_another(device):
    x = torch.randn(64).to(device)
    torch.ops.cuda_kernels.mistake("the_default_stream", x)
    with torch.Stream(device=device), pytest.raises(RuntimeError, match="on the default stream"):
        torch.ops.cuda_kernels.mistake("the_default_stream", x)


def test_the_device_goes_on_after_errors(run):
    x = torch.randn(300)
    for name in ("missing_barrier", "endless_recursion", "throws", "divergent_barrier"):
        with pytest.raises(RuntimeError, match="kernel "):
            torch.ops.cuda_kernels.mistake(name, torch.randn(64).to("torchext"))
        torch.testing.assert_close(run("block_sum", x), x.sum().expand(300))


def test_a_count_without_an_atomic_operation_is_less_in_some_order(device):
    x = torch.randn(64).to(device)
    counts = set()
    for order in range(20):
        with cuda_on_host.schedule(order=order):
            found = torch.ops.cuda_kernels.mistake("counts without atomics", x)
        counts.add(int(found[0]))
    assert max(counts) == 128
    assert min(counts) < 128
