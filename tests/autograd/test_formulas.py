# SPDX-License-Identifier: BSD-3-Clause
"""What formulas can say: which gradients there are, which are asked for, which are missing."""

import pytest
import torch


def tensor(*shape, requires_grad=True):
    numbers = torch.arange(1.0, 1 + torch.Size(shape).numel(), dtype=torch.float64)
    return numbers.reshape(shape).requires_grad_(requires_grad)


# ---- several results


def test_grads_by_index(agtest):
    x = tensor(3)
    sine, cosine = agtest.sine_cosine(x)
    (2 * sine + 3 * cosine).sum().backward()
    assert torch.allclose(x.grad, (2 * x.cos() - 3 * x.sin()).detach())


@pytest.mark.parametrize("name", ["sine_cosine", "sum_difference", "clash_results"])
@pytest.mark.parametrize("index", [0, 1])
def test_a_result_without_gradient_gives_an_undefined_one(name, index, agtest):
    x = tensor(3)
    arguments = (x, x) if name == "sum_difference" else (x,)
    result = getattr(agtest, name)(*arguments)[index]
    (gradient,) = torch.autograd.grad(result.sum(), x)
    expected = {
        "sine_cosine": (x.cos(), -x.sin()),
        "clash_results": (x.cos(), -x.sin()),
        "sum_difference": (torch.full_like(x, 2), torch.zeros_like(x)),
    }
    assert torch.allclose(gradient, expected[name][index])


def test_grads_by_name(agtest):
    x, y = tensor(3), tensor(3)
    total, difference = agtest.sum_difference(x, y)
    (2 * total + 3 * difference).sum().backward()
    assert x.grad.eq(5).all()
    assert y.grad.eq(-1).all()


def test_where_no_result_has_a_gradient_there_is_none(agtest):
    x = tensor(3)
    sine, _ = agtest.sine_cosine(x)
    node = sine.grad_fn
    assert node(None, None) is None or node(None, None) == (None,)


def test_a_list_of_results(agtest):
    x = tensor(5, 2)
    first, second = agtest.halves(x)
    assert type(first.grad_fn.name()) is str
    assert first.grad_fn.name() == second.grad_fn.name() == "HalvesBackward0"
    (first.sum() * 3 + second.sum()).backward()
    assert x.grad[:2].eq(3).all()
    assert x.grad[2:].eq(2).all()


@pytest.mark.parametrize("index", [0, 1])
def test_a_list_of_results_of_which_one_is_used(index, agtest):
    x = tensor(4, 2)
    agtest.halves(x)[index].sum().backward()
    expected = torch.zeros(4, 2, dtype=torch.float64)
    expected[2 * index : 2 * index + 2] = 1 + index
    assert torch.equal(x.grad, expected)


# ---- several gradients from one formula


@pytest.mark.parametrize("mask", range(1, 8))
def test_grad_input_mask_asks_for_what_requires_grad(mask, agtest):
    x, y, z = (tensor(3, requires_grad=bool(mask & 1 << i)) for i in range(3))
    agtest.weighted(x, y, z, 2.0).sum().backward()
    expected = [2 * y.detach(), 2 * x.detach(), torch.ones(3, dtype=torch.float64)]
    for i, (argument, gradient) in enumerate(zip((x, y, z), expected)):
        if mask & 1 << i:
            assert torch.equal(argument.grad, gradient)
        else:
            assert argument.grad is None


def test_grad_input_mask_asks_for_what_autograd_grad_names(agtest):
    x, y, z = tensor(3), tensor(3), tensor(3)
    result = agtest.weighted(x, y, z).sum()
    (gradient,) = torch.autograd.grad(result, y)
    assert torch.equal(gradient, x)


def test_a_missing_optional_tensor_has_an_empty_edge(agtest):
    x, y = tensor(3), tensor(3)
    result = agtest.weighted(x, y, None, 2.0)
    assert [bool(node) for node, _ in result.grad_fn.next_functions] == [True, True, False]
    result.sum().backward()  # the kernel refuses a mask that asks for the third
    assert torch.equal(x.grad, 2 * y.detach())


def test_an_optional_tensor_in_a_formula(agtest):
    x, scale = tensor(3), tensor(3)
    agtest.scaled_or_not(x, scale).sum().backward()
    assert torch.equal(x.grad, scale.detach())
    assert torch.equal(scale.grad, x.detach())
    x.grad = None
    agtest.scaled_or_not(x).sum().backward()
    assert x.grad.eq(1).all()


# ---- lists of tensors


def test_every_tensor_of_a_list_has_an_edge(agtest):
    x, y, z = tensor(3), tensor(3, requires_grad=False), tensor(3)
    result = agtest.squares([x, y, z], 1.5)
    edges = [bool(node) for node, _ in result.grad_fn.next_functions]
    assert edges == [True, False, True]
    result.sum().backward()
    assert torch.equal(x.grad, 3 * x.detach())
    assert torch.equal(z.grad, 3 * z.detach())
    assert y.grad is None


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_list_beside_a_tensor(count, agtest):
    x, tensors = tensor(3), [tensor(3) for _ in range(count)]
    agtest.times_total(x, tensors).sum().backward()
    assert torch.allclose(x.grad, count * x.detach())
    assert all(torch.equal(t.grad, x.detach()) for t in tensors)


def test_a_list_of_optional_tensors(agtest):
    x, y, z = tensor(3), tensor(3), tensor(3, requires_grad=False)
    result = agtest.times_present(x, [None, y, z, None])
    edges = [bool(node) for node, _ in result.grad_fn.next_functions]
    assert edges == [True, False, True, False, False]
    result.sum().backward()
    assert torch.equal(x.grad, (y + z).detach())
    assert torch.equal(y.grad, x.detach())


def test_one_tensor_twice_in_a_list(agtest):
    x = tensor(3)
    agtest.squares([x, x], 1).sum().backward()
    assert torch.equal(x.grad, 4 * x.detach())


# ---- gradients that there are not


def test_a_non_differentiable_argument(agtest):
    x = tensor(3, 2)
    agtest.rows_at(x, torch.tensor([2, 0, 2])).sum().backward()
    assert x.grad[:, 0].tolist() == [1, 0, 2]


def test_a_non_differentiable_argument_may_require_grad(agtest):
    x, y = tensor(3), tensor(3)
    agtest.ignores_other(x, y).sum().backward()
    assert torch.equal(x.grad, y.detach())
    assert y.grad is None
    assert not agtest.ignores_other(x.detach(), y).requires_grad


def test_an_argument_without_formula_must_not_require_grad(agtest):
    x, y = tensor(3), tensor(3)
    with pytest.raises(NotImplementedError, match="agtest::lacks_other.*'other'"):
        agtest.lacks_other(x, y)
    with pytest.raises(NotImplementedError, match="agtest::lacks_other.*'other'"):
        agtest.lacks_other(x.detach(), y)
    with torch.no_grad():
        agtest.lacks_other(x, y)
    agtest.lacks_other(x, y.detach()).sum().backward()
    assert torch.equal(x.grad, y.detach())


def test_not_implemented_raises_where_the_gradient_is_asked_for(agtest):
    x, y = tensor(3), tensor(3)
    result = agtest.defers_other(x, y).sum()
    (gradient,) = torch.autograd.grad(result, x, retain_graph=True)
    assert torch.equal(gradient, y)
    with pytest.raises(NotImplementedError, match="'defers_other, other' is not implemented"):
        result.backward()


# ---- output_differentiability


def test_a_result_of_integers(agtest):
    x = tensor(3)
    value, index = agtest.value_and_index(x)
    assert value.requires_grad
    assert not index.requires_grad
    assert index.grad_fn is None
    value.sum().backward()
    assert x.grad.eq(2).all()


def test_grad_is_that_of_the_first_differentiable_result(agtest):
    x = tensor(3)
    constant, value = agtest.float_and_value(x)
    assert not constant.requires_grad
    assert constant.dtype == torch.float64
    (constant * value).sum().backward()
    assert x.grad.eq(2).all()


@pytest.mark.parametrize("yes", [True, False])
def test_a_condition(yes, agtest):
    x = tensor(3)
    result = agtest.differentiable_if(x, yes)
    assert result.requires_grad == yes
    if yes:
        result.sum().backward()
        assert x.grad.eq(2).all()


@pytest.mark.parametrize("first", [True, False])
def test_a_condition_moves_no_gradient_to_another_result(first, agtest):
    x = tensor(3)
    one, two = agtest.pair_if(x, first)
    assert (one.requires_grad, two.requires_grad) == (first, not first)
    (one + two).sum().backward()
    assert x.grad.eq(2 if first else 3).all()


def test_a_result_whose_dtype_cannot_require_grad(agtest):
    x = tensor(3)
    result = agtest.as_dtype(x, torch.int64)
    assert not result.requires_grad
    agtest.as_dtype(x, torch.float32).sum().backward()
    assert x.grad.dtype == torch.float64


# ---- names


def test_nodes_are_named_and_numbered_as_torchs(agtest):
    x = tensor(3)
    assert agtest.product(x, x).grad_fn.name() == "ProductBackward0"
    assert agtest.product.Scalar(x, 2).grad_fn.name() == "ProductBackward1"
    assert agtest.sine_cosine(x)[1].grad_fn.name() == "SineCosineBackward0"


def test_edges_lead_to_the_leaves(agtest):
    x, y = tensor(3), tensor(3)
    (x_edge, _), (y_edge, _) = agtest.product(x, y).grad_fn.next_functions
    assert x_edge.variable is x
    assert y_edge.variable is y
    (node, _), _ = agtest.product(agtest.expo(x), y).grad_fn.next_functions
    assert node.name() == "ExpoBackward0"
