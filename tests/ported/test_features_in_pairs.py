# SPDX-License-Identifier: BSD-3-Clause
"""Calls of every kind under every transform and in every layout, beside composites of ATen's.

What an operator is and how it is called have their own tests; here two meet that nobody thought of
together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch.testing import assert_close
from torch.utils._pytree import tree_map
from torch.utils.checkpoint import checkpoint


@dataclass(frozen=True)
class Pair:
    """A function of two tensors that calls an operator of a namespace, and what it does."""

    ours: Callable
    aten: Callable
    can: str = ""  # ways that need a derivative: r(everse), t(angent)
    cannot: tuple[str, ...] = ()  # the ways in which the operator is refused, by name


def written(f):
    """What a call leaves in copies of its arguments, and returns."""

    def call(ops, x, y):
        d, e = x * 1, y + 1
        return (*f(ops, x, d, e, y.detach().cos()), d * e)

    return call


def nothing(_) -> tuple:
    return ()


def mixed(_, x, d, e, mask):
    return d.add_(x * mask), e.add_(x * mask)


def norms(ops, x, y):
    rows = x.flatten(0, -2) if x.dim() > 1 else x.reshape(1, -1)
    sums, squares = ops.norms(rows)
    return sums * 1, squares * y.reshape(rows.shape)


class Aten:
    """The operators, as composites."""

    norms = staticmethod(lambda x: (x.sum(1), x * x))


NO_FUNCTIONALIZE = ("functionalize", "vmap of functionalize")  # without results
TRACED = ("compile", "export", "compile, gradients")
PAIRS = {
    "two results": Pair(
        lambda ops, x, y: ops.two_or_zeros(x * y), lambda ops, x, y: (x * y * 2, x * y * 3), "rt"
    ),
    "the second of two": Pair(
        lambda ops, x, y: (y * 1, ops.two_or_zeros(x)[1] * y),
        lambda ops, x, y: (y * 1, x * 3 * y),
        "rt",
    ),
    "numbers": Pair(
        lambda ops, x, y: (ops.times_second(x, [4, 5]) + y, ops.times_second(y, 3)),
        lambda ops, x, y: (x * 5 + y, y * 3),
        "rt",
        cannot=TRACED,  # there is a kernel for the CPU alone
    ),
    "a list": Pair(
        lambda ops, x, y: tuple(ops.parts_or_zeros(x * y, 3)),
        lambda ops, x, y: (x * y * 1, x * y * 1, x * y * 1),
        "r",
        cannot=TRACED,  # there is a kernel for the CPU alone
    ),
    "a list of a list": Pair(
        lambda ops, x, y: tuple(ops.scaled_parts([x, y, x * y], 0.5)),
        lambda ops, x, y: tuple(torch.stack([t * 0.5, t], -1) for t in (x, y, x * y)),
        "r",
    ),
    "a rule": Pair(norms, lambda ops, x, y: norms(Aten, x, y), "rt"),
    "a result that is missing": Pair(
        lambda ops, x, y: (ops.maybe_two(x, False)[0] + y, *ops.maybe_two(y, True)),
        lambda ops, x, y: (x + y, y * 1, y * 2),
    ),
    "written": Pair(
        written(lambda ops, x, d, e, mask: ops.mixed(x, d, e, mask)), written(mixed), "r"
    ),
    "written functional": Pair(
        lambda ops, x, y: ops.mixed_functional(x, x * 1, y + 1, y.detach().cos()),
        lambda ops, x, y: mixed(ops, x, x * 1, y + 1, y.detach().cos()),
        "r",
    ),
    "written at both ends": Pair(
        written(lambda ops, x, d, e, mask: ops.mixed_ends(d, x, e)),
        written(lambda ops, x, d, e, mask: (d.add_(x), e.mul_(x))),
    ),
    "written first": Pair(
        written(lambda ops, x, d, e, mask: (ops.mixed_first(x, d, mask),)),
        written(lambda ops, x, d, e, mask: (d.add_(x * mask),)),
    ),
    "written and not returned": Pair(
        written(lambda ops, x, d, e, mask: nothing(ops.mixed_none(x, d, e, mask))),
        written(lambda ops, x, d, e, mask: nothing(mixed(ops, x, d, e, mask))),
        cannot=NO_FUNCTIONALIZE,
    ),
    "written in a list": Pair(
        written(lambda ops, x, d, e, mask: nothing(ops.mixed_lists(x, [d, e]))),
        written(lambda ops, x, d, e, mask: nothing((d.add_(x), e.add_(x)))),
        cannot=NO_FUNCTIONALIZE,
    ),
}


def tensors(layout: str) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)

    def made(*shape):
        return torch.rand(shape, generator=generator, dtype=torch.float64) + 0.5

    return {
        "contiguous": lambda: (made(2, 3), made(2, 3)),
        "transposed": lambda: (made(3, 2).t(), made(3, 2).t()),
        "slices": lambda: (made(2, 6)[:, ::2], made(4, 3)[::2]),
        "expanded": lambda: (made(1, 3).expand(2, 3), made(2, 1).expand(2, 3)),
        "empty": lambda: (made(0, 3), made(0, 3)),
        "of three dimensions": lambda: (made(2, 3, 2), made(2, 2, 3).mT),
    }[layout]()


LAYOUTS = ["contiguous", "transposed", "slices", "expanded", "empty", "of three dimensions"]


def loss(results, used=lambda i: True):
    terms = [(r * (i + 1)).sin().sum() for i, r in enumerate(results) if used(i)]
    return torch.stack(terms).sum()


def leaves(*given):
    return [t.detach().clone(memory_format=torch.preserve_format).requires_grad_() for t in given]


def gradients(f, x, y, used=lambda i: True, **options):
    given = leaves(x, y)
    options = {"allow_unused": True, "materialize_grads": True, **options}
    return given, torch.autograd.grad(loss(f(*given), used), given, **options)


def twice(f, x, y):
    given, first = gradients(f, x, y, create_graph=True)
    return torch.autograd.grad(
        loss(first), given, allow_unused=True, materialize_grads=True
    ) if any(g.requires_grad for g in first) else first  # fmt: skip


def batch(x, y, dim=0):
    return torch.stack([x, x + 1], dim), torch.stack([y, y * 2], dim)


def hooked(f, x, y):
    with torch.autograd.graph.saved_tensors_hooks(torch.clone, lambda t: t):
        return gradients(f, x, y)[1]


def without(mode):
    def way(f, x, y):
        with mode():
            return tree_map(torch.clone, f(x, y))

    return way


def compiled(f):
    torch._dynamo.reset()
    return torch.compile(f, backend="aot_eager", fullgraph=True)


def exported(f, x, y):
    class Module(torch.nn.Module):
        def forward(self, a, b):
            return f(a, b)

    return torch.export.export(Module(), (x, y)).run_decompositions().module()(x, y)


def checkpointed(f):
    return lambda a, b: checkpoint(f, a, b, use_reentrant=False)


PLAIN = {
    "eager": lambda f, x, y: f(x, y),
    "no_grad": without(torch.no_grad),
    "inference_mode": without(torch.inference_mode),
    "vmap": lambda f, x, y: torch.vmap(f)(*batch(x, y)),
    "vmap of the last dimension": lambda f, x, y: torch.vmap(f, in_dims=-1)(*batch(x, y, -1)),
    "vmap of both in turn": lambda f, x, y: torch.vmap(torch.vmap(f))(*batch(*batch(x, y))),
    "functionalize": lambda f, x, y: torch.func.functionalize(f)(x, y),
    "vmap of functionalize": lambda f, x, y: torch.vmap(torch.func.functionalize(f))(*batch(x, y)),
    "compile": lambda f, x, y: compiled(f)(x, y),
    "export": exported,
}
REVERSE = {
    "gradients": lambda f, x, y: gradients(f, x, y)[1],
    "gradients of the first": lambda f, x, y: gradients(f, x, y, lambda i: i == 0)[1],
    "gradients of what is behind": lambda f, x, y: gradients(f, x, y, lambda i: i > 0)[1],
    "second derivatives": twice,
    "checkpoint": lambda f, x, y: gradients(checkpointed(f), x, y)[1],
    "saved tensor hooks": hooked,
    "jacrev": lambda f, x, y: torch.func.jacrev(lambda *given: f(*given)[-1], (0, 1))(x, y),
    "vmap of grad": lambda f, x, y: torch.vmap(
        torch.func.grad(lambda *given: loss(f(*given)), (0, 1))
    )(*batch(x, y)),
    "grad of vmap": lambda f, x, y: torch.func.grad(
        lambda *given: loss(torch.vmap(f)(*batch(*given))), (0, 1)
    )(x, y),
    "grad of functionalize": lambda f, x, y: torch.func.grad(
        lambda *given: loss(torch.func.functionalize(f)(*given)), (0, 1)
    )(x, y),
    "compile, gradients": lambda f, x, y: gradients(compiled(f), x, y)[1],
}
TANGENT = {
    "jvp": lambda f, x, y: torch.func.jvp(f, (x, y), (x.cos(), y.sin())),
    "jacfwd": lambda f, x, y: torch.func.jacfwd(lambda *given: f(*given)[-1], (0, 1))(x, y),
    "hessian": lambda f, x, y: torch.func.hessian(lambda *given: loss(f(*given)), (0, 1))(x, y),
    "vmap of jvp": lambda f, x, y: torch.vmap(
        lambda a, b: torch.func.jvp(f, (a, b), (a.cos(), b.sin()))
    )(*batch(x, y)),
}
WAYS = {**PLAIN, **REVERSE, **TANGENT}
MET = [
    (name, way)
    for name, pair in PAIRS.items()
    for way in WAYS
    if way not in pair.cannot
    and (way not in REVERSE or "r" in pair.can)
    and (way not in TANGENT or "t" in pair.can)
]


@pytest.mark.parametrize(("name", "way"), MET)
def test_it_gives_what_the_composite_gives(name, way, ops) -> None:
    pair, go = PAIRS[name], WAYS[way]
    for layout in LAYOUTS[:3] if way in TRACED else LAYOUTS:
        if layout == "expanded" and way in TANGENT:
            continue  # torch refuses a tangent of such a tensor
        expected = go(lambda x, y: pair.aten(ops, x, y), *tensors(layout))
        found = go(lambda x, y: pair.ours(ops, x, y), *tensors(layout))
        assert_close(found, expected, msg=lambda text, layout=layout: f"{layout}: {text}")
