# SPDX-License-Identifier: BSD-3-Clause
"""Tangents of some arguments, where others have none: what is infinite along those is no part of
the tangent, as it is none of torch's."""

import itertools

import pytest
import torch
import written_with_torch
from every_path import PATHS
from torch.func import grad, jvp
from torch.testing import assert_close

SPECIAL = [0.0, -0.0, 0.5, 1.0, -1.0, -2.5, 3.0, float("inf"), -float("inf"), float("nan")]
NEGATIVE_TOO, EXPONENTS = [0.5, 1.0, -1.0, -2.5, 3.0], [-2.0, 0.5, 2.0, 3.0]


def power(x, y, scale=None):
    return x**y if scale is None else x**y * scale


def sum_and_product(x, y):
    return x + y, x * y


WRITTEN = {
    "power": (power, 2),
    "power scaled": (power, 3),
    "sum_and_product": (sum_and_product, 2),
    "picked_product": (lambda x, y, w: torch.where(x > y, x, y) * w, 3),
    "affine": (written_with_torch.affine, 3),
    "swiglu": (written_with_torch.swiglu, 2),
    "rotate": (written_with_torch.rotate, 3),
    "scaled": (written_with_torch.scaled, 2),
}
SUBSETS = [
    pytest.param(name, along, id=f"{name} {along}".replace("(", "").replace(")", ""))
    for name, (_, count) in WRITTEN.items()
    for size in range(1, count)
    for along in itertools.combinations(range(count), size)
]
ANY = pytest.mark.parametrize("name, along", SUBSETS)


def operator(library, name):
    return getattr(library, name.split()[0])


def arguments(*values):
    """All combinations of these values, in one tensor for each argument."""
    every = torch.tensor(list(itertools.product(*values)), dtype=torch.float64)
    return [*every.unbind(-1)]


def of_some(function, given, along):
    """A function of some of its arguments, with the others as they are."""

    def called(*chosen):
        values = dict(zip(along, chosen, strict=True))
        return function(*(values.get(place, value) for place, value in enumerate(given)))

    return called


def directional(function, given, along):
    """The derivatives of a function of some arguments, in a direction."""
    chosen = [given[place] for place in along]
    directions = [torch.full_like(value, 0.5 + place) for place, value in enumerate(chosen)]
    of = of_some(function, given, along)
    return lambda *values: jvp(of, values, tuple(directions))[1]


@pytest.mark.parametrize("path", PATHS)
@ANY
def test_tangents(pointwisetest, name, along, path):
    written, count = WRITTEN[name]
    given = arguments(*[SPECIAL] * count)
    chosen = [given[place] for place in along]
    own = PATHS[path](directional(operator(pointwisetest, name), given, along))(*chosen)
    assert_close(own, directional(written, given, along)(*chosen), equal_nan=True)


@ANY
def test_tangents_of_gradients(pointwisetest, name, along):
    """Forward over reverse: the gradient of the first argument along others. That of torch's power
    is constant along an exponent of zero, and is not compared there."""
    written, count = WRITTEN[name]
    is_power = name.startswith("power")
    values = [NEGATIVE_TOO, EXPONENTS, NEGATIVE_TOO] if is_power else [SPECIAL] * count
    given = arguments(*values[:count])

    def gradient(function):
        def first(*values):
            results = function(*values)
            return (results if isinstance(results, torch.Tensor) else results[0]).sum()

        return grad(first)

    chosen = [given[place] for place in along]
    own = directional(gradient(operator(pointwisetest, name)), given, along)(*chosen)
    expected = directional(gradient(written), given, along)(*chosen)
    assert_close(own, expected, equal_nan=True)


@pytest.mark.parametrize("along", [(0,), (1,)], ids=str)
def test_tangents_of_what_is_written_to(pointwisetest, along):
    given = arguments(SPECIAL, SPECIAL)
    chosen = [given[place] for place in along]

    def in_place(function):
        return lambda x, y: function(x * 1, y)

    own = directional(in_place(pointwisetest.power_), given, along)(*chosen)
    expected = directional(power, given, along)(*chosen)
    assert_close(own, expected, equal_nan=True)


@pytest.mark.parametrize("along", [(0,), (1,)], ids=str)
def test_a_tangent_has_the_size_of_the_result(pointwisetest, along):
    given = [torch.rand(3), torch.rand(2, 1)]
    chosen = [given[place] for place in along]
    for name in ("power", "sum_and_product"):
        own = directional(getattr(pointwisetest, name), given, along)(*chosen)
        expected = directional(WRITTEN[name][0], given, along)(*chosen)
        assert_close(own, expected)


def test_what_is_written_to_has_zeros_where_nothing_else_has_a_tangent(pointwisetest):
    """Its own says nothing about the result."""
    mask, x = torch.tensor([1.0, -1.0, 2.0]), torch.tensor([0.0, 2.0, float("inf")])
    tangent = torch.ones(3)

    def written(mask):
        return pointwisetest.inverse_where_(mask * 1, x)

    assert_close(jvp(written, (mask,), (tangent,))[1], torch.zeros(3))
