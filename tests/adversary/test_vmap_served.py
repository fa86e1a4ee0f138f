# SPDX-License-Identifier: BSD-3-Clause
"""torch.vmap of operators without `vmap:`: lists, views, what is written, batches of size 0; each
beside the same made of ATen's operators, under the transforms crossed with each other."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from library_build import build_and_load
from torch import vmap
from torch.func import functionalize, grad, jacfwd, jacrev, jvp
from torch.utils._pytree import tree_leaves, tree_map

N = 3

pytestmark = pytest.mark.usefixtures("without_vmap_warnings")


@pytest.fixture(scope="session")
def ops():
    """The operators of vmaptest/."""
    return build_and_load(Path(__file__).parent / "vmaptest", "vmaptest_library.so")


class Aten:
    """The same as the operators of vmaptest, of ATen's."""

    @staticmethod
    def scaled(xs, ys):
        return [x * 2 if y is None else x * y for x, y in zip(xs, ys)]

    @staticmethod
    def add_to_all(xs, y):
        batched = [torch._C._functorch.is_batchedtensor(x) for x in xs]
        if not all(batched) and any([*batched, torch._C._functorch.is_batchedtensor(y)]):
            raise RuntimeError("one list is written, which is not possible because ...")
        for x in xs:
            x.add_(y)

    @staticmethod
    def powers(x, n):
        return [x**i for i in range(1, n + 1)], x.sum()

    @staticmethod
    def described(x):
        return x * 2, x.dim(), x.numel() / 2, x.is_floating_point(), "tensor"

    @staticmethod
    def turned(x, first, second):
        return x.transpose(first, second)

    @staticmethod
    def cut(x, size):
        return x.split(size)

    @staticmethod
    def chosen(xs, index):
        return xs[index][1:]

    @staticmethod
    def turned_and_summed(x):
        return x.t(), x.sum()

    turned_by_parts = turned
    as_real = staticmethod(torch.view_as_real)
    as_complex = staticmethod(torch.view_as_complex)
    conjugated = staticmethod(torch.conj)

    @staticmethod
    def imaginary(x):
        return torch.view_as_real(x)[..., 1]

    @staticmethod
    def as_dtype(x, dtype):
        return x.view(dtype)

    @staticmethod
    def turn_(x, first, second):
        return x.transpose_(first, second)

    @staticmethod
    def wrap_(x, dim):
        return x.unsqueeze_(dim)

    @staticmethod
    def unwrap_(x):
        return x.squeeze_()

    @staticmethod
    def flatten_(x):
        return x.flatten()

    @staticmethod
    def tracked(x, running):
        running.mul_(0.5).add_(x.detach().mean())
        return x * x

    @staticmethod
    def swapped(x, y):
        old = x.clone()
        x.copy_(y)
        return y.copy_(old), x

    @staticmethod
    def scale_(x, y):
        return x.mul_(y)

    @staticmethod
    def on_cpu(x, w):
        product = (x * w).unsqueeze(-1)
        return torch.cat([product, product], -1)

    with_meta = of_parts = on_cpu


def through(view: Callable) -> Callable:
    """Writes to what a call returns, and returns what it is a view of, too."""

    def call(o, x):
        given = x * 1
        found = view(o, given)
        found.mul_(found.detach() + 2)
        return given.sin(), found

    return call


def in_place(change: Callable) -> Callable:
    """Calls with a copy, of whose history the tensors are."""

    def call(o, x, *more):
        given = (x * 1).contiguous()
        changed = change(o, given, *more)
        assert o is Aten or changed is given
        return changed * changed

    return call


def of_complex(view: Callable) -> Callable:
    return lambda o, x: torch.view_as_real(view(o, torch.complex(x, x * x)).to(torch.cdouble) ** 2)


def as_complex(o, x):
    return torch.view_as_real(o.as_complex(x * 2) ** 2)


def to_all(o, x, y, w):
    o.add_to_all([x, y], w)
    return x, y


@dataclass(frozen=True)
class Situation:
    """What is called for an example, whose tensors have these shapes."""

    name: str
    call: Callable  # of the operators and the tensors; gives tensors
    shapes: tuple[tuple[int, ...], ...]
    # of a batch by the layouts of views, that and a tangent, or by a formula of its own
    derivative: str = ""
    writes: bool = False  # to its tensors
    graph: bool = False  # torch.compile and functionalize trace it

    def __str__(self) -> str:
        return self.name.replace(" ", "_")

    def tensors(self, *levels: tuple, sizes: tuple[int, ...] = (N, 2)) -> list[torch.Tensor]:
        """Fresh ones, batched for each level of in_dims, the innermost first."""
        generator = torch.Generator().manual_seed(5)
        found = []
        for index, shape in enumerate(self.shapes):
            shape = list(shape)
            for level, size in zip(levels, sizes):
                if level[index] is not None:
                    shape.insert(level[index] % (len(shape) + 1), size)
            found.append(torch.rand(shape, generator=generator, dtype=torch.double) + 0.5)
        return found


M, V = (4, 5), (5,)
SITUATIONS = [
    Situation("list", lambda o, x, y, w: o.scaled([x, w], [y, None]), (M, M, V), graph=True),
    Situation("lists", lambda o, x: o.powers(x, 2), (M,), graph=True),
    Situation("written list", to_all, (M, M, V), writes=True, graph=True),
    Situation("numbers", lambda o, x: o.described(x)[0], (M,)),
    Situation("view", lambda o, x: o.turned(x, 0, 1), (M,), "gradient"),
    Situation("view of three", lambda o, x: o.turned(x, 0, -1), ((2, 3, 4),), "gradient"),
    Situation("view by parts", lambda o, x: o.turned_by_parts(x, 0, 1), (M,), "formula"),
    Situation("views", lambda o, x: list(o.cut(x, 3)), (M,), "gradient"),
    Situation("view of a list", lambda o, x, y: o.chosen([x, y], 1), (M, M), "gradient"),
    Situation("view beside a sum", lambda o, x: o.turned_and_summed(x), (M,)),
    Situation("complex as real", of_complex(lambda o, z: o.as_real(z)), (M,), "gradient"),
    Situation("conjugated", of_complex(lambda o, z: o.conjugated(z)), (M,), "gradient"),
    Situation("imaginary", of_complex(lambda o, z: o.imaginary(z)), (M,), "gradient"),
    Situation("real as complex", as_complex, ((3, 2),), "gradient"),
    Situation("integers", lambda o, x: o.as_dtype(x, torch.int64), (M,)),
    Situation("halves", lambda o, x: o.as_dtype(x.clone(), torch.int32), (M,)),
    Situation("writing to a view", through(lambda o, x: o.turned(x, 0, 1)), (M,), "gradient"),
    Situation("writing to one of views", through(lambda o, x: o.cut(x, 3)[1]), (M,)),
    Situation("in-place view", in_place(lambda o, x: o.turn_(x, 0, 1)), (M,), "tangent"),
    Situation("turned in place", in_place(lambda o, x: o.turn_(x, 0, 2)), ((2, 3, 4),), "tangent"),
    Situation("turned square", in_place(lambda o, x: o.turn_(x, 0, 1)), ((4, 4),), "tangent"),
    Situation("new dimension", in_place(lambda o, x: o.wrap_(x, 1)), (M,), "tangent"),
    Situation("lost dimension", in_place(lambda o, x: o.unwrap_(x)), ((1, 4, 1, 5),), "tangent"),
    Situation("flattened in place", in_place(lambda o, x: o.flatten_(x)), (M,), "gradient"),
    Situation("argument turned in place", lambda o, x: o.turn_(x, 0, 1), (M,), writes=True),
    Situation("aside", lambda o, x, r: (o.tracked(x, r), r), (M, M), writes=True, graph=True),
    Situation("swapped", lambda o, x, y: o.swapped(x, y), (M, M), writes=True, graph=True),
    Situation("scaled in place", in_place(lambda o, x, y: o.scale_(x, y)), (M, M), "formula"),
    Situation("without Meta", lambda o, x, w: o.on_cpu(x, w), (M, V), "formula"),
    Situation("with Meta", lambda o, x, w: o.with_meta(x, w), (M, V), "formula", graph=True),
    Situation("of parts", lambda o, x, w: o.of_parts(x, w), (M, V), "formula", graph=True),
]  # fmt: skip
DIFFERENTIABLE = [s for s in SITUATIONS if s.derivative]
WITH_FORMULA = [s for s in SITUATIONS if s.derivative == "formula"]


def places(situation: Situation) -> list[tuple]:
    """in_dims: all tensors, in the first dimension, in the last or by turns, and each one alone."""
    count = len(situation.shapes)
    if situation.name in ("real as complex", "halves"):
        return [(0,), (1,)]  # in the last, strides are none that they take
    alone = [tuple(0 if i == j else None for j in range(count)) for i in range(count)]
    turns = tuple(-(i % 2) for i in range(count))
    return list(dict.fromkeys([(0,) * count, (1,) * count, (-1,) * count, turns, *alone]))


CASES = [pytest.param(s, dims, id=f"{s}-{dims}") for s in SITUATIONS for dims in places(s)]
DIFFERENTIABLE_CASES = [case for case in CASES if case.values[0].derivative]


def both(situation: Situation, ops, run: Callable) -> tuple:
    """What `run(function of the tensors)` gives for the operators and for ATen's."""
    functions = [lambda *t, o=o: situation.call(o, *t) for o in (ops, Aten)]
    return run(functions[0]), run(functions[1])


def assert_same(actual, expected) -> None:
    assert type(actual) is type(expected), (actual, expected)
    if isinstance(expected, str):
        assert (actual, expected) == ("refused", "refused")
        return
    actual, expected = tree_leaves(actual), tree_leaves(expected)
    torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-12)


# What no batch is written to, and what no view is of.
REFUSED = r"is not possible because|writes to '\w+', which is not batched|broadcast shape|stride"


def attempted(f: Callable):
    """What a call gives, or that it is refused."""
    try:
        return f()
    except RuntimeError as error:
        assert re.search(REFUSED, str(error)), error
        return "refused"


@pytest.mark.parametrize(("situation", "in_dims"), CASES)
@pytest.mark.parametrize("out_dim", [0, -1])
def test_values_and_what_is_written_are_those_of_aten(situation, in_dims, out_dim, ops) -> None:
    out_dim = 0 if None in in_dims else out_dim  # a result of ATen's may have no batch

    def run(f):
        given = situation.tensors(in_dims)
        return attempted(lambda: (tree_leaves(vmap(f, in_dims, out_dim)(*given)), given))

    assert_same(*both(situation, ops, run))


@pytest.mark.parametrize("situation", SITUATIONS, ids=str)
def test_nested_batches_are_those_of_aten(situation, ops) -> None:
    every = places(situation)
    for inner, outer in itertools.product(every[:3], [*every[:2], *every[-1:]]):

        def run(f, inner=inner, outer=outer):
            given = situation.tensors(inner, outer)
            return attempted(lambda: (tree_leaves(vmap(vmap(f, inner), outer)(*given)), given))

        assert_same(*both(situation, ops, run))


# ATen's squeeze_ takes the batch of a chunk of one example for a dimension of it.
CHUNKED = [s for s in SITUATIONS if not s.writes and s.name != "lost dimension"]


@pytest.mark.parametrize("situation", CHUNKED, ids=str)
def test_chunks_are_those_of_aten(situation, ops) -> None:
    in_dims = places(situation)[0]

    def run(f):
        return vmap(f, in_dims, chunk_size=2)(*situation.tensors(in_dims))

    assert_same(*both(situation, ops, run))


# -- gradients and tangents


def total(results) -> torch.Tensor:
    """A number of which each element of the results has a part of its own."""
    parts = []
    for index, result in enumerate(tree_leaves(results)):
        weights = torch.linspace(1, 2, result.numel(), dtype=result.dtype).view(result.shape)
        parts.append(((index + 1) * weights * result * result).sum())
    return sum(parts[1:], parts[0])


@pytest.mark.parametrize(("situation", "in_dims"), DIFFERENTIABLE_CASES)
def test_gradients_of_both_orders_are_those_of_aten(situation, in_dims, ops) -> None:
    def run(f):
        given = [t.requires_grad_() for t in situation.tensors(in_dims)]

        def gradients():
            first = torch.autograd.grad(
                total(vmap(f, in_dims)(*given)), given, create_graph=True, materialize_grads=True
            )
            return first, torch.autograd.grad(
                total(first), given, allow_unused=True, materialize_grads=True
            )

        return attempted(gradients)

    assert_same(*both(situation, ops, run))


# torch.func tells no views of lists, and ATen's rules no negation that is a view.
FUNCTIONAL = [s for s in DIFFERENTIABLE if s.name not in ("view of a list", "conjugated")]


@pytest.mark.parametrize("situation", FUNCTIONAL, ids=str)
def test_grad_and_jacrev_of_a_batch_are_those_of_aten(situation, ops) -> None:
    for in_dims in places(situation)[:3]:

        def run(f, in_dims=in_dims):
            given = situation.tensors(in_dims)
            every = tuple(range(len(given)))
            zeros = (0,) * len(given)
            batched, nested = vmap(f, in_dims), vmap(vmap(f, in_dims), zeros)
            return attempted(
                lambda: [
                    grad(lambda *t: total(batched(*t)), every)(*given),
                    grad(lambda *t: total(nested(*t)), every)(*situation.tensors(in_dims, zeros)),
                    jacrev(lambda *t: tree_leaves(batched(*t))[0], every)(*given),
                ]
            )

        assert_same(*both(situation, ops, run))


@pytest.mark.parametrize("situation", WITH_FORMULA, ids=str)
def test_gradients_of_examples_are_those_of_aten(situation, ops) -> None:
    for in_dims in places(situation):

        def run(f, in_dims=in_dims):
            given = situation.tensors(in_dims)
            every = tuple(range(len(given)))

            def of_example(*t):
                return grad(lambda *t: total(f(*t)), every)(*t), jacrev(f, every)(*t)

            return attempted(lambda: vmap(of_example, in_dims)(*given))

        assert_same(*both(situation, ops, run))


TANGENTS = [s for s in DIFFERENTIABLE if s.derivative != "gradient" and "scaled" not in s.name]


@pytest.mark.parametrize("situation", TANGENTS, ids=str)
def test_tangents_of_a_batch_are_those_of_aten(situation, ops) -> None:
    for in_dims in places(situation)[:3]:

        def run(f, in_dims=in_dims):
            given = tuple(situation.tensors(in_dims))
            batched = vmap(f, in_dims)
            return jvp(batched, given, given), jacfwd(batched)(*given)

        assert_same(*both(situation, ops, run))


@pytest.mark.parametrize("situation", [s for s in WITH_FORMULA if s in TANGENTS], ids=str)
def test_tangents_of_examples_are_those_of_aten(situation, ops) -> None:
    for in_dims in places(situation):

        def run(f, in_dims=in_dims):
            given = tuple(situation.tensors(in_dims))
            return vmap(lambda *t: (jvp(f, t, t), jacfwd(f)(*t)), in_dims)(*given)

        assert_same(*both(situation, ops, run))


def test_a_layout_that_tangents_of_a_batch_cannot_have_is_refused(ops) -> None:
    x = torch.rand(N, 4, 4)
    with pytest.raises(RuntimeError, match="vmap: vmaptest::flatten_ gives its argument a layout"):
        jacfwd(vmap(lambda x: ops.flatten_(x * 1)))(x)


def test_a_view_without_gradient_has_none(ops) -> None:
    x = torch.rand(N, 4, requires_grad=True)
    view = vmap(ops.constant_view)(x)
    assert view.requires_grad == ops.constant_view(x[0]).requires_grad
    assert view.data_ptr() == x.data_ptr() + x.element_size()


# -- views are views


VIEWS = {
    "turned": (lambda o, x: o.turned(x, 0, 1), torch.double),
    "cut": (lambda o, x: o.cut(x, 3)[1], torch.double),
    "chosen": (lambda o, x: o.chosen([x * 1, x], 1), torch.double),
    "as_real": (lambda o, x: o.as_real(x), torch.cdouble),
    "conjugated": (lambda o, x: o.conjugated(x), torch.cdouble),
    "imaginary": (lambda o, x: o.imaginary(x), torch.cdouble),
    "as_dtype": (lambda o, x: o.as_dtype(x, torch.int64), torch.double),
    "as_smaller": (lambda o, x: o.as_dtype(x, torch.int16), torch.double),
    "as_larger": (lambda o, x: o.as_dtype(x, torch.cdouble), torch.double),
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("is_nested", [False, True])
@pytest.mark.parametrize("is_inside", [False, True])
def test_writing_to_a_view_changes_the_argument(name, is_nested, is_inside, ops) -> None:
    view, dtype = VIEWS[name]

    def run(o):
        x = torch.arange(2 * N * 4 * 6).view(2, N, 4, 6).to(dtype)

        def call(x):
            found = view(o, x)
            return found.zero_() if is_inside else found

        result = (vmap(vmap(call)) if is_nested else vmap(call))(x if is_nested else x[1])
        if not is_inside:
            result.zero_()
        return x

    changed, expected = run(ops), run(Aten)
    assert (changed == 0).any() or changed.is_complex()
    assert_same(changed, expected)


@pytest.mark.parametrize("kept", [torch.Tensor.conj, lambda z: z.resolve_conj() * 1])
def test_conjugate_and_negative_bits_are_kept(kept, ops) -> None:
    z = kept(torch.randn(N, 4, dtype=torch.cdouble))
    assert_same(vmap(ops.conjugated)(z), z.conj())
    assert vmap(ops.conjugated)(z).is_conj() == z.conj().is_conj()
    assert_same(vmap(ops.imaginary)(z), z.imag)
    assert vmap(ops.imaginary)(z).is_neg() == z.imag.is_neg()
    assert_same(vmap(lambda z: ops.imaginary(z.conj()))(z), z.conj().imag)


def test_what_is_not_batched_is_viewed_for_all_examples(ops) -> None:
    x, y = torch.rand(4, 5), torch.rand(N, 4, 5)
    for f in (lambda y: ops.chosen([x, y], 0), lambda y: ops.turned(x, 0, 1)):
        vmap(lambda y, f=f: f(y).zero_() + y.sum())(y)
    assert x[1:].eq(0).all() and x.eq(0).all()


def test_views_at_even_distances_are_one(ops) -> None:
    x, starts = torch.rand(N, 6), torch.tensor([0, 2, 4])
    expected = torch.stack([t[s : s + 2] for t, s in zip(x, starts.tolist())])
    result = vmap(lambda x, s: ops.window(x, s, 2))(x, starts)
    assert_same(result, expected)
    result.zero_()
    assert [t.eq(0).nonzero().flatten().tolist() for t in x] == [[0, 1], [2, 3], [4, 5]]
    shared = torch.rand(6)
    assert_same(vmap(lambda s: ops.window(shared, s, 2))(starts), shared.view(3, 2))


# -- batches of size 0


@pytest.mark.parametrize(("situation", "in_dims"), CASES)
def test_a_batch_of_nothing_is_that_of_aten(situation, in_dims, ops) -> None:
    def run(f):
        given = situation.tensors(in_dims, sizes=(0,))
        return attempted(lambda: (tree_leaves(vmap(f, in_dims)(*given)), given))

    assert_same(*both(situation, ops, run))


@pytest.mark.parametrize("situation", SITUATIONS, ids=str)
@pytest.mark.parametrize("sizes", [(0, 2), (2, 0), (0, 0)])
def test_nested_batches_of_nothing_are_those_of_aten(situation, sizes, ops) -> None:
    dims = places(situation)[0]

    def run(f):
        given = situation.tensors(dims, dims, sizes=sizes)
        return tree_leaves(vmap(vmap(f, dims), dims)(*given)), given

    assert_same(*both(situation, ops, run))


# Where ATen's formula views strides of nothing as complex numbers, it refuses them.
OF_NOTHING = [c for c in DIFFERENTIABLE_CASES if c.values[0].name != "complex as real"]


@pytest.mark.parametrize(("situation", "in_dims"), OF_NOTHING)
def test_gradients_of_a_batch_of_nothing_are_those_of_aten(situation, in_dims, ops) -> None:
    def run(f):
        given = [t.requires_grad_() for t in situation.tensors(in_dims, sizes=(0,))]
        every = tuple(range(len(given)))

        def gradients():
            found = vmap(f, in_dims)(*given)
            first = torch.autograd.grad(
                total(found), given, allow_unused=True, materialize_grads=True
            )
            plain = [t.detach() for t in given]
            return first, grad(lambda *t: total(vmap(f, in_dims)(*t)), every)(*plain)

        return attempted(gradients)

    assert_same(*both(situation, ops, run))


@pytest.mark.parametrize("situation", WITH_FORMULA, ids=str)
def test_gradients_of_no_examples_are_those_of_aten(situation, ops) -> None:
    in_dims = places(situation)[0]

    def run(f):
        given = situation.tensors(in_dims, sizes=(0,))
        every = tuple(range(len(given)))
        return vmap(grad(lambda *t: total(f(*t)), every), in_dims)(*given)

    assert_same(*both(situation, ops, run))


def test_what_a_batch_of_nothing_needs_no_values_for(ops) -> None:
    nothing = torch.rand(0, 4, 4, requires_grad=True)
    inverse = vmap(ops.inverse)(nothing)  # zeros have none
    inverse.sum().backward()
    assert inverse.shape == nothing.grad.shape == (0, 4, 4)
    signs = vmap(ops.signs)(nothing)
    assert signs.shape == (0, 4, 4) and not signs.requires_grad
    promoted = vmap(ops.with_meta, (0, None))(torch.zeros(0, 4, dtype=torch.int), torch.rand(4))
    assert (promoted.shape, promoted.dtype) == ((0, 4, 2), torch.float)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("counted", "a call on zeros failed: a result is no tensor, and there is no example to"),
        ("largest", "a call on zeros failed: its results depend on values by its tags"),
        ("inverse_on_cpu", "it has no Meta kernel; a call on zeros failed: linalg.inv"),
    ],
)
def test_what_nothing_says_of_a_batch_of_nothing_is_refused_by_name(name, why, ops) -> None:
    with pytest.raises(RuntimeError, match=f"vmap: vmaptest::{name} has a batch of size 0.*{why}"):
        vmap(lambda x: tree_leaves(getattr(ops, name)(x))[0])(torch.zeros(0, 4, 4))


# -- compiled

GRAPHS = [s for s in SITUATIONS if s.graph]


@pytest.mark.parametrize("situation", GRAPHS, ids=str)
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_batches_are_those_of_aten(situation, backend, dynamic, ops) -> None:
    for in_dims in places(situation)[:2]:
        torch._dynamo.reset()

        def run(f, in_dims=in_dims):
            def function(*given):
                given = [t * 2 for t in given]
                return vmap(f, in_dims)(*given), given

            is_aten = f.__defaults__ == (Aten,)
            chosen = torch.compile(function, backend=backend, dynamic=dynamic, fullgraph=True)
            given = situation.tensors(in_dims)
            return tree_leaves((function if is_aten else chosen)(*given)), given

        assert_same(*both(situation, ops, run))


@pytest.mark.parametrize("situation", [s for s in GRAPHS if s.derivative], ids=str)
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_gradients_are_those_of_aten(situation, backend, ops) -> None:
    in_dims = places(situation)[0]

    def run(f):
        every = tuple(range(len(in_dims)))

        def function(*given):
            inside = vmap(grad(lambda *t: total(f(*t)), every), in_dims)(*given)
            return total(vmap(f, in_dims)(*given)), inside

        is_aten = f.__defaults__ == (Aten,)
        chosen = torch.compile(function, backend=backend, fullgraph=True)
        given = [t.requires_grad_() for t in situation.tensors(in_dims)]
        found, inside = (function if is_aten else chosen)(*given)
        return torch.autograd.grad(found, given, retain_graph=True), tree_map(torch.detach, inside)

    assert_same(*both(situation, ops, run))


# torch functionalizes by itself what writes beside new results, under torch.compile alone.
FUNCTIONALIZED = [s for s in GRAPHS if s.name not in ("aside", "written list")]


@pytest.mark.parametrize("situation", FUNCTIONALIZED, ids=str)
def test_functionalized_batches_are_those_of_aten(situation, ops) -> None:
    in_dims = places(situation)[0]

    def run(f):
        given = situation.tensors(in_dims)
        return tree_leaves(functionalize(vmap(f, in_dims))(*given)), given

    assert_same(*both(situation, ops, run))


# -- what is refused, by name


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda o: vmap(lambda x: o.counted(x)[0])(torch.eye(N, 4).cumsum(0)),
            "counted returns 1 for one example of the batch, and 2 for another: what is no tensor",
        ),
        (
            lambda o: vmap(o.halves)(torch.tensor([[1, 2, 3], [2, 1, 3]])),
            "halves returns a list of 3 for one example of the batch, and one of 2 for another",
        ),
        (
            lambda o: vmap(o.positive)(torch.eye(N, 4).cumsum(0)),
            r"positive has a result of shape \[1\], Float on cpu, for one example .* shape \[2\]",
        ),
        (
            lambda o: vmap(o.narrowest)(torch.tensor([[1], [1000]])),
            "narrowest has a result of shape .* Char on cpu, .* Long on cpu, for another",
        ),
        (
            lambda o: vmap(lambda s: o.window(torch.ones(6), s, 2))(torch.tensor([0, 4, 2])),
            "window views each example of the batch in another way: no view of 'x' is a batch",
        ),
        (lambda o: vmap(o.grow_)(torch.rand(N, 4)), "grow_ resizes what it writes to"),
        (
            lambda o: vmap(o.grow_and_shrink_, (0, None))(torch.rand(N, 4), torch.rand(4)),
            "grow_and_shrink_ resizes what it writes to",
        ),
        (
            lambda o: vmap(lambda x, w: to_all(o, x, torch.ones(4), w))(*torch.rand(2, N, 4)),
            "add_to_all writes to 'xs', which is not batched, while another argument is",
        ),
        (
            lambda o: vmap(o.scale_)(torch.ones(4).expand(N, 4), torch.rand(N, 4)),
            "scale_ writes to 'x', whose examples are one",
        ),
        (
            lambda o: vmap(o.tracked, (0, None))(torch.rand(N, 4), torch.rand(4)),
            "tracked writes to 'running', which is not batched, while another argument is",
        ),
    ],
)
def test_what_no_batch_can_be_is_refused(call, message, ops) -> None:
    with pytest.raises(RuntimeError, match=f"vmap: vmaptest::{message}"):
        call(ops)


def test_what_is_no_view_of_an_example_is_refused(ops) -> None:
    with pytest.raises(
        RuntimeError, match="vmaptest::no_view: a result is no view of the argument"
    ):
        vmap(ops.no_view)(torch.rand(N, 4))


def test_what_differs_may_agree(ops) -> None:
    x = torch.rand(N, 4) + 1
    assert_same(vmap(lambda x: ops.counted(x)[0])(x), x * 2)
    assert_same(vmap(ops.positive)(x), x)
    assert_same(vmap(ops.halves)(torch.tensor([[1, 2], [1, 3]]))[1], torch.tensor([[2], [3]]))


def test_numbers_are_returned_as_they_are(ops) -> None:
    seen = []

    def call(x):
        result, *numbers = ops.described(x)
        seen.append(numbers)
        return result

    vmap(vmap(call))(torch.rand(2, N, 4))
    vmap(call)(torch.rand(0, 4))
    assert seen == [[1, 2.0, True, "tensor"]] * 2


def test_the_switches_of_torchs_loop_are_those_of_ours(ops) -> None:
    functorch = torch._C._functorch
    functorch._set_vmap_fallback_enabled(False)
    try:
        with pytest.raises(RuntimeError, match="vmaptest::powers hit the vmap fallback"):
            vmap(lambda x: ops.powers(x, 2))(torch.rand(N, 4))
    finally:
        functorch._set_vmap_fallback_enabled(True)
