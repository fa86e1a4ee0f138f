# SPDX-License-Identifier: BSD-3-Clause
"""Operators of rows under vmap: what each example would be, by one call of the operator."""

import itertools

import pytest
import torch
from rows_with_torch import as_tuple
from torch.func import grad, jacrev, jvp, vmap
from torch.profiler import profile
from torch.testing import assert_close

# The sizes of arguments as an example has them, of several ranks.
CALLS = {
    "layer_norm": [[(5,), (5,), (5,)], [(3, 5), (5,), (1, 5)], [(2, 1, 5), (3, 5), (5,)]],
    "scaled": [[(5,), ()], [(3, 5), (3,)], [(5,), (3,)], [(2, 3, 5), (3,)], [(3, 5), (2, 1)]],
    "column_sums": [[(3, 5), (3,), (5,)], [(5,), (), (5,)], [(2, 3, 5), (3,), (3, 5)]],
    "cross_entropy": [[(5,), ()], [(3, 5), (3,)], [(2, 3, 5), (2, 3)]],
    "to_size": [[(3, 5), (5,)], [(5,), (1, 5)], [(2, 3, 5), (3, 1)]],
    "largest": [[(5,)], [(2, 3, 5)]],
    "silu_and_mul": [[(6,)], [(2, 3, 6)]],
    "quantize": [[(5,)], [(3, 5)]],
    "softmax_": [[(5,)], [(2, 3, 5)]],
}
SITUATIONS = [(name, index) for name, calls in CALLS.items() for index in range(len(calls))]


def tensors(name, sizes, batch):
    """Arguments for an operator, with a batch in front of those that are told so."""
    generator = torch.Generator().manual_seed(7)
    for place, (size, is_batched) in enumerate(zip(sizes, batch)):
        size = (4, *size) if is_batched else size
        if name == "cross_entropy" and place == 1:
            yield torch.randint(0, 5, size, generator=generator)
        else:
            yield torch.randn(size, generator=generator, dtype=torch.float64)


def of_examples(function, given, batch):
    """What is computed of each example, in a batch."""
    found = [
        as_tuple(function(*(a[i] if is_batched else a for a, is_batched in zip(given, batch))))
        for i in range(4)
    ]
    return tuple(map(torch.stack, zip(*found)))


def at(dim, batch):
    return tuple(dim if is_batched else None for is_batched in batch)


@pytest.mark.parametrize(("name", "index"), SITUATIONS)
@pytest.mark.parametrize("dim", [0, -1])
def test_values(rowstest, name, index, dim):
    sizes = CALLS[name][index]
    function = getattr(rowstest, name)
    for batch in itertools.product([True, False], repeat=len(sizes)):
        if any(batch):
            given = [*tensors(name, sizes, batch)]
            expected = of_examples(function, [a.clone() for a in given], batch)
            moved = [a.movedim(0, dim) if b else a for a, b in zip(given, batch)]
            found = as_tuple(vmap(function, at(dim, batch))(*(a.clone() for a in moved)))
            assert_close(found, expected)


WITHOUT_GRADIENTS = ("largest", "quantize", "softmax_")


@pytest.mark.parametrize(
    ("name", "index"), [s for s in SITUATIONS if s[0] not in WITHOUT_GRADIENTS]
)
def test_gradients(rowstest, name, index):
    """Of each example of a batch, of these again, and of what the batch has together."""
    sizes = CALLS[name][index]
    smooth = tuple(range(1 if name == "cross_entropy" else len(sizes)))

    def total(*given):
        return sum(r.sin().sum() for r in as_tuple(getattr(rowstest, name)(*given)))

    def of_gradients(*given):
        return sum(g.cos().sum() for g in grad(total, smooth)(*given))

    for batch in itertools.product([True, False], repeat=len(sizes)):
        if any(batch):
            given = [*tensors(name, sizes, batch)]
            once = of_examples(grad(total, smooth), given, batch)
            twice = of_examples(grad(of_gradients, smooth), given, batch)
            batched = vmap(total, at(0, batch))
            assert_close(vmap(grad(total, smooth), at(0, batch))(*given), once)
            assert_close(vmap(grad(of_gradients, smooth), at(0, batch))(*given), twice)
            summed = tuple(g if batch[i] else g.sum(0) for i, g in zip(smooth, once))
            assert_close(grad(lambda *a: batched(*a).sum(), smooth)(*given), summed)


def test_batches_in_batches(rowstest):
    x, w = torch.randn(2, 3, 4, 5), torch.randn(3, 5)
    found = vmap(vmap(rowstest.rms_norm, (0, 0)), (0, None))(x, w)
    assert_close(found, rowstest.rms_norm(x, w[:, None]))
    found = vmap(vmap(rowstest.rms_norm, (0, None)), (None, 0))(x[0], w)
    assert_close(found, torch.stack([rowstest.rms_norm(x[0], one) for one in w]))


@pytest.mark.parametrize("name", ["straight_through", "in_reverse_alone"])
def test_formulas_are_those_of_the_operator(rowstest, name):
    function = getattr(rowstest, name)
    x, w = torch.randn(4, 3, 5), torch.rand(5) + 0.5
    expected = torch.full_like(x, 1 if name == "straight_through" else 10)
    batched = vmap(function, (0, None))
    assert_close(vmap(grad(lambda x: function(x, w).sum()))(x), expected)
    assert_close(grad(lambda x: batched(x, w).sum())(x), expected)
    assert_close(jacrev(lambda x: batched(x, w).sum())(x), expected)
    own = x.clone().requires_grad_()
    assert_close(torch.autograd.grad(batched(own, w).sum(), own)[0], expected)
    if name == "straight_through":
        assert_close(jvp(lambda x: batched(x, w), (x,), (x,))[1], x)
    else:
        with pytest.raises(
            RuntimeError, match="in_reverse_alone: 'x' carries a forward-mode tangent"
        ):
            jvp(lambda x: batched(x, w), (x,), (x,))


def test_what_has_no_derivative_has_none_in_a_batch(rowstest):
    x, s = torch.randn(4, 3, 5, requires_grad=True), torch.rand(3)
    found = vmap(rowstest.without_derivative)(x)
    assert not found.requires_grad
    values, scaled = vmap(rowstest.of_eight_bits, (0, None))(x, s)
    assert not values.requires_grad
    assert scaled.requires_grad
    of_values = grad(lambda x: vmap(rowstest.of_eight_bits, (0, None))(x, s)[0].float().sum())
    assert_close(of_values(x.detach()), torch.zeros_like(x))


def test_a_number_keeps_its_rank_where_dtypes_are_promoted(rowstest):
    x, s = torch.randn(4, 5), torch.randn(4, dtype=torch.float64)
    expected = torch.stack([rowstest.scaled(a, b) for a, b in zip(x, s)])
    assert expected.dtype == torch.float32
    assert_close(vmap(rowstest.scaled)(x, s), expected)


def test_one_call_serves_a_batch(rowstest):
    x, target = torch.randn(64, 5), torch.randint(0, 5, (64,))
    with profile() as found:
        vmap(rowstest.cross_entropy)(x, target)
    names = [event.name for event in found.events() if "cross_entropy" in event.name]
    assert names.count("rowstest::cross_entropy") <= 2, names  # of the batch, and what serves it


def test_mistakes_are_those_of_a_call(rowstest):
    x, target = torch.randn(4, 5), torch.tensor([0, 1, 5, 2])
    with pytest.raises(IndexError, match="target has 5, and rows have 5 elements"):
        vmap(rowstest.cross_entropy)(x, target)
    with pytest.raises(RuntimeError, match="no dimension"):
        vmap(rowstest.softmax)(torch.randn(3))
