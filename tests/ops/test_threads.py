# SPDX-License-Identifier: BSD-3-Clause
"""Operators and their nodes are used from several threads at once."""

import threading

import pytest
import torch
from cases import gradients, requiring_grad
from samples import SAMPLES, tensor

THREADS = 4


def run_in_threads(work):
    """Start work(0), work(1), ... at the same moment and wait for all."""
    barrier = threading.Barrier(THREADS)

    def wait_and_work(index):
        barrier.wait()
        work(index)

    threads = [threading.Thread(target=wait_and_work, args=(index,)) for index in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("name", ["mul.Tensor", "softmax", "rms_norm", "silu_and_mul"])
def test_threads_run_forward_and_backward_at_once(name):
    sample = SAMPLES[name]
    calls = [next(iter(sample.calls((64, 128), torch.float64))) for _ in range(THREADS)]
    expected = [gradients(sample, requiring_grad(call)) for call in calls]
    compared = []

    def work(index):
        for _ in range(20):
            actual = gradients(sample, requiring_grad(calls[index]))
            torch.testing.assert_close(actual, expected[index])
            compared.append(index)

    run_in_threads(work)
    assert len(compared) == 20 * THREADS


def test_one_graph_is_walked_by_threads_at_once():
    x = tensor((64,), torch.float64).requires_grad_()
    loss = torch.ops.myns.sin(torch.ops.myns.mul(x, x)).sum()
    (expected,) = torch.autograd.grad(loss, x, retain_graph=True)
    compared = []

    def work(index):
        for _ in range(20):
            (actual,) = torch.autograd.grad(loss, x, retain_graph=True)
            torch.testing.assert_close(actual, expected)
            compared.append(index)

    run_in_threads(work)
    assert len(compared) == 20 * THREADS
