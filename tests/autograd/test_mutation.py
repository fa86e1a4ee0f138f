# SPDX-License-Identifier: BSD-3-Clause
"""Operators that write to arguments: refused where torch's own are; versions rise as theirs do."""

import plain_calls
import pytest
import torch


def leaf():
    return torch.ones(2, 3, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("name", plain_calls.MUTATING)
def test_a_leaf_that_requires_grad_is_refused(name, agtest):
    x = leaf()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        plain_calls.MUTATING[name](agtest, x)
    assert x.eq(1).all()


@pytest.mark.parametrize("name", plain_calls.MUTATING)
def test_a_view_of_a_leaf_that_requires_grad_is_refused(name, agtest):
    x = leaf()
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        plain_calls.MUTATING[name](agtest, x.view(2, 3))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("name", plain_calls.MUTATING)
def test_a_leaf_can_be_written_to_without_grad_mode(name, mode, agtest):
    x = leaf()
    with mode():
        plain_calls.MUTATING[name](agtest, x)
    assert x.detach().eq(3).all()
    assert x.requires_grad
    assert x.is_leaf


@pytest.mark.parametrize("name", plain_calls.MUTATING)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_the_version_of_what_is_written_rises_by_one(name, requires_grad, agtest):
    x = leaf().requires_grad_(requires_grad).clone()
    plain_calls.MUTATING[name](agtest, x)
    assert x._version == 1


def test_versions_of_several_arguments(agtest):
    first, second, other = torch.ones(2), torch.ones(2), torch.ones(2)
    agtest.plain_mutate_two(first, second, other)
    assert (first._version, second._version, other._version) == (1, 1, 0)
    agtest.plain_mutate_list([first, second], other)
    assert (first._version, second._version, other._version) == (2, 2, 0)
    agtest.plain_mul(first, second, out=other)
    assert (first._version, second._version, other._version) == (2, 2, 1)
    agtest.plain_mutate_optional(None, other)
    assert other._version == 1


def test_versions_rise_under_no_grad_and_inference_mode(agtest):
    x, y = torch.ones(2), torch.ones(2)
    with torch.no_grad():
        agtest.plain_mul_(x, y)
    with torch.inference_mode():
        agtest.plain_mul_(x, y)
        agtest.plain_mul(y, y, out=x)
    assert x._version == 3


def test_an_inference_tensor_cannot_be_written_to_outside(agtest):
    with torch.inference_mode():
        x = torch.ones(2)
        agtest.plain_mul_(x, x)
    with pytest.raises(RuntimeError, match="[Ii]nference tensor"):
        agtest.plain_mul_(x, torch.ones(2))


@pytest.mark.parametrize("name", plain_calls.MUTATING)
def test_a_tensor_saved_by_another_operator_and_written_to_is_noticed(name, agtest):
    x = leaf()
    between = x * 1
    result = between.sin()
    with torch.no_grad():
        plain_calls.MUTATING[name](agtest, between)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


def test_out_written_over_a_saved_tensor_is_noticed(agtest):
    x = leaf()
    factor = torch.ones(2, 3, dtype=torch.float64)
    result = agtest.product(x, factor)
    agtest.plain_mul(factor, factor, out=factor)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


@pytest.mark.parametrize("name", ["product", "expo"])
def test_what_our_node_saved_is_noticed_too(name, agtest):
    x = leaf()
    between = x * 1
    result = agtest.product(between, between) if name == "product" else agtest.expo(between)
    with torch.no_grad():
        (between if name == "product" else result).mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


@pytest.mark.parametrize("name", plain_calls.MUTATING)
def test_writing_to_a_view_reaches_its_base(name, agtest):
    base = leaf() * 1
    plain_calls.MUTATING[name](agtest, base.view(2, 3))
    assert base._version == 1
    with pytest.raises(RuntimeError, match=plain_calls.operator_of(name)):
        base.sum().backward()


def test_writing_into_a_part_of_a_base_that_requires_no_grad(agtest):
    base = torch.ones(2, 3, dtype=torch.float64)
    agtest.plain_mul_(base[0], leaf()[0])
    assert base.requires_grad
    with pytest.raises(RuntimeError, match="agtest::plain_mul_"):
        base.sum().backward()


def test_the_history_before_the_write_is_kept(agtest):
    x = leaf()
    written = x * 2
    agtest.plain_mul_(written, torch.full((2, 3), 5.0, dtype=torch.float64))
    node = written.grad_fn
    assert [edge.name() for edge, _ in node.next_functions if edge] == ["MulBackward0"]
