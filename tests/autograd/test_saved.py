# SPDX-License-Identifier: BSD-3-Clause
"""What a node keeps for backward: only what a needed gradient uses, and only until it has run."""

import gc
import weakref

import formula_calls
import pytest
import torch


def tensor(requires_grad=True):
    return torch.ones(2, 3, dtype=torch.float64, requires_grad=requires_grad)


def saved_by(call):
    """The tensors that are saved while `call` runs."""
    saved = []

    def pack(tensor):
        saved.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = call()
    del result
    return saved


@pytest.mark.parametrize(("first", "second", "count"), [(1, 1, 2), (1, 0, 1), (0, 1, 1), (0, 0, 0)])
def test_a_tensor_is_saved_for_the_other_ones_gradient(first, second, count, agtest):
    x, y = tensor(bool(first)), tensor(bool(second))
    saved = saved_by(lambda: agtest.product(x, y))
    assert len(saved) == count
    if (first, second) == (1, 0):
        assert saved[0].data_ptr() == y.data_ptr()
    if (first, second) == (0, 1):
        assert saved[0].data_ptr() == x.data_ptr()


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("total", 0),
        ("as_dtype", 0),
        ("halves", 0),
        ("product (Scalar)", 0),
        ("sum_difference", 0),
        ("value_and_index", 0),
        ("typed", 0),
        ("scaled_or_not", 0),
        ("rows_at", 1),
        ("expo", 1),
        ("sine_cosine", 2),
        ("squares", 3),
        ("clash_list", 3),
    ],
)
def test_only_what_formulas_use_is_saved(name, count, agtest):
    x = tensor()
    assert len(saved_by(lambda: formula_calls.ALL[name](agtest, x))) == count


@pytest.mark.parametrize("name", formula_calls.ALL)
def test_nothing_is_saved_where_nothing_is_recorded(name, agtest):
    assert saved_by(lambda: formula_calls.ALL[name](agtest, tensor(False))) == []
    with torch.no_grad():
        assert saved_by(lambda: formula_calls.ALL[name](agtest, tensor())) == []


@pytest.mark.parametrize(
    "name", ["product", "expo", "sine_cosine", "squares", "times_total", "times_present", "clash"]
)
def test_a_second_backward_raises_the_usual_error(name, agtest):
    x = tensor()
    result = sum(r.sum() for r in formula_calls.ALL[name](agtest, x))
    result.backward(retain_graph=True)
    first = x.grad.clone()
    result.backward()
    assert torch.equal(x.grad, 2 * first)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        result.backward()


@pytest.mark.parametrize("name", ["product", "squares", "times_present", "rows_at"])
def test_saved_tensors_are_freed_by_backward(name, agtest):
    x = tensor()
    middle = x * 2
    gone = weakref.ref(middle)
    result = formula_calls.ALL[name](agtest, middle)[0].sum()
    if name == "product":
        result = agtest.product(middle, middle).sum()
    del middle
    result.backward()
    gc.collect()
    assert gone() is None


def test_a_saved_result_makes_no_cycle(agtest):
    x = tensor()
    result = agtest.expo(x)
    gone = weakref.ref(result)
    del result
    assert gone() is None


def test_a_saved_input_is_the_tensor_itself(agtest):
    x, y = tensor(), tensor()
    hooked = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: hooked.append(t) or t, lambda t: t):
        result = agtest.product(x, y)
    assert {t.data_ptr() for t in hooked} == {x.data_ptr(), y.data_ptr()}
    result.sum().backward()


def test_hooks_may_give_other_tensors_back(agtest):
    x, y = tensor(), tensor()
    hooks = torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach() * 5, lambda t: t)
    with hooks:
        result = agtest.product(x, y).sum() + agtest.squares([x, y], 1).sum()
    result.backward()
    assert x.grad.eq(15).all()


def test_save_on_cpu_and_disabled_hooks(agtest):
    x = tensor()
    with torch.autograd.graph.save_on_cpu():
        result = sum(r.sum() for r in agtest.sine_cosine(x))
    result.backward()
    assert torch.allclose(x.grad, (x.cos() - x.sin()).detach())


def test_checkpointing(agtest):
    from torch.utils.checkpoint import checkpoint

    x = tensor()
    checkpoint(lambda t: agtest.product(agtest.expo(t), t), x, use_reentrant=False).sum().backward()
    assert torch.allclose(x.grad, ((1 + x) * x.exp()).detach())
