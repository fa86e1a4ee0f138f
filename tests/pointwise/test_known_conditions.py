# SPDX-License-Identifier: BSD-3-Clause
"""Conditions of which a part is known once a call: what that part leaves out is no part of a
gradient, whatever is infinite there, as it is none in Python."""

import itertools

import pytest
import torch
from every_path import PATHS
from torch.func import grad, jvp
from torch.testing import assert_close

SPECIAL = [0.0, -1.0, 2.0, 0.5, float("inf"), -float("inf"), float("nan")]


def known_or(x, y, w=None):
    return x * y if w is None else torch.where(x > w, x * y, w * y * y)


def known_and(x, y, k, w=None):
    first = y * x if w is None or k > 2 else torch.where(y > w, torch.sin(x), y * x)
    if w is None:
        return first, torch.log(x) * y if k == 2 else x
    return first, torch.where(w == k, torch.log(x) * y, x)


WRITTEN = {
    "known_or": (known_or, ()),
    "known_and 2": (known_and, (2,)),
    "known_and 3": (known_and, (3,)),
}


def cases(library, name, missing):
    """Ours and torch's, of tensors alone, and the tensors: all special values with all others."""
    torchs, numbers = WRITTEN[name]
    ours = getattr(library, name.split()[0])
    count = 2 if missing else 3
    every = torch.tensor([*itertools.product(SPECIAL, repeat=count)], dtype=torch.float64)
    found = [lambda x, y, *w, f=function: f(x, y, *numbers, *w) for function in (ours, torchs)]
    return *found, [*every.unbind(-1)]


def result(function, place):
    def of(*given):
        found = function(*given)
        return found[place] if isinstance(found, tuple) else found

    return of


ANY = [
    pytest.param(name, place, missing, id=f"{name} {place} {'without' if missing else 'with'} w")
    for name in WRITTEN
    for place in range(1 if name == "known_or" else 2)
    for missing in (True, False)
]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name, place, missing", ANY)
def test_values_and_derivatives_at_infinities(pointwisetest, name, place, missing, path):
    *both, given = cases(pointwisetest, name, missing)
    own, torchs = (result(function, place) for function in both)
    same = {"equal_nan": True, "rtol": 0, "atol": 1e-12}
    assert_close(PATHS[path](own)(*given), torchs(*given), **same)
    wanted = tuple(range(len(given)))

    def gradients(function):
        return grad(lambda *x: function(*x).nan_to_num().sum(), wanted)

    def along(function):
        return lambda *x: jvp(function, x, tuple(torch.ones_like(v) for v in x))[1]

    for transform in (gradients, along):
        found = PATHS[path](transform(own))(*given)
        assert_close(found, transform(torchs)(*given), **same)
    for wrt in wanted:  # of one argument alone

        def of_one(value, f, wrt=wrt):
            return f(*given[:wrt], value, *given[wrt + 1 :])

        found, expected = (
            grad(lambda v, f=f: of_one(v, f).nan_to_num().sum())(given[wrt]) for f in (own, torchs)
        )
        assert_close(found, expected, **same)
