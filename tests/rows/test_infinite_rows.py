# SPDX-License-Identifier: BSD-3-Clause
"""Rows with infinities, and variances of too few numbers, beside torch's own operators."""

import pytest
import torch
from every_path import PATHS
from torch.func import grad
from torch.nn import functional as F
from torch.testing import assert_close

INF, NAN = float("inf"), float("nan")
ROWS = [
    [0.0, -INF, 0.0],
    [-INF, -INF, -INF],
    [INF, 100.0, 1.0],
    [INF, INF, -INF],
    [NAN, 1.0, 2.0],
    [1e30, 0.0, -1e30],
]


def with_gradient(function, row, dtype):
    x = torch.tensor([row], dtype=dtype, requires_grad=True)
    result = function(x)
    result.sum().backward()
    return result.detach(), x.grad


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_norms_of_infinite_rows(rowstest, row, dtype):
    target = torch.tensor([0])
    both = [
        (rowstest.logsumexp, lambda x: x.logsumexp(-1)),
        (rowstest.softmax, lambda x: x.softmax(-1)),
        (
            lambda x: rowstest.cross_entropy(x, target),
            lambda x: F.cross_entropy(x, target, reduction="none"),
        ),
    ]
    for function in both:
        own, expected = (with_gradient(f, row, dtype) for f in function)
        assert_close(own, expected, equal_nan=True)
        compiled = torch.compile(function[0], backend="aot_eager")
        assert_close(with_gradient(compiled, row, dtype), expected, equal_nan=True)


@pytest.mark.filterwarnings("ignore:var")
def test_a_variance_of_too_few_numbers_is_torchs(rowstest):
    for row in ([1.0, 2.0, 3.0], [2.0, 2.0, 2.0], [1.0]):
        for correction in (0, 1, 2.5, 3, 5):
            own, expected = (
                with_gradient(f, row, torch.float64)
                for f in (
                    lambda x: rowstest.variance(x, correction),
                    lambda x: x.var(-1, correction=correction),
                )
            )
            assert_close(own, expected, equal_nan=True)


@pytest.mark.parametrize("path", PATHS)
def test_a_condition_of_which_a_part_is_known_leaves_nothing_of_the_other_branch(rowstest, path):
    """The sum of an infinite row, where nobody asks for it."""
    x = torch.tensor([[INF, 1.0, 2.0, 0.0], [1.0, -INF, 0.5, NAN]])

    def torchs(x, y, s=None):
        return x * y if s is None else torch.where(s[:, None] > 0, x * y, x.sum(-1, True) * y)

    for given in ((x, torch.ones(2, 4)), (x, x.flip(0), torch.tensor([1.0, -1.0]))):
        own, expected = (
            grad(lambda *v, f=f: f(*v).nan_to_num().sum(), tuple(range(len(given))))
            for f in (rowstest.known_or, torchs)
        )
        assert_close(PATHS[path](own)(*given), expected(*given), equal_nan=True)
