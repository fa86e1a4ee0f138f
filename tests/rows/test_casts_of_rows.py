# SPDX-License-Identifier: BSD-3-Clause
"""Results of rows in dtypes that are asked for, rounded as torch rounds them."""

import itertools

import pytest
import torch
from every_path import PATHS
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


def assert_coarsely(found, expected):
    for mine, torchs in zip(found, expected, strict=True):
        assert mine.dtype == torchs.dtype
        step = 1 if mine.dtype == torch.int8 else 0
        coarse = {"rtol": 0.07 if mine.element_size() == 1 else 0.01, "atol": 1e-5 + step}
        torch.testing.assert_close(mine.double(), torchs.double(), **coarse)


# One of them is quick enough.
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name != "quantize")) for name in CAST],
)
def test_by_inductor(rowstest, name):
    given = arguments_of(name, (4, 3), 6, torch.float32)
    torch._dynamo.reset()
    found = torch.compile(getattr(rowstest, name), fullgraph=True)(*given)
    assert_coarsely(found, CAST[name][0](*given))


@pytest.mark.parametrize("name", CAST)
def test_under_every_transform(rowstest, name):
    given = arguments_of(name, (4, 3), 6, torch.float32)
    function, expected = getattr(rowstest, name), CAST[name][0](*given)
    found = [function(*given)]
    dims = tuple(None if kind == "W" else 0 for kind in CAST[name][1])
    found.append(torch.func.vmap(function, in_dims=dims)(*given))
    torch._dynamo.reset()
    backend = "aot_eager_decomp_partition"
    found.append(torch.compile(function, backend=backend, fullgraph=True)(*given))
    for own in found:
        assert_coarsely(own, expected)
    meta = function(*(a.to("meta") for a in given))
    assert [(m.shape, m.dtype) for m in meta] == [(e.shape, e.dtype) for e in expected]
    torch.library.opcheck(function.default, tuple(given))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("dtypes", [*itertools.permutations(FLOATS, 3)], ids=str)
def test_results_in_the_dtypes_of_arguments(rowstest, path, dtypes):
    torch._dynamo.reset()
    wide = arguments_of("in_dtypes_of", (4,), 6)
    given = [a.to(dtype).requires_grad_() for a, dtype in zip(wide, dtypes)]
    results = []
    for function in (PATHS[path](rowstest.in_dtypes_of), CAST["in_dtypes_of"][0]):
        found = function(*given)
        grads = [r.detach().cos() for r in found]
        results.append((*found, *torch.autograd.grad(found, given, grads)))
    own, expected = results
    assert [r.dtype for r in own[:3]] == [dtypes[0], dtypes[2], dtypes[1]]
    coarse = {"rtol": 0.03, "atol": 0.03}
    torch.testing.assert_close(own, expected, **coarse)


def test_tangents_in_the_dtypes_of_arguments(rowstest):
    x, w, s = arguments_of("in_dtypes_of", (4,), 6, torch.float32)
    given, tangents = (x.bfloat16(), w, s.half()), (x.cos().bfloat16(), w.sin(), s.cos().half())
    for of in (given, (w,), (given[2],)):  # of all of them, and of one
        chosen = [any(a is b for b in of) for a in given]

        def along(function, chosen=chosen):
            def called(*own):
                values = iter(own)
                return function(*(next(values) if c else a for c, a in zip(chosen, given)))

            own = tuple(a for a, c in zip(given, chosen) if c)
            return torch.func.jvp(called, own, tuple(t for t, c in zip(tangents, chosen) if c))[1]

        found, expected = along(rowstest.in_dtypes_of), along(CAST["in_dtypes_of"][0])
        torch.testing.assert_close(found, expected, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("path", PATHS)
def test_a_result_in_a_dtype_of_integers_is_refused(rowstest, path):
    torch._dynamo.reset()
    x, w, s = torch.randn(4, 6), torch.randn(3), torch.ones(4, dtype=torch.int64)
    with pytest.raises(Exception, match="a result of Long would be computed in Float"):
        PATHS[path](rowstest.in_dtypes_of)(x, w, s)
