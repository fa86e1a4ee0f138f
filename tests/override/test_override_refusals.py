# SPDX-License-Identifier: BSD-3-Clause
"""torchext.override: what cannot be overridden, by what, and what a kernel may not return."""

import pytest
import torch
from override_kernels import ADD, times

import torchext
import torchext.ops  # namespace myns


@pytest.mark.parametrize(
    ("returned", "what"),
    [
        (lambda self, other: None, "'NoneType', and the operator's result is Tensor"),
        (lambda self, other: "x", "'str', and the operator's result is Tensor"),
        (lambda self, other: self, "the argument 'self' or its memory; a result is a new tensor"),
    ],
)
def test_a_result_of_the_wrong_kind_is_refused(returned, what, pair):
    a, b = pair
    with torchext.override("aten::mul.Tensor", returned):
        with pytest.raises(RuntimeError, match="aten::mul.Tensor: its overriding kernel") as error:
            a * b
    assert what in str(error.value)
    assert torch.equal(a * b, torch.mul(b, a))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("aten::add.Tensr", times(1)), "there is no operator aten::add.Tensr"),
        (("add.Tensor", times(1)), "there is no operator add.Tensor"),
        (("aten::square", torch.sin), "aten::square is CompositeImplicitAutograd in torch"),
        (("aten::matmul", torch.mm), "aten::matmul is CompositeImplicitAutograd in torch"),
        ((ADD, "aten::mul.Tensor"), "aten::mul.Tensor cannot override aten::add.Tensor"),
        ((ADD, "myns::nothing"), "there is no operator myns::nothing"),
    ],
)
def test_what_cannot_be_overridden_is_refused(arguments, message):
    with pytest.raises(ValueError) as error:
        torchext.override(*arguments)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("Cpu", "'Cpu' is no dispatch key"),
        ("AutogradCPU", "'AutogradCPU' is no backend"),
        ("CompositeImplicitAutograd", "'CompositeImplicitAutograd' is no backend"),
        ("QuantizedCPU", "aten::dot has no kernel for QuantizedCPU"),
        ("Sparse", "'Sparse' is for several backends: name one of them, such as SparseCPU"),
        ("Dense", "'Dense' is for several backends"),
    ],
)
def test_an_override_is_for_a_backend_that_has_a_kernel(key, message):
    with pytest.raises(ValueError) as error:
        torchext.override("aten::dot", torch.dot, dispatch_key=key)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((ADD, 3), "3 is neither a function nor the name of an operator"),
        ((torch.ops.aten.add, times(1)), "is no operator with its overload"),
        ((torch.add, ADD), "is no operator with its overload"),
    ],
)
def test_what_is_no_operator_and_no_kernel_is_a_type_error(arguments, message):
    with pytest.raises(TypeError, match=message):
        torchext.override(*arguments)


def test_a_result_that_is_asked_for_may_not_be_left_out(pair):
    a, _ = pair
    with torchext.override("aten::max.dim", lambda self, dim: (torch.max(self, dim)[0], None)):
        with pytest.raises(RuntimeError, match="aten::max.dim: .* returned 'NoneType'"):
            a.max(0)


def test_what_a_function_may_not_return(pair):
    a, _ = pair
    parameter = torch.ones(3, 4, dtype=torch.double, requires_grad=True)
    with torchext.override("aten::relu", lambda self: self[:]):
        with pytest.raises(RuntimeError, match="the argument 'self' or its memory"):
            a.relu()
    with torchext.override("aten::cos", lambda self: parameter):
        with pytest.raises(RuntimeError, match="a tensor that requires grad"):
            a.cos()
    assert parameter.grad_fn is None
    with pytest.raises(ValueError, match="aten::view returns a view"):
        torchext.override("aten::view", lambda self, size: self.clone())


def test_an_unsafe_view_may_have_the_memory_of_its_argument():
    x = torch.rand(2, 3, 4, dtype=torch.double, requires_grad=True)
    y = torch.rand(4, 5, dtype=torch.double)
    called = []

    def view(self, size):
        called.append(size)
        return torch.ops.aten._unsafe_view(self, size)

    expected = x @ y
    with torchext.override("aten::_unsafe_view", view):
        found = x @ y
    assert called and torch.equal(found, expected)
    assert torch.equal(*(torch.autograd.grad(r.sum(), x)[0] for r in (found, expected)))
    split = torch.ops.aten.unsafe_split.Tensor
    with torchext.override(split, lambda self, size, dim=0: split(self, size, dim)):
        first, second = torch.unsafe_split(x, 1)
    assert torch.equal(torch.cat([first, second]), x)
