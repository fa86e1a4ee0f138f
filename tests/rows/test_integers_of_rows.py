# SPDX-License-Identifier: BSD-3-Clause
"""Integers that rows have one of, on every path that an expression is computed on."""

import pytest
import torch
from every_path import PATHS, traced
from torch.nn import functional as F
from torch.testing import assert_close

ANY_PATH = pytest.mark.parametrize("path", PATHS)


def by_integers(x, k, eps=0.5):
    i = k[..., None].to(x.dtype)
    found = x * (i * 0.1) + i.clamp_min(eps) / (i.abs() + 0.5).sqrt() + F.silu(i) + i % 3
    return found + i + 0.25 * (0.5 - i) + eps * (i == 2)


@ANY_PATH
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("integer", [torch.int64, torch.int32, torch.uint8], ids=str)
def test_integers_are_numbers_of_the_rows_dtype(rowstest, path, dtype, integer):
    x, k = torch.randn(4, 3, dtype=dtype), torch.tensor([0, 2, 7, 100], dtype=integer)
    function = PATHS[path](rowstest.by_integers)
    assert_close(function(x, k), by_integers(x, k), rtol=4 * torch.finfo(dtype).eps, atol=0)


@ANY_PATH
def test_a_fraction_beside_integers_is_one(rowstest, path):
    x, target = torch.randn(3, 5), torch.tensor([1, -100, 4])
    expected = torch.where(
        target == -100, 0.5, F.cross_entropy(x, target.clamp(min=0), reduction="none")
    )
    assert_close(PATHS[path](rowstest.half_or)(x, target), expected)
    for mask in (torch.tensor([True, False, True]), torch.tensor([3, 0, -1])):
        expected = torch.where(mask[:, None] != 0, x, 0.5)
        assert_close(PATHS[path](rowstest.masked)(x, mask), expected)


@ANY_PATH
def test_large_integers_are_compared_exactly_or_refused(rowstest, path):
    x, own, other = torch.randn(2, 3), torch.tensor([7, 1 << 24]), torch.tensor([7, (1 << 24) + 1])
    function = PATHS[path](rowstest.same_ids)
    expected = torch.where((own == other)[:, None], x, 0.25)
    assert_close(function(x.double(), own, other), expected.double())
    if path == "compiled":
        assert_close(function(x, own, other), expected)
        return
    with pytest.raises(NotImplementedError, match="other has 16777217, which is no Float"):
        function(x, own, other)
    with pytest.raises(NotImplementedError, match="16777217 is no Float, in which integers"):
        rowstest.half_or(x, torch.tensor([0, 1]), (1 << 24) + 1)
    least = -(1 << 63)
    assert_close(rowstest.half_or(x, torch.tensor([least, least]), least), torch.full((2,), 0.5))


@ANY_PATH
def test_no_result_is_another_one(rowstest, path):
    x = torch.randn(3, 5)
    first, second, third = PATHS[path](rowstest.twice)(x)
    expected = x.softmax(-1)
    first.add_(1), third.add_(1)
    assert_close(second, expected)
    assert_close(x.softmax(-1), expected)


@ANY_PATH
def test_elements_of_rows_that_have_none(rowstest, path):
    ignored = torch.full((3,), -100)
    for x in (torch.empty(3, 0), torch.empty(3, 0, dtype=torch.float64)):
        assert_close(PATHS[path](rowstest.picked_of)(x, ignored).isnan().all(), torch.tensor(True))


@pytest.mark.parametrize("path", [*PATHS, "dynamic"])
def test_long_rows_are_counted_exactly(rowstest, path):
    x = torch.ones((1 << 24) + 6)
    x[1], x[-3] = -1, 2  # an odd number of them, and a place that is odd
    function = PATHS.get(path, lambda f: traced(f, dynamic=True))(rowstest.largest)
    assert_close(function(x), (x[-3], x.argmax(), (x > 0).sum()))
    assert x.argmax().item() % 2 == (x > 0).sum().item() % 2 == 1


@pytest.mark.parametrize("path", [*PATHS, "dynamic"])
def test_the_length_of_a_long_row_is_exact(rowstest, path):
    x = torch.ones(1).expand((1 << 24) + 1)
    function = PATHS.get(path, lambda f: traced(f, dynamic=True))(rowstest.length_or)
    x = x.clone() if path == "vmap" else x
    assert [found.item() for found in function(x)] == [x.numel()] * 2


@pytest.mark.parametrize("path", [*PATHS, "dynamic"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
def test_gradients_of_the_largest_of_what_is_computed(rowstest, path, dtype):
    torch.manual_seed(11)
    x, w = torch.randn(40, 7, dtype=dtype), torch.randn(7, dtype=dtype)
    compiled = PATHS.get(path, lambda f: traced(f, dynamic=True))
    wide = torch.float64 if dtype == torch.float64 else torch.float32

    def gradients(function):
        given = [x.clone().requires_grad_(), w.clone().requires_grad_()]
        return torch.autograd.grad(function(*given).to(wide).sin().sum(), given)

    cases = [(rowstest.largest_product, torch.amax)]
    for least, reduced in [(False, torch.amax), (True, torch.amin)]:
        cases.append((lambda a, b, k=least: rowstest.product_extremes(a, b, k), reduced))
    coarse = {"rtol": 0.02, "atol": 0.02} if dtype == torch.bfloat16 else {}
    for function, reduced in cases:
        expected = gradients(lambda a, b, f=reduced: f(a.to(wide) * b.to(wide), -1))
        assert_close(gradients(compiled(function)), expected, **coarse)


def test_long_rows_without_loops_that_count_them_are_refused(rowstest):
    x = torch.zeros(1, dtype=torch.bfloat16).expand(1 << 24)
    with pytest.raises(NotImplementedError, match="rows of 16777216 are counted in Double, which"):
        rowstest.first_place(x)


@ANY_PATH
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_what_is_more_exact_than_16_bits_is_not_rounded(rowstest, path, dtype):
    x = torch.randn(4, 6).to(dtype) / 1024
    for scale in (torch.tensor([65536.0]).expand(4), torch.tensor([70000, 3, 5, 7])):
        found = PATHS[path](rowstest.scaled)(x, scale)
        expected = x.float() * scale[:, None] - x.float().amax(-1, keepdim=True)
        assert found.dtype == torch.result_type(x, scale)
        assert_close(found, expected.to(found.dtype))


def of_conditions(x):
    numbers = torch.where(x > 0, 1.0, 0.0)
    means = numbers.mean(-1), numbers.mean(-1), numbers.var(-1)
    largest = (x > 0).sum(-1), (x > 0).amax(-1)
    return *largest, *means, (numbers + 1).logsumexp(-1), numbers.softmax(-1)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_reductions_of_conditions_count_them(rowstest, dtype, path):
    """A mean is a fraction, and a sum a number, whatever they are of."""
    x = torch.tensor([[1.0, -2, 3, float("nan")], [-1, -1, -1, 0]], dtype=dtype)
    assert_close(PATHS[path](rowstest.of_conditions)(x), of_conditions(x))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_integers_of_elements_are_exact(rowstest, dtype, path):
    x = torch.randn(2, 1001, generator=torch.Generator().manual_seed(1)).to(dtype)
    found = PATHS[path](rowstest.places_where)(x)
    assert_close(found, torch.where(x > 0, torch.arange(1001), -1))
