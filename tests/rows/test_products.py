# SPDX-License-Identifier: BSD-3-Clause
"""Products of rows, and their derivatives where elements are 0, beside torch.prod's."""

import functools

import pytest
import torch
from every_path import PATHS
from torch.testing import assert_close

# Where no element is 0, one, two, three, and all are.
ROWS = [
    [1.5, 2.0, -3.0, 0.5], [0.0, 2.0, -3.0, 0.5], [1.5, 0.0, -3.0, 0.0], [0.0, 0.0, 2.0, 0.0],
    [0.0, 0.0, 0.0, 0.0],
]  # fmt: skip
X = torch.tensor(ROWS, dtype=torch.float64)
W = torch.tensor([0.7, -1.2, 0.0, 2.0], dtype=torch.float64)
S = torch.tensor([0.5, -1.0, 2.0, 0.0, 1.0], dtype=torch.float64)
INF, NAN = float("inf"), float("nan")
NOT_FINITE = [
    [0.0, NAN, 2.0], [INF, 0.0, 2.0], [NAN, 0.0, 0.0], [-INF, 0.0, 3.0, 0.0], [INF, NAN, 0.0],
    [0.0, 0.0, 0.0, INF, 2.0],
]  # fmt: skip
CALLS = {
    "product_or": [(X,), (X, W), (X[:2] + 0.5, None, True)],
    "product": [(X,), (X[0],), (W,)],
    "products": [(X, W), (X, W + 1), (X, W, S), (X, X, S)],
}
NESTED = {
    "reverse": lambda f: torch.func.jacrev(f),
    "forward": lambda f: torch.func.jacfwd(f),
    "reverse over reverse": lambda f: torch.func.jacrev(torch.func.jacrev(f)),
    "forward over reverse": lambda f: torch.func.hessian(f),
    "reverse over forward": lambda f: torch.func.jacrev(torch.func.jacfwd(f)),
    "forward over forward": lambda f: torch.func.jacfwd(torch.func.jacfwd(f)),
}


def products(x, w, s=None):
    scale = torch.ones_like(x[..., :1]) if s is None else s[..., None]
    rest = torch.ones_like(x) if s is None else scale * w
    one = x.softmax(-1) * w.prod(-1, keepdim=True) + (x * scale).prod(-1, keepdim=True)
    return one, (1 - w * x).prod(-1) + rest.prod(-1)


def product_or(x, w=None, ones=False):
    whole = (x.mean(-1, keepdim=True) if w is None else w).expand(x.shape)
    rest = torch.ones_like(x) if ones else x
    return x * whole.prod(-1, keepdim=True) + rest.prod(-1, keepdim=True)


WITH_TORCH = {"product": lambda x: x.prod(-1), "products": products, "product_or": product_or}
SITUATIONS = [(name, index) for name, calls in CALLS.items() for index in range(len(calls))]


def leaves(given):
    return [a.clone().requires_grad_() if isinstance(a, torch.Tensor) else a for a in given]


def floats(given):
    return [a for a in given if isinstance(a, torch.Tensor)]


def total(function, *given):
    found = function(*given)
    return sum(r.sin().sum() for r in (found if isinstance(found, tuple) else (found,)))


@pytest.mark.parametrize(("name", "index"), SITUATIONS)
@pytest.mark.parametrize("nested", NESTED)
def test_derivatives(rowstest, name, index, nested):
    given = CALLS[name][index]
    for argument in (i for i, a in enumerate(given) if isinstance(a, torch.Tensor)):
        found, expected = (
            NESTED[nested](lambda a, f=f: total(f, *given[:argument], a, *given[argument + 1 :]))(
                given[argument]
            )
            for f in (getattr(rowstest, name), WITH_TORCH[name])
        )
        assert_close(found, expected)


@pytest.mark.parametrize(("name", "index"), SITUATIONS)
def test_a_third_derivative(rowstest, name, index):
    results = []
    for function in (getattr(rowstest, name), WITH_TORCH[name]):
        given = leaves(CALLS[name][index])
        value = total(function, *given)
        for _ in range(3):
            found = torch.autograd.grad(value, floats(given), create_graph=True)
            value = sum(g.sin().sum() for g in found)
        results.append(found)
    assert_close(*results)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("name", "index"), SITUATIONS)
def test_values_and_gradients(rowstest, path, name, index):
    torch._dynamo.reset()
    results = []
    for function in (PATHS[path](getattr(rowstest, name)), WITH_TORCH[name]):
        given = leaves(CALLS[name][index])
        value = total(function, *given)
        results.append((value, *torch.autograd.grad(value, floats(given))))
    assert_close(*results)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("row", NOT_FINITE, ids=str)
def test_zeros_do_not_hide_what_is_not_finite(rowstest, path, row):
    x = torch.tensor(row, dtype=torch.float64)
    tangent = torch.linspace(0.5, 2, len(row), dtype=torch.float64)
    results = []
    for function in (PATHS[path](rowstest.product), WITH_TORCH["product"]):
        _, pulled_back = torch.func.vjp(function, x)
        results.append((pulled_back(torch.tensor(1.0)), torch.func.jvp(function, (x,), (tangent,))))
    assert_close(*results, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("length", [0, 1, 7, 33, 1000, 5000])
def test_long_rows(rowstest, dtype, length):
    torch.manual_seed(length)
    x = (1 + torch.randn(3, length, dtype=torch.float64) / (length + 1)).to(dtype)
    results = []
    for function, kind in (
        (rowstest.product, dtype),
        (functools.partial(torch.prod, dim=-1), None),
    ):
        given = x.detach().to(kind or torch.float64).requires_grad_()
        results.append(
            [
                r.to(dtype)
                for r in (function(given), *torch.autograd.grad(function(given).sum(), given))
            ]
        )
    assert_close(
        *results, rtol=1e-4 if dtype in (torch.float32, torch.float64) else 0.01, atol=1e-4
    )
