# SPDX-License-Identifier: BSD-3-Clause
"""Operators from eight threads, backward from several, and in children that fork after the import.

`python threads.py THREADS CALLS` ends with status 0 where every result is that of one thread.
"""

import multiprocessing
import sys
import threading

import torch

import torchext.ops as ops


def loss(x, weight):
    y = ops.rms_norm(ops.mul(x, x), weight)
    y = ops.softmax(ops.add(y, ops.sin(x), alpha=2), -1)
    y = ops.silu_and_mul(ops.cumsum(y, 0))
    z = ops.neg_(ops.add(ops.sigmoid(y), ops.cos(y)))
    return ops.muladd(z, y, 0.5).sum() + ops.dot(y[0], y[0]) + ops.zero_out(y).sum()


def run(values, weights):
    """The loss and the gradients of leaves of its own."""
    x, weight = values.clone().requires_grad_(), weights.clone().requires_grad_()
    result = loss(x, weight)
    return (result.detach(), *torch.autograd.grad(result, (x, weight)))


def work(values, weights, shared, expected, calls):
    x, result = shared
    for _ in range(calls):
        torch.testing.assert_close(run(values, weights), expected)
        (grad,) = torch.autograd.grad(result, x, retain_graph=True)
        torch.testing.assert_close(grad, expected[1])
        with torch.inference_mode():
            torch.testing.assert_close(loss(values, weights), expected[0])
        batched = torch.func.vmap(ops.mul)(values, values)
        torch.testing.assert_close(batched, values * values)


def in_threads(count, *arguments):
    mistakes = []

    def guarded():
        try:
            work(*arguments)
        except BaseException as error:
            mistakes.append(error)

    threads = [threading.Thread(target=guarded) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if mistakes:
        raise mistakes[0]


def child(values, weights, expected):
    """Forward only: autograd's threads do not survive a fork, and torch says so on backward."""
    with torch.no_grad():
        torch.testing.assert_close(loss(values, weights), expected[0])


def main():
    count, calls = map(int, sys.argv[1:])
    torch.manual_seed(0)
    torch.set_num_threads(1)  # OpenMP's threads do not survive a fork either
    values = torch.rand(16, 32, dtype=torch.float64) + 0.5
    weights = torch.rand(32, dtype=torch.float64) + 0.5
    x = values.clone().requires_grad_()
    shared = x, loss(x, weights)
    expected = run(values, weights)
    fork = multiprocessing.get_context("fork")
    children = [fork.Process(target=child, args=(values, weights, expected)) for _ in range(4)]
    for process in children:
        process.start()
    in_threads(count, values, weights, shared, expected, calls)
    for process in children:
        process.join()
    assert [process.exitcode for process in children] == [0] * len(children)
    print(f"{count} threads, {calls} calls each, {len(children)} children: no mistake")


if __name__ == "__main__":
    main()
