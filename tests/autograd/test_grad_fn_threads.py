# SPDX-License-Identifier: BSD-3-Clause
"""Properties of grad_fn while threads run and free the node, and while hooks look at it."""

import gc
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

import torchext.ops

OWN = torchext.ops
FREED = "Trying to backward through the graph a second time"
SECONDS = 60  # a deadlock fails, instead of holding up everything


def tensor():
    return torch.arange(1.0, 4.0, dtype=torch.float64).requires_grad_()


def run_at_once(*functions):
    """Run functions at the same time in threads of their own; return what they return."""
    start = threading.Barrier(len(functions))

    def run(function):
        start.wait(SECONDS)
        return function()

    pool = ThreadPoolExecutor(len(functions))
    futures = [pool.submit(run, function) for function in functions]
    found = [future.result(timeout=SECONDS) for future in futures]
    pool.shutdown()
    return found


def read_until_freed(node, name, expected):
    """Read a property until backward frees it; return how often it was there."""
    count = 0
    while True:
        try:
            value = getattr(node, name)
        except RuntimeError as error:
            assert FREED in str(error)
            return count
        for found in value if isinstance(value, tuple) else (value,):
            assert torch.equal(found, expected)
        count += 1


@pytest.mark.parametrize("hooked", [False, True])
@pytest.mark.parametrize("operator", ["product", "squares"])
def test_a_property_is_read_while_backward_frees_it(operator, hooked, agtest):
    def identity(value):
        return value

    for _ in range(50):
        x = tensor()
        if hooked:
            with torch.autograd.graph.saved_tensors_hooks(identity, identity):
                result = agtest.product(x, x) if operator == "product" else agtest.squares([x], 1.0)
        else:
            result = agtest.product(x, x) if operator == "product" else agtest.squares([x], 1.0)
        name = "_saved_self" if operator == "product" else "_saved_tensors"
        node, loss = result.grad_fn, result.sum()
        run_at_once(
            loss.backward,
            lambda: read_until_freed(node, name, x.detach()),
            lambda: read_until_freed(node, name, x.detach()),
        )
        assert x.grad is not None


def test_threads_run_a_retained_graph_and_read_it():
    x, y = tensor(), tensor()
    result = OWN.mul(OWN.sin(x), y)
    node, loss = result.grad_fn, result.sum()

    def backward():
        return [torch.autograd.grad(loss, x, retain_graph=True)[0] for _ in range(30)]

    def read():
        return [node._saved_other for _ in range(200)] + list(node._raw_saved_other for _ in "ab")

    first, second, values = run_at_once(backward, backward, read)
    expected = torch.cos(x.detach()) * y.detach()
    assert all(torch.allclose(grad, expected) for grad in first + second)
    assert all(value is y for value in values[:-2])


def test_a_reader_waits_for_a_hook_that_waits_for_python():
    x, entered = tensor(), threading.Event()

    def unpack(value):
        entered.set()
        time.sleep(0.2)  # gives up Python's lock, while the node holds its own
        return value

    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        result = OWN.sin(x)
    node = result.grad_fn

    def read():
        assert entered.wait(SECONDS)
        return node._saved_self

    loss = result.sum()
    _, value = run_at_once(lambda: loss.backward(retain_graph=True), read)
    assert torch.equal(value, x)


def looking_at_its_node(function, *arguments):
    """A node whose hook reads both of the node's saved tensors, and how often the hook ran."""
    nodes, calls = [], []

    def unpack(value):
        calls.append(value)
        if len(calls) == 1:
            assert nodes[0]._saved_self is not None
            assert nodes[0]._saved_other is not None
        return value

    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        result = function(*arguments)
    nodes.append(result.grad_fn)
    return result, calls


@pytest.mark.parametrize("function", [torch.mul, OWN.mul], ids=["torch", "own"])
def test_a_hook_may_look_at_the_node_that_it_unpacks_for(function):
    result, calls = looking_at_its_node(function, tensor(), tensor())
    node, loss = result.grad_fn, result.sum()
    run_at_once(lambda: node._saved_self)
    assert len(calls) == 3
    result, calls = looking_at_its_node(function, tensor(), tensor())
    loss = result.sum()
    run_at_once(loss.backward)
    assert len(calls) == 4


def test_a_mode_may_look_at_the_node_that_runs():
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Looks(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            node = torch._C._current_autograd_node()
            if node is not None and node.name() == "SinBackward0":
                seen.append(node._saved_self)
            return func(*args, **(kwargs or {}))

    x = tensor()
    result = OWN.sin(x).sum()

    def backward():
        with Looks():
            result.backward()

    run_at_once(backward)
    assert seen and all(value is x for value in seen)


@pytest.mark.parametrize("function", [torch.mul, OWN.mul], ids=["torch", "own"])
@pytest.mark.parametrize("on_a_thread", [False, True])
def test_a_hook_that_is_read_may_run_the_node(function, on_a_thread):
    x, y = tensor(), tensor()
    found = []

    def backward():
        found.append(torch.autograd.grad(result.sum(), x, retain_graph=True)[0])

    def unpack(value):
        if not found:
            found.append(None)
            run_at_once(backward) if on_a_thread else backward()
        return value

    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        result = function(x, y)
    (value,) = run_at_once(lambda: result.grad_fn._saved_other)
    assert torch.equal(value, y) and torch.equal(found[1], y)


def test_a_hook_that_is_read_may_free_the_node():
    """What is read stays until it is read; nothing can be read afterwards."""
    x = tensor()
    state = []

    def unpack(value):
        if not state:
            state.append("reading")
            state.append(torch.autograd.grad(result.sum(), x)[0])
        return value

    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        result = OWN.sin(x)
    (value,) = run_at_once(lambda: result.grad_fn._saved_self)
    assert torch.equal(value, x) and torch.equal(state[1], x.cos())
    with pytest.raises(RuntimeError, match=FREED):
        _ = result.grad_fn._saved_self
    with pytest.raises(RuntimeError, match=FREED):
        result.sum().backward()


def test_what_is_packed_may_look_at_the_node_at_its_end():
    """Which frees it without its mutex."""
    x = tensor()
    seen, freed = [], []

    class Packed:
        def __init__(self, value):
            self.value = value

        def __del__(self):
            try:
                seen.append(result.grad_fn._saved_self)
            except RuntimeError as error:
                seen.append(str(error))

    def unpack(packed):
        if not freed:
            freed.append(True)
            torch.autograd.grad(result.sum(), x)
        return packed.value

    with torch.autograd.graph.saved_tensors_hooks(Packed, unpack):
        result = OWN.sin(x)
    (value,) = run_at_once(lambda: result.grad_fn._saved_self)
    gc.collect()
    assert torch.equal(value, x)
    assert len(seen) == 1 and FREED in seen[0]


def test_what_is_to_be_freed_when_it_is_read_cannot_be_run_again():
    x, inside, done = tensor(), threading.Event(), threading.Event()
    calls = []

    def unpack(value):
        calls.append(value)
        if len(calls) == 1:
            inside.set()
            assert done.wait(SECONDS)
        return value

    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        result = OWN.sin(x)

    def backwards():
        assert inside.wait(SECONDS)
        torch.autograd.grad(result.sum(), x)
        try:
            with pytest.raises(RuntimeError, match=FREED):
                torch.autograd.grad(result.sum(), x)
        finally:
            done.set()

    value, _ = run_at_once(lambda: result.grad_fn._saved_self, backwards)
    assert torch.equal(value, x)


@pytest.mark.parametrize("function", [torch.sin, OWN.sin], ids=["torch", "own"])
def test_a_hook_of_the_node_may_read_what_is_freed_meanwhile(function):
    x, steps = tensor(), []

    def unpack(value):
        if steps == ["outer"]:
            steps.append("inner")
            torch.autograd.grad(losses.pop(), x)
        return value

    def read(grads):
        if not steps:
            steps.append("outer")
            assert torch.equal(result.grad_fn._saved_self, x)

    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        result = function(x)
    losses = [result.sum() for _ in range(3)]
    result.grad_fn.register_prehook(read)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=FREED):
            torch.autograd.grad(losses.pop(), x, retain_graph=True)
    assert steps == ["outer", "inner"]


def test_hooks_may_look_at_each_others_nodes():
    x, nodes, depth = tensor(), [], [0]

    def unpack(value):
        depth[0] += 1
        if depth[0] < 4:
            for node in nodes:
                assert node._saved_self is not None
        return value

    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        results = [OWN.sin(x), OWN.cos(x)]
    nodes += [result.grad_fn for result in results]
    (value,) = run_at_once(lambda: nodes[0]._saved_self)
    assert torch.equal(value, x)
