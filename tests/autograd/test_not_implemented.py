# SPDX-License-Identifier: BSD-3-Clause
"""Operators without a formula: no gradient is lost, whatever the schema."""

import re

import plain_calls
import pytest
import torch


def leaf():
    return torch.arange(1.0, 7.0, dtype=torch.float64).reshape(2, 3).requires_grad_()


def backward_error(name):
    """What backward raises: the operator's full name, and nothing longer that contains it."""
    return pytest.raises(RuntimeError, match=re.escape(plain_calls.operator_of(name)) + r"(?!\w)")


@pytest.mark.parametrize("name", plain_calls.ALL)
def test_backward_through_every_schema_class_names_the_operator(name, agtest):
    count = len(plain_calls.ALL[name](agtest, leaf().clone()))
    for index in range(count):
        result = plain_calls.ALL[name](agtest, leaf().clone())[index]
        assert result.requires_grad
        with backward_error(name):
            result.sum().backward()


@pytest.mark.parametrize("name", plain_calls.ALL)
def test_torch_func_grad_raises(name, agtest):
    def first(x):
        return plain_calls.ALL[name](agtest, x.clone())[0].sum()

    with pytest.raises(RuntimeError, match=re.escape(plain_calls.operator_of(name))):
        torch.func.grad(first)(leaf().detach())


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("name", plain_calls.ALL)
def test_nothing_is_recorded_without_grad_mode(name, mode, agtest):
    with mode():
        results = plain_calls.ALL[name](agtest, leaf().clone())
    assert not any(result.requires_grad for result in results)


@pytest.mark.parametrize("name", plain_calls.ALL)
def test_nothing_is_recorded_where_nothing_requires_grad(name, agtest):
    results = plain_calls.ALL[name](agtest, leaf().detach().clone())
    assert not any(result.requires_grad for result in results)
    assert all(result.grad_fn is None for result in results)


@pytest.mark.parametrize("name", [*plain_calls.FUNCTIONAL, *plain_calls.VIEWS])
def test_detach_ends_the_matter(name, agtest):
    x = leaf()
    plain_calls.ALL[name](agtest, x.clone())[0].detach().sum()
    (x * 2).sum().backward()
    assert x.grad.eq(2).all()


def test_an_unused_result_does_not_stop_backward(agtest):
    x = leaf()
    agtest.plain_mul(x, x)
    (x * 2).sum().backward()
    assert x.grad.eq(2).all()


def test_an_optional_result_that_is_none(agtest):
    assert agtest.plain_optional_result(leaf(), False) is None


def test_out_refuses_arguments_that_require_grad(agtest):
    x, out = leaf(), torch.empty(2, 3, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="out=.*automatic differentiation"):
        agtest.plain_mul(x, x, out=out)
    with pytest.raises(RuntimeError, match="out=.*automatic differentiation"):
        agtest.plain_mul(x.detach(), x.detach(), out=out.requires_grad_())


def test_out_works_without_grad(agtest):
    x, out = leaf(), torch.empty(2, 3, dtype=torch.float64)
    with torch.no_grad():
        assert agtest.plain_mul(x, x, out=out) is out
    assert torch.equal(out, x.detach() ** 2)


def test_an_integer_result_needs_no_gradient(agtest):
    x = leaf()
    assert agtest.plain_dim(x) == 2
    index = agtest.plain_argmax(x)
    assert index.item() == 5
    assert not index.requires_grad


def test_composite_implicit_differentiates_through_its_parts(agtest):
    x, y = leaf(), leaf()
    assert torch.autograd.gradcheck(agtest.plain_parts, (x, y))
    assert torch.autograd.gradgradcheck(agtest.plain_parts, (x, y))
    assert torch.autograd.gradcheck(agtest.plain_parts, (x, y), check_forward_ad=True)


# ---- differentiable: False


def test_a_result_declared_not_differentiable_does_not_require_grad(agtest, recwarn):
    x = leaf()
    step = agtest.plain_step(x)
    assert not step.requires_grad
    assert step.grad_fn is None
    (step * x).sum().backward()
    assert x.grad.eq(1).all()
    assert not recwarn.list


def test_a_formula_whose_results_are_all_not_differentiable(agtest, recwarn):
    x = leaf()
    (agtest.never(x) * x).sum().backward()
    assert x.grad.eq(1).all()
    assert not recwarn.list


def test_what_is_overwritten_without_derivative_must_not_require_grad(agtest):
    with pytest.raises(NotImplementedError, match="agtest::plain_step_.*'self'"):
        agtest.plain_step_(leaf().clone())
    x = leaf().detach()
    assert agtest.plain_step_(x) is x
    assert x.eq(1).all()


# ---- torch's own checks of schemas and registrations

CHECKED = {
    "plain_mul": lambda x, y: (x, y),
    "plain_mul_": lambda x, y: (x, y),
    "plain_pair": lambda x, y: (x, y),
    "plain_optional": lambda x, y: (x, y),
    "plain_list": lambda x, y: ([x, y],),
    "plain_optional_list": lambda x, y: (x, [None, y]),
    "plain_mutate": lambda x, y: (x, y),
    "plain_mutate_shorthand": lambda x, y: (x, y),
    "plain_mutate_list": lambda x, y: ([x, y.clone()], y),
    "plain_mutate_and_give": lambda x, y: (x, y),
    "plain_explicit": lambda x, y: (x, y),
    "plain_step": lambda x, y: (x,),
}


@pytest.mark.parametrize("name", CHECKED)
def test_opcheck(name, agtest):
    arguments = CHECKED[name](leaf().clone(), leaf())
    checks = ("test_schema", "test_autograd_registration")
    torch.library.opcheck(getattr(agtest, name).default, arguments, test_utils=checks)
