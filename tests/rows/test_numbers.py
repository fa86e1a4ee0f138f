# SPDX-License-Identifier: BSD-3-Clause
"""What is computed of integers once a call is what Python computes."""

import itertools

import pytest
import torch
from every_path import PATHS
from torch.testing import assert_close

LARGE = 2**62
X = torch.tensor([1.0, -3.0], dtype=torch.float64)


def of_integers(x, k, j=3):
    return (
        x * 2.0**k + float(k + 1) ** (k - j),
        x * float(k * j) - x + float(max(k, 0)) * k,
        x * float(abs(k)) + float((k if k > 2 else -k) // 3) + k % 3 - float(max(k, j * k)),
    )


@pytest.mark.parametrize("path", PATHS)
def test_integers_are_pythons(rowstest, path):
    numbers = itertools.product(
        [-3, -2, 0, 1, 2, 5, 63, 64, 1000, LARGE, -2 * LARGE], [3, -1, LARGE]
    )
    for k, j in numbers:
        if abs(k) <= 64 or path != "compiled":
            torch._dynamo.reset()
            try:
                expected = of_integers(X, k, j)
            except (ZeroDivisionError, OverflowError):
                continue  # which a float of C++ has as infinity
            assert_close(
                PATHS[path](lambda x, k=k, j=j: rowstest.of_integers(x, k, j))(X), expected
            )


def test_gradients(rowstest):
    x = X.clone().requires_grad_()
    first, second, third = rowstest.of_integers(x, -1)
    assert_close(torch.autograd.grad(first.sum(), x)[0], torch.full_like(x, 0.5))
    assert_close(torch.autograd.grad(second.sum(), x)[0], torch.full_like(x, -4.0))
    assert_close(torch.autograd.grad(third.sum(), x)[0], torch.ones_like(x))


def test_of_integers_no_other_number_is_made(rowstest):
    x = torch.tensor([1, -3])
    assert_close(rowstest.of_integers(x, 4, 2)[0], x * 16 + 25)
    with pytest.raises(RuntimeError, match="0.5 is no Long"):
        rowstest.of_integers(x, -1)
    with pytest.raises(RuntimeError, match=r"1.84467e\+19 is no Long"):
        rowstest.of_integers(x, 64, 64)
