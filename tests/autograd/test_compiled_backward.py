# SPDX-License-Identifier: BSD-3-Clause
"""Compiled autograd: nodes that saved each kind of value give the gradients of eager.

What is captured runs as it is, which takes a twentieth of the time; slow tests compile it.
"""

import formula_calls
import inplace_calls
import pytest
import tangent_calls
import torch
from torch._dynamo import compiled_autograd
from torch._dynamo.testing import CompileCounterWithBackend
from torch._dynamo.utils import counters

SIZES = (3, 5, 8)


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    compiled_autograd.reset()
    counters.clear()
    yield
    torch._dynamo.reset()
    compiled_autograd.reset()


def captures():
    return counters["compiled_autograd"]["captures"]


def as_captured(graph):
    return graph


def by_aot_autograd(graph):
    return torch.compile(graph, backend="aot_eager")


over_compilers = pytest.mark.parametrize(
    "compiler",
    [as_captured, pytest.param(by_aot_autograd, marks=pytest.mark.slow)],
    ids=["captured", "compiled"],
)


def compiled(loss, inputs, compiler=as_captured):
    with compiled_autograd._enable(compiler):
        return torch.autograd.grad(loss, inputs, allow_unused=True)


def tensor(rows=2, seed=7):
    generator = torch.Generator().manual_seed(seed)
    numbers = torch.rand(rows, 3, dtype=torch.float64, generator=generator) + 0.5
    return numbers.requires_grad_()


def loss_of(results):
    return sum((result * result).sum() for result in results)


def assert_equal_to_eager(function, inputs, compiler=as_captured):
    expected = torch.autograd.grad(loss_of(function(*inputs)), inputs, allow_unused=True)
    actual = compiled(loss_of(function(*inputs)), inputs, compiler)
    torch.testing.assert_close(actual, expected)


def assert_all_are_equal_to_eager(calls, backend):
    """The same of several functions of tensors, each given, compiled as one graph."""
    expected, losses, inputs = [], [], []
    for function, given in calls.values():
        expected += torch.autograd.grad(loss_of(function(*given)), given, allow_unused=True)
        losses.append(loss_of(function(*given)))
        inputs += given
    actual = compiled(sum(losses), inputs, lambda graph: torch.compile(graph, backend=backend))
    names = [name for name, (_, given) in calls.items() for _ in given]
    pairs = zip(names, actual, expected, strict=True)
    wrong = [name for name, found, gradient in pairs if not is_close(found, gradient)]
    assert wrong == []


def is_close(found, expected) -> bool:
    try:
        torch.testing.assert_close(found, expected)
    except AssertionError:
        return False
    return True


def without_generator():
    return {**formula_calls.typed_arguments(), "z": None}


CALLS = {
    **{n: c for n, c in formula_calls.ALL.items() if n != "typed"},
    "typed": lambda ops, x: (ops.typed(x, **without_generator()),),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_kind_of_formula(name, agtest):
    assert_equal_to_eager(lambda x: CALLS[name](agtest, x), [tensor()])
    assert captures() == 1


def on_views(name, ops):
    def function(x, y):
        base, other = x * 1, y * 1
        inplace_calls.ALL[name].ours(ops, base[0], other[0])
        return (base,)

    return function


@pytest.mark.parametrize("name", inplace_calls.ALL)
def test_in_place_forms_of_views(name, agtest):
    assert_equal_to_eager(on_views(name, agtest), [tensor(), tensor(seed=8)])


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_some_compiled(backend, agtest):
    names = ["typed", "squares", "sine_cosine"]
    calls = {n: (lambda x, n=n: CALLS[n](agtest, x), [tensor()]) for n in names}
    calls["product_"] = (on_views("product_", agtest), [tensor(), tensor(seed=8)])
    assert_all_are_equal_to_eager(calls, backend)
    assert captures() == 1


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_all_in_one_compiled_graph(backend, agtest):
    calls = {n: (lambda x, c=c: c(agtest, x), [tensor()]) for n, c in CALLS.items()}
    views = {n: (on_views(n, agtest), [tensor(), tensor(seed=8)]) for n in inplace_calls.ALL}
    assert_all_are_equal_to_eager({**calls, **views}, backend)
    assert captures() == 1


@over_compilers
def test_attributes_of_tensors(compiler, agtest):
    def function(x):
        return (agtest.measured(x, torch.ones(4, 2), [torch.ones(3), torch.ones(2, 5).half()]),)

    for rows in (2, 2, *SIZES):  # a size that is no SymInt is part of the graph
        assert_equal_to_eager(function, [tensor(rows)], compiler)
    assert captures() == 1 + len(SIZES)


@over_compilers
def test_formulas_of_a_key_and_guarded_ones(compiler, agtest):
    x, y = tensor(), tensor(seed=8)
    for _ in range(2):
        assert_equal_to_eager(lambda x, y: (agtest.keyed(agtest.wrapped(x, y)),), [x, y], compiler)
        assert_equal_to_eager(lambda x: (agtest.wrapped(x, y.detach()),), [x], compiler)
        assert_equal_to_eager(lambda y: (agtest.wrapped(x.detach(), y),), [y], compiler)
    assert captures() == 3


# ---- symbolic sizes: one graph for all


def of_rows(function):
    """Gradients by one and the same graph for several numbers of rows."""
    for rows in SIZES:
        assert_equal_to_eager(function, [tensor(rows), tensor(rows, seed=8)])
    assert captures() == 1


def in_place(name, ops):
    def function(x, y):
        base = x * 1
        inplace_calls.ALL[name].ours(ops, base, y * 1)
        return (base,)

    return function


FIXED_SIZES = ("rows_at", "each_product", "stacked")  # the calls have tensors of two rows
ANY_SIZE = [name for name in tangent_calls.ALL if name not in FIXED_SIZES]


@pytest.mark.parametrize("name", ANY_SIZE)
def test_one_graph_serves_several_sizes(name, agtest):
    of_rows(lambda x, y: tangent_calls.ALL[name](agtest, x, y))


@over_compilers
@pytest.mark.parametrize("name", FIXED_SIZES)
def test_gradients_for_two_inputs_of_one_size(name, compiler, agtest):
    x, y = tensor(), tensor(seed=8)
    assert_equal_to_eager(lambda x, y: tangent_calls.ALL[name](agtest, x, y), [x, y], compiler)
    assert captures() == 1


@pytest.mark.parametrize("name", inplace_calls.ALL)
def test_one_graph_of_an_in_place_form_serves_several_sizes(name, agtest):
    of_rows(in_place(name, agtest))


LISTS = {
    "squares": lambda ops, x, y: (ops.squares([x, y, x], 1.5),),
    "times_present": lambda ops, x, y: (ops.times_present(x, [None, y, None]),),
    "stacked": lambda ops, x, y: (ops.stacked([x, y]),),
    "each_product": lambda ops, x, y: tuple(ops.each_product([x, y], [y, x[0]])),
    "typed_symint": lambda ops, x, y: (
        ops.typed_symint(x * y, x.shape[0], [x.shape[0], 3], [x.shape[0]], x.shape[0]),
    ),
}


@pytest.mark.parametrize("name", LISTS)
def test_one_graph_of_lists_and_symbolic_integers_serves_several_sizes(name, agtest):
    of_rows(lambda x, y: LISTS[name](agtest, x, y))


def compiled_for_several_sizes(calls, ops):
    """One capture, of which Dynamo compiles nothing more from the third size on, as of torch's."""
    counter, counts = CompileCounterWithBackend("aot_eager"), []
    for rows in (*SIZES, 6):
        given = {
            name: (lambda x, y, f=f: f(ops, x, y), [tensor(rows), tensor(rows, seed=8)])
            for name, f in calls.items()
        }
        assert_all_are_equal_to_eager(given, counter)
        counts.append(counter.frame_count)
    assert captures() == 1
    assert counts[2] == counts[3], counts


def test_one_capture_is_compiled_for_several_sizes(agtest):
    calls = {"product": tangent_calls.ALL["product"], "squares": LISTS["squares"]}
    compiled_for_several_sizes(calls | {"typed_symint": LISTS["typed_symint"]}, agtest)


@pytest.mark.slow
def test_one_capture_of_all_is_compiled_for_several_sizes(agtest):
    calls = {n: tangent_calls.ALL[n] for n in ANY_SIZE}
    calls |= {n: (lambda ops, x, y, n=n: in_place(n, ops)(x, y)) for n in inplace_calls.ALL}
    calls |= {f"{n} of a list": call for n, call in LISTS.items()}
    compiled_for_several_sizes(calls, agtest)


# ---- what a graph is keyed by


VALUES = {
    "a": (2, 3), "b": (2, 3), "c": ([1, 2], [2, 1]), "d": ([4, 5], [5, 4]), "e": (0.75, 0.5),
    "f": (True, False), "g": (1.5, 2), "h": (2.5, None), "i": ("ab", "abc"), "j": ([6], None),
    "k": ([0.5], [1.5]), "l": (torch.float64, torch.float32), "m": ([True, False], [False, True]),
    "n": ([8, 9], None), "o": ("x", None), "p": (torch.device("cpu"), None),
    "q": (torch.channels_last, None), "r": (12, None), "s": (0.125, None), "t": (True, None),
    "u": ([1, 2.5], [1, 3.5]), "v": (14, None), "w": (["a", "bc"], ["a"]), "x": (1 + 2j, 2 + 1j),
    "y": (torch.strided, None),
}  # fmt: skip


@over_compilers
@pytest.mark.parametrize("argument", VALUES)
def test_a_graph_is_not_used_for_another_value(argument, compiler, agtest):
    for value in (*VALUES[argument], VALUES[argument][0]):
        given = {**without_generator(), argument: value}
        assert_equal_to_eager(lambda x, g=given: (agtest.typed(x, **g),), [tensor()], compiler)


@over_compilers
def test_a_graph_is_not_used_for_a_missing_tensor(compiler, agtest):
    x, y = tensor(), tensor(seed=8)
    for others in ([None, y], [y, None], [y, y], [None, None]):
        assert_equal_to_eager(lambda x, o=others: (agtest.times_present(x, o),), [x], compiler)
    for third in (None, y):
        assert_equal_to_eager(lambda x, t=third: (agtest.weighted(x, y, t),), [x], compiler)
    for count in (1, 2, 3):
        assert_equal_to_eager(lambda x, n=count: (agtest.squares([x] * n, 1.5),), [x], compiler)


def test_a_value_that_cannot_be_traced_is_named(agtest):
    x = tensor()
    loss = agtest.typed(x, **formula_calls.typed_arguments()).sum()
    with pytest.raises(NotImplementedError, match="compiled autograd.*Generator"):
        compiled(loss, [x])


# ---- what eager does too


def test_a_retained_graph_runs_compiled_and_not(agtest):
    x, y = tensor(), tensor(seed=8)
    loss = loss_of(agtest.each_expo([agtest.product(x, y), agtest.expo(x)]))
    expected = torch.autograd.grad(loss, (x, y), retain_graph=True)
    with compiled_autograd._enable(lambda graph: torch.compile(graph, backend="aot_eager")):
        first = torch.autograd.grad(loss, (x, y), retain_graph=True)
        second = torch.autograd.grad(loss, (x, y), retain_graph=True)
    torch.testing.assert_close(first, expected)
    torch.testing.assert_close(second, expected)
    torch.testing.assert_close(torch.autograd.grad(loss, (x, y)), expected)


@over_compilers
@pytest.mark.parametrize("name", ["product", "squares", "each_expo"])
def test_a_graph_that_was_freed_raises_the_usual_error(name, compiler, agtest):
    x, y = tensor(), tensor(seed=8)
    calls = {**LISTS, **tangent_calls.ALL}
    loss = loss_of(calls[name](agtest, x, y))
    loss.backward(retain_graph=True)
    compiled(loss, (x, y), compiler)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        compiled(loss, (x, y), compiler)


@over_compilers
def test_a_gradient_that_is_not_implemented_raises(compiler, agtest):
    x, y = tensor(), tensor(seed=8)
    loss = agtest.defers_other(x, y).sum()
    with pytest.raises(Exception, match="'defers_other, other' is not implemented"):
        compiled(loss, (x, y), compiler)
