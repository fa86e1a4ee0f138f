# SPDX-License-Identifier: BSD-3-Clause
"""Gradients against finite differences; second ones come from formulas being differentiable."""

import formula_calls
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck


def tensor(dtype=torch.float64):
    generator = torch.Generator().manual_seed(3)
    return torch.rand(2, 3, dtype=dtype, generator=generator).requires_grad_()


def call_of(name, ops):
    return lambda x: formula_calls.ALL[name](ops, x)


@pytest.mark.parametrize("name", formula_calls.ALL)
def test_first_derivatives(name, agtest):
    assert gradcheck(call_of(name, agtest), tensor())


@pytest.mark.parametrize("name", formula_calls.ALL)
def test_second_derivatives(name, agtest):
    assert gradgradcheck(call_of(name, agtest), tensor())


@pytest.mark.parametrize("name", ["product", "expo", "sine_cosine", "scaled_or_not", "total"])
def test_batched_gradients(name, agtest):
    assert gradcheck(call_of(name, agtest), tensor(), check_batched_grad=True)


@pytest.mark.parametrize("name", ["product", "product (self)", "expo", "sine_cosine"])
def test_torch_func(name, agtest):
    def loss(x):
        return sum(r.sum() for r in formula_calls.ALL[name](agtest, x))

    x = tensor()
    (expected,) = torch.autograd.grad(loss(x), x)
    assert torch.allclose(torch.func.grad(loss)(x.detach()), expected)
    twice = torch.func.grad(lambda y: torch.func.grad(loss)(y).sum())(x.detach())
    (first,) = torch.autograd.grad(loss(x), x, create_graph=True)
    if first.requires_grad:
        (expected,) = torch.autograd.grad(first.sum(), x)
        assert torch.allclose(twice, expected)


@pytest.mark.parametrize("name", ["product", "expo"])
def test_jacrev(name, agtest):
    x = tensor().detach()
    jacobian = torch.func.jacrev(lambda y: formula_calls.ALL[name](agtest, y)[0])(x)
    expected = formula_calls.other() if name == "product" else x.exp()
    assert torch.allclose(torch.einsum("ijij->ij", jacobian), expected)


# ---- complex numbers


@pytest.mark.parametrize("name", ["product (self)", "expo", "total", "scaled_or_not"])
def test_complex_derivatives(name, agtest):
    assert gradcheck(call_of(name, agtest), tensor(torch.complex128))
    assert gradgradcheck(call_of(name, agtest), tensor(torch.complex128))


def test_a_complex_scalar(agtest):
    assert gradcheck(lambda x: agtest.product.Scalar(x, 1 + 2j), tensor(torch.complex128))
    assert gradcheck(lambda x: agtest.product.Scalar(x, 1 + 2j), tensor())


def test_a_real_factor_of_a_complex_product_has_a_real_gradient(agtest):
    x, y = tensor(), tensor(torch.complex128)
    assert gradcheck(agtest.product, (x, y))
    assert gradgradcheck(agtest.product, (x, y))
    agtest.product(x, y).abs().sum().backward()
    assert x.grad.dtype == torch.float64


# ---- shapes


@pytest.mark.parametrize(
    ("first", "second"), [((3,), (2, 3)), ((2, 1), (3,)), ((), (2, 2)), ((0, 3), (1,)), ((), ())]
)
def test_gradients_of_broadcast_arguments_have_their_shapes(first, second, agtest):
    x = torch.rand(first, dtype=torch.float64, requires_grad=True)
    y = torch.rand(second, dtype=torch.float64, requires_grad=True)
    agtest.product(x, y).sum().backward()
    assert (x.grad.shape, y.grad.shape) == (x.shape, y.shape)
    assert gradcheck(agtest.product, (x, y))
