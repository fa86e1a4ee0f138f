# SPDX-License-Identifier: BSD-3-Clause
"""Formulas per dispatch key, and what formulas ask about a backward: masks, guards, retention."""

import pytest
import torch
from torch.autograd import forward_ad


def tensor(requires_grad=True, device="cpu"):
    numbers = torch.arange(1.0, 7.0, dtype=torch.float64).reshape(2, 3)
    return numbers.to(device).requires_grad_(requires_grad)


def saved_by(call):
    """The tensors that are saved while `call` runs."""
    saved = []
    hooks = torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t)
    with hooks:
        call()
    return saved


# ---- a formula for a key, here another one than Default's, to tell them apart


@pytest.mark.parametrize(
    ("device", "node"), [("cpu", "KeyedBackwardAutogradCPU0"), ("meta", "KeyedBackward0")]
)
def test_the_node_is_that_of_the_tensors_key(device, node, agtest):
    x = tensor(device=device)
    assert agtest.keyed(x).grad_fn.name() == node
    assert agtest.keyed_(x * 1).grad_fn.name() == node


def test_the_formula_of_the_key_gives_the_gradient(agtest):
    x = tensor()
    (gradient,) = torch.autograd.grad(agtest.keyed(x).sum(), x)
    assert gradient.eq(5).all()
    (gradient,) = torch.autograd.grad(agtest.keyed_only(x).sum(), x)
    assert gradient.eq(5).all()


def test_an_in_place_form_inherits_the_formula_of_the_key(agtest):
    x = tensor()
    z = x * 1
    assert agtest.keyed_(z) is z
    assert torch.equal(z.detach(), 2 * x.detach())
    (gradient,) = torch.autograd.grad(z.sum(), x)
    assert gradient.eq(5).all()


def test_the_formula_of_the_key_gives_the_tangent(agtest):
    tangent = tensor(requires_grad=False)
    for call in (agtest.keyed, agtest.keyed_only, lambda x: agtest.keyed_(x * 1)):
        _, found = torch.func.jvp(call, (tangent,), (tangent,))
        assert torch.equal(found, 7 * tangent)


def test_where_only_another_key_has_a_formula_the_gradient_is_refused(agtest):
    x = tensor(device="meta")
    result = agtest.keyed_only(x)
    assert result.requires_grad
    with pytest.raises(RuntimeError, match="agtest::keyed_only"):
        result.sum().backward()
    with forward_ad.dual_level(), pytest.raises(NotImplementedError, match="agtest::keyed_only"):
        agtest.keyed_only(forward_ad.make_dual(x.detach(), x.detach()))


def test_the_formula_of_default_serves_other_keys(agtest):
    x = tensor(device="meta")
    (gradient,) = torch.autograd.grad(agtest.keyed(x).sum(), x)
    assert gradient.shape == x.shape and gradient.is_meta


# ---- wrap_opt_if: what a mask asks for is all that is saved


@pytest.mark.parametrize(("first", "second", "count"), [(1, 1, 2), (1, 0, 1), (0, 1, 1), (0, 0, 0)])
def test_what_no_needed_gradient_uses_is_not_saved(first, second, count, agtest):
    x, y = tensor(bool(first)), tensor(bool(second)) * 1
    saved = saved_by(lambda: agtest.wrapped(x, y))
    assert len(saved) == count
    if (first, second) == (1, 0):
        assert saved[0].data_ptr() == y.data_ptr()
    if (first, second) == (0, 1):
        assert saved[0].data_ptr() == x.data_ptr()


@pytest.mark.parametrize("requires", [(1, 1), (1, 0), (0, 1)], ids=str)
def test_gradients_of_a_guarded_formula_are_those_of_torch(requires, agtest):
    found = []
    for multiply in (agtest.wrapped, torch.mul):
        x, y = (tensor(bool(r)) for r in requires)
        result = multiply(x, y + 1)
        inputs = [t for t in (x, y) if t.requires_grad]
        found.append(torch.autograd.grad((result * result).sum(), inputs))
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("index", [0, 1])
def test_a_guarded_formula_where_only_one_gradient_is_asked_for(index, agtest):
    tensors = tensor(), tensor() * 2
    result = agtest.wrapped(*tensors).sum()
    (gradient,) = torch.autograd.grad(result, tensors[index])
    torch.testing.assert_close(gradient, tensors[1 - index].detach())


def test_a_guarded_formula_differentiates_twice(agtest):
    assert torch.autograd.gradgradcheck(agtest.wrapped, (tensor(), tensor()))


# ---- retain_variables


def test_a_formula_sees_whether_the_graph_is_kept(agtest):
    x = tensor()
    result = agtest.retained(x).sum()
    for keep, expected in ((True, 2), (True, 2), (False, 3)):
        (gradient,) = torch.autograd.grad(result, x, retain_graph=keep)
        assert gradient.eq(expected).all()


def test_create_graph_keeps_the_graph_too(agtest):
    x = tensor()
    (gradient,) = torch.autograd.grad(agtest.retained(x).sum(), x, create_graph=True)
    assert gradient.eq(2).all()


# ---- a result that a mask leaves out


@pytest.mark.parametrize("mask", [[True, True], [True, False], [False, True]], ids=str)
def test_a_result_that_is_not_there_has_no_gradient_and_no_tangent(mask, agtest):
    x = tensor()
    results = agtest.masked_pair(x, mask)
    assert [result is not None for result in results] == mask
    given = [result for result in results if result is not None]
    (gradient,) = torch.autograd.grad([result.sum() for result in given], x)
    expected = mask[0] * x.exp() + mask[1] * 2 * x
    torch.testing.assert_close(gradient, expected.detach())
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x.detach(), torch.ones_like(x))
        found = [r for r in agtest.masked_pair(dual, mask) if r is not None]
        tangents = [forward_ad.unpack_dual(result).tangent for result in found]
    torch.testing.assert_close(sum(tangents), expected.detach())
