# SPDX-License-Identifier: BSD-3-Clause
"""Results of rows in dtypes that are asked for, rounded as torch rounds them."""

import pytest
import torch
from rows_with_torch import CAST, FLOATS, arguments_of

LENGTHS = [1, 2, 7, 16, 31, 64, 100, 1000]


def precise(given):
    """Arguments of the precision that everything is computed in."""
    return [a.float() if a.dtype in (torch.bfloat16, torch.float16) else a for a in given]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", ["quantize", "quantize_float8"])
def test_quantized_values_are_exactly_torchs(rowstest, name, dtype):
    for length in LENGTHS:
        given = arguments_of(name, (3, 2), length, dtype)
        given[0][0, 0] = 0
        for own, value in zip(getattr(rowstest, name)(*given), CAST[name][0](*precise(given))):
            assert own.dtype == value.dtype
            assert torch.equal(own.double(), value.double())


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_values_are_rounded_to_the_dtype_that_is_asked_for(rowstest, dtype):
    for length in LENGTHS:
        given = arguments_of("in_halves", (3, 2), length, dtype)
        found = rowstest.in_halves(*given)
        expected = CAST["in_halves"][0](*(a.double() for a in given))
        for own, value, coarse in zip(found, expected, (torch.bfloat16, torch.float32)):
            assert own.dtype == value.dtype
            tolerances = {"rtol": 2 * torch.finfo(coarse).eps, "atol": 1e-5}
            torch.testing.assert_close(own.double(), value.double(), **tolerances)


def test_what_is_cast_to_floats_has_gradients(rowstest):
    leaves = arguments_of("in_halves", (4,), 6, requires_grad=True)
    outer = [torch.randn(4, 12, dtype=torch.bfloat16), torch.randn(4, dtype=torch.float64)]
    grads = []
    for function in (rowstest.in_halves, CAST["in_halves"][0]):
        own = torch.autograd.grad(function(*leaves), leaves, outer, create_graph=True)
        again = torch.autograd.grad([g.sin().sum() for g in own], leaves)
        tangents = torch.func.jvp(function, tuple(leaves), tuple(a.cos() for a in leaves))[1]
        grads.append([*own, *again, *tangents])
    for own, expected in zip(*grads, strict=True):
        assert own.dtype == expected.dtype
        coarse = own.dtype == torch.bfloat16
        tolerances = {"rtol": 0.02, "atol": 0.02} if coarse else {}
        torch.testing.assert_close(own, expected, **tolerances)


def test_integers_and_small_floats_have_no_gradient(rowstest):
    x = torch.randn(3, 5, requires_grad=True)
    for name in ("quantize", "quantize_float8"):
        values, scale = getattr(rowstest, name)(x)
        assert scale.requires_grad
        assert not values.requires_grad
        (own,) = torch.autograd.grad(scale.sum(), x)
        (expected,) = torch.autograd.grad(CAST[name][0](x)[1].sum(), x)
        torch.testing.assert_close(own, expected)


@pytest.mark.parametrize("name", CAST)
def test_under_every_transform(rowstest, name):
    given = arguments_of(name, (4, 3), 6, torch.float32)
    function, expected = getattr(rowstest, name), CAST[name][0](*given)
    found = [function(*given)]
    dims = (0,) + (None,) * (len(given) - 1)
    found.append(torch.func.vmap(function, in_dims=dims)(*given))
    for backend in ("aot_eager", "inductor"):
        torch._dynamo.reset()
        found.append(torch.compile(function, backend=backend, fullgraph=True)(*given))
    for own in found:
        for mine, torchs in zip(own, expected, strict=True):
            assert mine.dtype == torchs.dtype
            step = 1 if mine.dtype == torch.int8 else 0
            coarse = {"rtol": 0.07 if mine.element_size() == 1 else 0.01, "atol": 1e-5 + step}
            torch.testing.assert_close(mine.double(), torchs.double(), **coarse)
    meta = function(*(a.to("meta") for a in given))
    assert [(m.shape, m.dtype) for m in meta] == [(e.shape, e.dtype) for e in expected]
    torch.library.opcheck(function.default, tuple(given))
