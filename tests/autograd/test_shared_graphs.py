# SPDX-License-Identifier: BSD-3-Clause
"""One graph in several threads: backward at the same time, and release while another unpacks."""

import threading
from concurrent.futures import ThreadPoolExecutor

import formula_calls
import inplace_calls
import pytest
import tangent_calls
import torch

FREED = "backward through the graph a second time"
SECONDS = 120  # a deadlock fails, instead of holding up everything
ROUNDS = 60


def inputs():
    generator = torch.Generator().manual_seed(5)
    x, y = (torch.rand(2, 3, dtype=torch.float64, generator=generator) + 0.5 for _ in range(2))
    return x.requires_grad_(), y.requires_grad_()


def in_place(name):
    def call(ops, x, y):
        z = x * 1
        inplace_calls.ALL[name].ours(ops, z, y * 1)
        return (z,)

    return call


def of_one(name):
    return lambda ops, x, y: formula_calls.ALL[name](ops, x * y)


# One of each kind of node: tensors, results, lists, results of lists, values, attributes.
CALLS = {
    **{name: of_one(name) for name in ("squares", "times_present", "typed", "clash_list", "total")},
    **{
        name: tangent_calls.ALL[name]
        for name in ("product", "expo", "sine_cosine", "turned", "halves", "stacked", "times_total",
                     "each_product", "each_expo", "each_scaled", "masked_pair")
    },
    **{name: in_place(name) for name in ("product_", "root_", "decay_")},
}  # fmt: skip


def loss_of(name, ops, x, y):
    return sum((result * result).sum() for result in CALLS[name](ops, x, y))


def at_once(count, function):
    """What `count` threads return that call a function of their number at the same time."""
    start = threading.Barrier(count)

    def run(index):
        start.wait(SECONDS)
        return function(index)

    with ThreadPoolExecutor(count) as pool:
        futures = [pool.submit(run, index) for index in range(count)]
        return [future.result(timeout=SECONDS) for future in futures]


@pytest.mark.parametrize("name", CALLS)
def test_two_threads_run_one_retained_graph_many_times(name, agtest):
    x, y = inputs()
    loss = loss_of(name, agtest, x, y)
    expected = torch.autograd.grad(loss, (x, y), retain_graph=True, allow_unused=True)

    def run(index):
        wanted = (x, y) if index == 0 else (y, x)
        order = expected if index == 0 else expected[::-1]
        for _ in range(ROUNDS):
            found = torch.autograd.grad(loss, wanted, retain_graph=True, allow_unused=True)
            torch.testing.assert_close(found, order, rtol=0, atol=0)
        return True

    assert at_once(2, run) == [True, True]


@pytest.mark.parametrize("name", CALLS)
def test_passes_that_ask_for_different_gradients_do_not_disturb_each_other(name, agtest):
    x, y = inputs()
    loss = loss_of(name, agtest, x, y)
    both = torch.autograd.grad(loss, (x, y), retain_graph=True, allow_unused=True)

    def run(index):
        tensor, expected = ((x, both[0]), (y, both[1]))[index % 2]
        for _ in range(ROUNDS // 2):
            (found,) = torch.autograd.grad(loss, tensor, retain_graph=True, allow_unused=True)
            torch.testing.assert_close(found, expected, rtol=0, atol=0)
        return True

    assert all(at_once(4, run))


@pytest.mark.parametrize("name", CALLS)
def test_a_release_while_another_thread_unpacks_is_a_gradient_or_the_usual_error(name, agtest):
    x, y = inputs()
    loss = loss_of(name, agtest, x, y)
    expected = torch.autograd.grad(loss, (x, y), allow_unused=True)
    given = 0
    for _ in range(ROUNDS):
        loss = loss_of(name, agtest, x, y)

        def run(_, loss=loss):
            try:
                return torch.autograd.grad(loss, (x, y), allow_unused=True)
            except RuntimeError as error:
                assert FREED in str(error)
                return None

        found = [gradients for gradients in at_once(2, run) if gradients is not None]
        for gradients in found:
            torch.testing.assert_close(gradients, expected, rtol=0, atol=0)
        given += len(found)
    assert given


@pytest.mark.parametrize("name", CALLS)
def test_a_kept_graph_beside_one_that_is_released(name, agtest):
    """Threads that keep the graph lose it at any time to the one that does not."""
    x, y = inputs()
    expected = torch.autograd.grad(loss_of(name, agtest, x, y), (x, y), allow_unused=True)
    for _ in range(ROUNDS // 6):
        loss = loss_of(name, agtest, x, y)

        def run(index, loss=loss):
            for _ in range(8):
                try:
                    found = torch.autograd.grad(
                        loss, (x, y), retain_graph=index > 0, allow_unused=True
                    )
                except RuntimeError as error:
                    assert FREED in str(error)
                    return
                torch.testing.assert_close(found, expected, rtol=0, atol=0)

        at_once(3, run)


def test_threads_that_differentiate_twice(agtest):
    x, y = inputs()
    loss = loss_of("each_product", agtest, x, y) + loss_of("expo", agtest, x, y)
    (first,) = torch.autograd.grad(loss, x, create_graph=True)
    (expected,) = torch.autograd.grad(first.sum(), y, retain_graph=True)

    def run(_):
        for _ in range(ROUNDS):
            (again,) = torch.autograd.grad(loss, x, create_graph=True)
            (found,) = torch.autograd.grad(again.sum() + 0 * first.sum(), y, retain_graph=True)
            torch.testing.assert_close(found, expected)
        return True

    assert at_once(2, run) == [True, True]


def test_tangents_in_one_thread_do_not_reach_another(agtest):
    x, y = (t.detach() for t in inputs())

    def run(index):
        for _ in range(ROUNDS):
            if index == 0:
                _, tangent = torch.func.jvp(lambda x: agtest.product(x, y), (x,), (y,))
                torch.testing.assert_close(tangent, y * y)
            else:
                torch.testing.assert_close(agtest.product(x, y), x * y)
        return True

    assert at_once(2, run) == [True, True]
