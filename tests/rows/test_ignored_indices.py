# SPDX-License-Identifier: BSD-3-Clause
"""Elements that an index chooses where a condition on it holds: elsewhere it may be no place of the
row, for values and for every derivative."""

import pytest
import torch
from every_path import PATHS
from rows_with_torch import as_tuple
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vmap
from torch.testing import assert_close

X = torch.linspace(-1, 2, 20, dtype=torch.float64).sin().reshape(4, 5)
W = torch.linspace(0.5, 2, 5, dtype=torch.float64)
TARGET = torch.tensor([1, -100, 4, -100])


def cross_entropy(x, target, weight=None, ignored=-100):
    at = torch.where(target == ignored, 0, target)[..., None]
    found = x.logsumexp(-1) - x.gather(-1, at)[..., 0]
    if weight is not None:
        found = found * weight.expand(x.shape).gather(-1, at)[..., 0]
    return torch.where(target == ignored, 0, found)


def chosen_products(x, y, index, ignored=-100):
    is_place = index >= 0
    at = index.clamp(min=0)[..., None]
    a, b = x.gather(-1, at)[..., 0], y.expand(x.shape).gather(-1, at)[..., 0]
    one = torch.where(is_place, a * b / (1 + b**2), x.sum(-1) * 2)
    return one, torch.where(is_place[..., None], x * b.exp()[..., None], y)


def chosen_logarithm(x, w, index):
    at = index.clamp(min=0)[..., None]
    chosen = w.expand(x.shape).gather(-1, at)
    return torch.where((index < 0)[..., None], 0, chosen.log() * x / chosen + chosen.sqrt())


CALLS = {
    "chosen_logarithm": (chosen_logarithm, [(X, W, TARGET)]),
    "weighted_cross_entropy": (cross_entropy, [(X, TARGET), (X, TARGET, W)]),
    "chosen_products": (chosen_products, [(X, X.flip(0), TARGET), (X, W, TARGET)]),
}
SITUATIONS = [(name, i) for name, (_, calls) in CALLS.items() for i in range(len(calls))]


def both(rowstest, name, index):
    """The operator and torch's of its floats, and these."""
    torchs, calls = CALLS[name]
    given = calls[index]
    smooth = [i for i, a in enumerate(given) if a.is_floating_point()]

    def of(function):
        def called(*floats):
            whole = list(given)
            for place, value in zip(smooth, floats):
                whole[place] = value
            return as_tuple(function(*whole))

        return called

    return of(getattr(rowstest, name)), of(torchs), [given[i] for i in smooth]


@pytest.mark.parametrize(("name", "index"), SITUATIONS)
@pytest.mark.parametrize("path", PATHS)
def test_values_and_gradients(rowstest, name, index, path):
    torch._dynamo.reset()
    torchs, calls = CALLS[name]
    results = []
    for function in (PATHS[path](getattr(rowstest, name)), torchs):
        given = [a.clone().requires_grad_(a.is_floating_point()) for a in calls[index]]
        found = as_tuple(function(*given))
        floats = [a for a in given if a.requires_grad]
        results.append((*found, *torch.autograd.grad(sum(r.sin().sum() for r in found), floats)))
    assert_close(*results)


@pytest.mark.parametrize(("name", "index"), SITUATIONS)
@pytest.mark.parametrize(
    "nested", [hessian, lambda f: jacrev(jacrev(f)), lambda f: jacrev(jacfwd(f))]
)
def test_second_derivatives(rowstest, name, index, nested):
    own, torchs, floats = both(rowstest, name, index)
    found, expected = (
        nested(lambda x, f=f: sum(r.sin().sum() for r in f(x, *floats[1:])))(floats[0])
        for f in (own, torchs)
    )
    assert_close(found, expected)


@pytest.mark.parametrize(("name", "index"), SITUATIONS)
def test_tangents_and_batches(rowstest, name, index):
    own, torchs, floats = both(rowstest, name, index)
    given = tuple(floats), tuple(a.cos() for a in floats)
    assert_close(jvp(own, *given), jvp(torchs, *given))
    function, calls = getattr(rowstest, name), CALLS[name][1][index]
    dims = tuple(0 if a.dim() and a.shape[0] == 4 else None for a in calls)
    smooth = tuple(i for i, a in enumerate(calls) if a.is_floating_point())

    def total(function):
        return grad(lambda *a: sum(r.sin().sum() for r in as_tuple(function(*a))), smooth)

    found, expected = (vmap(total(f), dims)(*calls) for f in (function, CALLS[name][0]))
    assert_close(found, expected)


def test_an_index_is_refused_where_it_is_wanted(rowstest):
    for target in (torch.tensor([0, -100, 5, 1]), torch.tensor([0, -1, 0, 0])):
        x = X.clone().requires_grad_()
        with pytest.raises(IndexError, match="target has (5|-1), and rows have 5 elements"):
            rowstest.weighted_cross_entropy(x, target, W)
