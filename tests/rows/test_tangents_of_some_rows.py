# SPDX-License-Identifier: BSD-3-Clause
"""Tangents of some arguments of operators of rows, where others have none: what is infinite along
those is no part of the tangent."""

import itertools

import pytest
import torch
from every_path import PATHS
from torch.func import jvp
from torch.testing import assert_close


def weighted(x, w, s):
    return (x * w).sum(-1) / s, w.sqrt() * x - s.unsqueeze(-1)


SUBSETS = [along for size in (1, 2) for along in itertools.combinations(range(3), size)]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("along", SUBSETS, ids=str)
def test_tangents(rowstest, along, path):
    """x has infinite rows, w a zero, where a root is not differentiable; s has one too where it has
    no tangent, since that of a quotient is not torch's there."""
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    x[1], x[2, 0], x[3, 1] = float("inf"), float("nan"), 0
    w = torch.tensor([0.0, 1.0, 4.0, 0.25], dtype=torch.float64)
    s = torch.tensor([1.0, 2.0, 3.0, 0.5 if 2 in along else 0.0, -1.0], dtype=torch.float64)
    given = [x, w, s]

    def directional(function):
        def of_some(*chosen):
            values = dict(zip(along, chosen, strict=True))
            return function(*(values.get(place, value) for place, value in enumerate(given)))

        chosen = [given[place] for place in along]
        return lambda *values: jvp(of_some, values, tuple(map(torch.ones_like, chosen)))[1]

    chosen = [given[place] for place in along]
    own = PATHS[path](directional(rowstest.weighted))(*chosen)
    assert_close(own, directional(weighted)(*chosen), equal_nan=True)


@pytest.mark.parametrize("path", PATHS)
def test_the_largest_of_a_row_that_is_masked(rowstest, path):
    """What a mask leaves out has an infinite tangent, which is no part of the result's."""
    x = torch.tensor([[-float("inf"), 1.0, 2.0, 0.0], [3.0, 1.0, float("inf"), 0.5]]).double()
    w = torch.rand(4, dtype=torch.float64) + 0.5

    def torchs(x, w):
        return (x * w).amax(-1), (x * w).amin(-1)

    for along in (x, torch.ones_like(x), -x), (w, torch.ones_like(w)):
        given = along[0]
        for tangent in along[1:]:
            own, expected = (
                (lambda v, f=f: f(v, w)) if given is x else (lambda v, f=f: f(x, v))
                for f in (rowstest.extremes, torchs)
            )
            found = PATHS[path](lambda v, t, own=own: jvp(own, (v,), (t,))[1])(given, tangent)
            assert_close(found, jvp(expected, (given,), (tangent,))[1], equal_nan=True)
