# SPDX-License-Identifier: BSD-3-Clause
"""Branches that are chosen when an operator is called, beside Python's own: what is missing, and
what a flag leaves out, is no part of values, nor of derivatives."""

import pytest
import torch
from torch.func import grad, jacfwd, jacrev, jvp, vmap
from torch.testing import assert_close


def gather(x, target):
    return x.gather(-1, target[..., None])[..., 0]


def flagged(x, y, flag=False, k=0):
    return x * y if flag else x / (y - y) if k > 1 else y.sqrt() * x


def over_sum(x, w=None):
    return x * 1 if w is None else x / w.sum(-1, keepdim=True)


def counted(x, w=None):
    return x / (x.shape[-1] if w is None else w.sigmoid().sum(-1, keepdim=True))


def picked(x, target=None):
    return x.logsumexp(-1) - (0 if target is None else gather(x, target))


def apart_from(x, target=None):
    chosen = None if target is None else gather(x, target)[..., None]
    return x * 1 if target is None else (x - chosen) * chosen.exp()


def normed(x, w=None, s=None):
    scale = 1 if w is None else w / w.amax(-1, keepdim=True)
    return (x if s is None else x / s[..., None]).softmax(-1) * scale


def mean_or(x, w=None):
    v = (x.mean(-1, keepdim=True) if w is None else w).expand(x.shape)
    return v.sum(-1, keepdim=True) * x + v + (v * 2).softmax(-1)


def of_one_number(x, w=None):
    if w is None:
        return x * 0.5
    others = w.argmax(-1, keepdim=True) + (w + w).var(-1, keepdim=True)
    return x * w.amax(-1, keepdim=True) + others


X, W, S, INDEX, WIDE = "X", "W", "S", "INDEX", "WIDE"
WRITTEN = {
    "over": (lambda x, w=None: x * 1 if w is None else x / w, [(X,), (X, W), (X, WIDE)]),
    "flagged": (flagged, [(X, W, f, k) for f in (True, False) for k in (0, 2)]),
    "both_given": (
        lambda x, w=None, b=None: x * 1 if w is None or b is None else x * w.log() / b,
        [(X,), (X, W), (X, None, W), (X, W, WIDE)],
    ),
    "over_sum": (over_sum, [(X,), (X, W), (X, WIDE)]),
    "counted": (counted, [(X,), (X, W), (X, WIDE)]),
    "picked": (picked, [(X,), (X, INDEX)]),
    "picked_of": (
        lambda x, t, w=None: gather(x, t) if w is None else gather(w.log() * x, t),
        [(X, INDEX), (X, INDEX, W)],
    ),
    "apart_from": (apart_from, [(X,), (X, INDEX)]),
    "normed": (normed, [(X,), (X, W), (X, None, S), (X, W, S)]),
    "mean_or": (mean_or, [(X,), (X, W), (X, WIDE)]),
    "of_one_number": (of_one_number, [(X,), (X, W), (X, WIDE)]),
}
CASES = [(name, call) for name, (_, calls) in WRITTEN.items() for call in calls]
ANY = pytest.mark.parametrize("name, call", CASES, ids=lambda one: str(one).replace("'", ""))


def arguments_of(call):
    generator = torch.Generator().manual_seed(3)

    def made(*size):
        return torch.rand(size, generator=generator, dtype=torch.float64) + 0.5

    of = {X: made(3, 4), W: made(4), WIDE: made(3, 4), S: made(3), INDEX: torch.tensor([1, 0, 3])}
    return [of[kind] if isinstance(kind, str) else kind for kind in call]


def cases(rowstest, name, call):
    """Ours and Python's, of the tensors that have gradients, and these."""
    given = arguments_of(call)
    places = [
        i for i, a in enumerate(given) if isinstance(a, torch.Tensor) and a.dtype.is_floating_point
    ]

    def of_leaves(function):
        def called(*leaves):
            all_ = [*given]
            for place, leaf in zip(places, leaves):
                all_[place] = leaf
            return function(*all_)

        return called

    ours, pythons = getattr(rowstest, name), WRITTEN[name][0]
    return of_leaves(ours), of_leaves(pythons), [given[i] for i in places]


def same(own, expected):
    assert_close(own, expected, equal_nan=True)


@ANY
def test_values_and_derivatives_are_those_of_pythons_branches(rowstest, name, call):
    ours, pythons, leaves = cases(rowstest, name, call)
    same(ours(*leaves), pythons(*leaves))
    moves = tuple(leaf.cos() for leaf in leaves)
    same(*(jvp(f, tuple(leaves), moves)[1] for f in (ours, pythons)))
    for count in range(1, len(leaves) + 1):
        wanted = tuple(range(count))
        both = [lambda *x, f=f: f(*x).sin().sum() for f in (ours, pythons)]
        same(*(grad(f, wanted)(*leaves) for f in both))
        for first in (jacrev, jacfwd):
            for second in (jacrev, jacfwd):
                same(*(first(second(f, wanted), wanted)(*leaves) for f in both))
        same(*(jacrev(jacrev(jacrev(f, wanted), wanted), wanted)(*leaves) for f in both))


@ANY
def test_batches(rowstest, name, call):
    ours, pythons, leaves = cases(rowstest, name, call)
    for first in range(len(leaves)):
        dims = [0 if i >= first else None for i in range(len(leaves))]
        given = [
            leaf if d is None else torch.stack([leaf, leaf + 1]) for leaf, d in zip(leaves, dims)
        ]
        same(*(vmap(f, tuple(dims))(*given) for f in (ours, pythons)))
        gradients = [
            vmap(grad(lambda *x, f=f: f(*x).sin().sum()), tuple(dims)) for f in (ours, pythons)
        ]
        same(*(f(*given) for f in gradients))


# Inductor takes ten seconds for each.
BY_INDUCTOR = ("normed", "counted")


@pytest.mark.parametrize(
    ("name", "backend"),
    [
        pytest.param(
            name,
            backend,
            marks=[pytest.mark.slow] * (backend == "inductor" and name not in BY_INDUCTOR),
        )
        for name in WRITTEN
        for backend in ("aot_eager_decomp_partition", "inductor")
    ],
)
def test_compiled(rowstest, name, backend):
    for call in WRITTEN[name][1]:
        ours, pythons, leaves = cases(rowstest, name, call)
        torch._dynamo.reset()
        compiled = torch.compile(ours, backend=backend, fullgraph=True)
        found = []
        for function in (compiled, pythons):
            own = [leaf.clone().requires_grad_() for leaf in leaves]
            result = function(*own)
            result.sin().sum().backward()
            found.append([result.detach(), own[0].grad])
        same(*found)


def test_integers_are_not_divided_by_what_is_missing(rowstest):
    x = torch.arange(-20, 21)
    for given in (x, x.to(torch.int8)):
        same(rowstest.modulo(given), given)
        same(rowstest.modulo(given, torch.tensor(3)), given % 3)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        rowstest.modulo(x, torch.tensor(0))


def test_a_row_of_one_element_has_no_place_that_is_missing(rowstest):
    x = torch.randn(3, 1)
    same(rowstest.picked(x), x.logsumexp(-1))
    same(rowstest.apart_from(x), x)
