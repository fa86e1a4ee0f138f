# SPDX-License-Identifier: BSD-3-Clause
"""Operators that are compiled for the dtypes that they list, and for what these promote to."""

import itertools

import pytest
import torch
from every_path import PATHS
from torch.testing import assert_close

SIXTEEN = [torch.bfloat16, torch.float16]
COARSE = {"rtol": 0.02, "atol": 0.02}


def with_torch(x, w):
    return x.float().softmax(-1).to(x.dtype) * w


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("dtypes", [*itertools.product(SIXTEEN, SIXTEEN)], ids=str)
def test_values_and_two_derivatives(rowstest, path, dtypes):
    torch._dynamo.reset()
    torch.manual_seed(0)
    x, w = (torch.randn(s).to(d) for s, d in zip(((3, 8), (8,)), dtypes))
    results = []
    for function in (PATHS[path](rowstest.of_sixteen_bits), with_torch):
        given = [x.clone().requires_grad_(), w.clone().requires_grad_()]
        found = function(*given)
        first = torch.autograd.grad(
            found.float().sin().sum(), given, create_graph=path != "compiled"
        )
        assert [g.dtype for g in first] == [*dtypes]
        second = ()
        if path != "compiled":  # AOTAutograd has one derivative
            second = torch.autograd.grad(sum(g.float().square().sum() for g in first), given)
        results.append((found, *first, *second))
    assert_close(*results, **COARSE)
    assert results[0][0].dtype == (dtypes[0] if dtypes[0] == dtypes[1] else torch.float32)


def test_tangents(rowstest):
    x, w = torch.randn(3, 8).bfloat16(), torch.randn(8).half()
    tangents = torch.randn(3, 8).bfloat16(), torch.randn(8).half()
    found, expected = (
        torch.func.jvp(f, (x, w), tangents) for f in (rowstest.of_sixteen_bits, with_torch)
    )
    assert_close(found, expected, **COARSE)


@pytest.mark.parametrize("path", PATHS)
def test_a_cast_to_a_dtype_that_is_not_listed(rowstest, path):
    torch._dynamo.reset()
    x, s = torch.randn(3, 8).bfloat16(), torch.randn(3).bfloat16()
    results = []
    functions = PATHS[path](rowstest.widened), lambda x, s: (x * s[..., None]).to(torch.float32)
    for function in functions:
        given = [x.clone().requires_grad_(), s.clone().requires_grad_()]
        found = function(*given)
        results.append((found, *torch.autograd.grad(found.sin().sum(), given)))
    assert_close(*results, **COARSE)
    assert results[0][0].dtype == torch.float32


@pytest.mark.parametrize("path", PATHS)
def test_other_dtypes_are_refused(rowstest, path):
    torch._dynamo.reset()
    x, w = torch.randn(3, 8).bfloat16(), torch.randn(8)
    with pytest.raises(Exception, match="w must have dtype float16 or bfloat16, got float32"):
        PATHS[path](rowstest.of_sixteen_bits)(x, w)


@pytest.mark.parametrize("path", PATHS)
def test_what_16_bits_do_not_have_is_computed(rowstest, path):
    torch._dynamo.reset()
    x, i = torch.rand(3, 8).bfloat16(), torch.arange(24).reshape(3, 8)
    found = PATHS[path](rowstest.times_integers)(x, i)
    assert_close(found, x * i / x.sum(-1, keepdim=True), **COARSE)
    number = torch.tensor(1.5, dtype=torch.float64)
    found = PATHS[path](rowstest.beside_a_number)(x[0], number)
    assert_close(found, x[0] * number, **COARSE)
    assert rowstest.beside_a_number(x, number.expand(3)).dtype == torch.float64


def test_a_result_in_the_default_dtype(rowstest):
    x, i = torch.rand(3, 8).bfloat16().requires_grad_(), torch.tensor([1, 2, 3])
    first, second = rowstest.of_two_kinds(x, i)
    assert (first.dtype, second.dtype) == (torch.bfloat16, torch.float32)
    (found,) = torch.autograd.grad(first.float().sum() + second.sum(), x)
    assert_close(found, i[:, None].expand(3, 8).bfloat16())
    torch.set_default_dtype(torch.float64)
    try:
        assert rowstest.of_two_kinds(x, i)[1].dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
