# SPDX-License-Identifier: BSD-3-Clause
"""Kernels compute what they compute on a GPU, in whichever order their warps and blocks run."""

import os
import threading

import pytest
import torch

from torchext.testing import cuda_on_host

ORDERS = [None, 0, 1, 2, 3, 1_000_003]


@pytest.fixture(params=ORDERS, ids=lambda order: f"order {order}")
def order(request, device):
    with cuda_on_host.schedule(order=request.param):
        yield request.param


@pytest.mark.parametrize("kernel", ["block_sum", "cudaLaunchKernel", "cudaLaunchKernelEx"])
@pytest.mark.parametrize("count", [1, 31, 256, 1000])
def test_a_sum_over_a_block(run, order, kernel, count):
    x = torch.randn(count)
    torch.testing.assert_close(run(kernel, x), x.sum().expand(count), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rows", [1, 8, 21])
def test_tiles_in_two_dimensions(run, order, rows):
    x = torch.randn(rows, rows)
    assert torch.equal(run("transposed", x), x.t())


@pytest.mark.parametrize("count", [1, 65, 1000])
def test_atomics_of_the_active_lanes(run, order, count):
    x = torch.randn(count)
    assert run("positive", x)[0] == (x > 0).sum()


def test_barriers_that_count(run, order):
    x = torch.randn(128)
    assert run("positive_of_block", x)[:3].tolist() == [(x > 0).sum(), 0, 1]
    assert run("positive_of_block", x.abs() + 1)[:3].tolist() == [128, 1, 1]
    assert run("positive_of_block", -x.abs() - 1)[:3].tolist() == [0, 0, 0]


def test_a_struct_in_shared_memory_is_copied_with_what_nobody_wrote_of_it(run, order):
    x = torch.randn(1000)
    assert run("greatest", x)[0] == x.argmax()


def test_a_lambda_that_copies_what_it_uses_copies_no_shared_memory(run, order):
    x = torch.randn(32)
    assert torch.equal(run("reversed_by_lambdas", x), x.flip(0))


def test_a_thread_may_have_half_a_mebibyte_of_its_own(run, order):
    x = torch.randn(64)
    i = (119999 - torch.arange(64)) % 64
    assert torch.equal(run("much_local_memory", x), x[i])


def test_what_lanes_of_a_warp_tell_each_other(run, order):
    x = torch.randn(32)
    assert torch.equal(run("votes", x), (x > 0).float() + 4 + 8 + 16 + 32 + 64 + 128)
    x[5] = 1000
    assert torch.equal(run("votes", x), (x > 0).float() + 2 + 4 + 8 + 16 + 32 + 64 + 128)


def test_the_block_that_ends_last_reads_what_the_others_wrote(run, order):
    x = torch.randn(50)
    for _ in range(3):
        torch.testing.assert_close(run("sum_of_the_last_block", x)[0], x.sum())


def test_a_block_may_wait_for_another_one(run, order):
    x = torch.rand(20) + 1
    torch.testing.assert_close(run("one_after_the_other", x), x.cumsum(0))


def test_constant_memory(run, order):
    x = torch.randn(100)
    torch.testing.assert_close(run("scaled", x), 2 * x + 1)


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_shared_variables_of_every_kind_past_which_jumps_lead(run, order, kind):
    x = torch.randn(64)
    assert torch.equal(run("turned_around", x, kind), x.flip(0))
    assert torch.equal(run("turned_around", x, 3), torch.full_like(x, -1))


def test_dynamic_shared_memory_that_a_file_declares(run, order):
    x = torch.randn(64)
    assert torch.equal(run("turned_around_in_memory", x), x.flip(0))


@pytest.mark.parametrize(
    "kernel", ["on_line", "on_line twice", "on_line of a macro", "deduced_on_line"]
)
def test_arguments_become_what_the_kernel_takes(run, kernel):
    x = torch.randn(100)
    torch.testing.assert_close(run(kernel, x), 2 * x + 1)


def test_events_and_copies(run, order):
    x = torch.randn(100)
    assert torch.equal(run("events", x), x)


@pytest.mark.parametrize("blocks", [1, 3, 500])
def test_a_loop_over_the_grid(run, order, blocks):
    x = torch.randn(2000)
    assert torch.equal(run("negated", x, blocks), -x)


@pytest.mark.parametrize("most", [1, 2, 7])
def test_a_smaller_grid_makes_a_loop_over_it_run(run, most):
    x = torch.randn(2000)
    with cuda_on_host.schedule(most_blocks=most):
        assert torch.equal(run("negated", x, 500), -x)


def test_launches_are_counted(run):
    before = cuda_on_host.launches()
    run("negated", torch.randn(5), 1)
    assert cuda_on_host.launches() == before + 1


def test_threads_launch_one_after_the_other(run):
    x = torch.randn(500)
    found = []

    def launch():
        for _ in range(20):
            found.append(run("block_sum", x)[0])

    threads = [threading.Thread(target=launch) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 80
    torch.testing.assert_close(torch.stack(found), x.sum().expand(80), rtol=1e-4, atol=1e-4)


def test_a_child_launches_kernels_of_its_own(run):
    x = torch.randn(300)
    with pytest.raises(RuntimeError, match="kernel "):  # which asked a program for a line
        torch.ops.cuda_kernels.mistake("missing_barrier", torch.randn(64).to("torchext"))
    child = os.fork()
    if child == 0:
        is_right = torch.allclose(run("block_sum", x), x.sum().expand(300), rtol=1e-4, atol=1e-4)
        os._exit(0 if is_right else 1)
    assert os.waitpid(child, 0)[1] == 0
