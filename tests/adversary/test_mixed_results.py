# SPDX-License-Identifier: BSD-3-Clause
"""Results that are arguments, beside new ones, in any order or missing: as ATen's own operators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from library_build import build_and_load
from torch.func import functionalize
from torch.testing import assert_close

from torchext.testing import check
from torchext.testing.report import State


@pytest.fixture(scope="session")
def ops():
    """The operators of resultstest/."""
    return build_and_load(Path(__file__).parent / "resultstest", "resultstest_library.so")


def mixed(x, out):
    sine = x.sin()
    return out.mul_(x), sine


def named(x, result):
    return x.mul_(result), result.sin()


def swapped(x, y):
    old = y.clone()
    return y.copy_(old.sin()), x.mul_(old)


def pair(x, y, s):
    return x.mul_(s), y.mul_(2 * s)


def listed(x, y):
    return x.add_(y), [y * 2, y * 3]


def measured(x, total):
    total.add_(x)
    return x * 2, x.dim()


def all_beside(xs, y):
    found = [x * 2 for x in xs]
    for x in xs:
        x.mul_(y)
    return found


def counted(x, count):
    return count.add_(1), x.exp() + count


def middle(x, cache, scale):
    return cache.mul_(scale).add_(x * x)


def second(count, y):
    count.add_(1)
    return y.mul_(y.clone())


def exponential(x, *, out=None):
    return torch.exp(x, out=out)


def accumulated(x, total=None, out=None):
    total = out if total is None else total
    return x * x if total is None else total.add_(x * x)


def ruled(x, out=None):
    return x * 2 if out is None else out.detach_().copy_(x * 2)


def beside(x, weight=None, running=None):
    if running is not None:
        running.mul_(0.5).add_(x.detach())
    return x.clone() if weight is None else x * weight


def both(x, out, *, extra=None):
    return out.add_(x), x.cos(), x.exp() if extra is None else extra.copy_(x.exp())


def nothing(x, first=None, then=None):
    if first is not None:
        first.add_(x)
    if then is not None:
        then.mul_(x)


@dataclass(frozen=True)
class Situation:
    """A call, and what does the same with ATen's operators."""

    name: str
    oracle: Callable
    arguments: tuple = ()
    keywords: tuple[str, ...] = ()  # those of the arguments that are given by name
    formulas: bool = True
    constant: tuple[str, ...] = ()  # never require grad

    def __str__(self) -> str:
        return "-".join([self.name, *self.keywords])

    def values(self, seed: int = 0) -> tuple[list, dict]:
        """Fresh arguments."""
        generator = torch.Generator().manual_seed(seed)

        def one(value):
            if isinstance(value, list):
                return [one(v) for v in value]
            is_shape = isinstance(value, tuple)
            # far from zero, where a wrong order of writes would go unseen
            return torch.rand(value, generator=generator).double() + 0.5 if is_shape else value

        found = [one(v) for v in self.arguments]
        split = len(found) - len(self.keywords)
        return found[:split], dict(zip(self.keywords, found[split:]))


S = (2, 3)
SITUATIONS = [
    Situation("mixed", mixed, (S, S)),
    Situation("swapped", swapped, (S, S)),
    Situation("pair", pair, (S, S, 2.0)),
    Situation("composed", mixed, (S, S)),
    Situation("named", named, (S, S), formulas=False),
    Situation("listed", listed, (S, S), formulas=False),
    Situation("measured", measured, (S, S), formulas=False),
    Situation("all_beside", all_beside, ([S, (3,)], (3,)), formulas=False),
    Situation("counted", counted, (S, S)),
    Situation("middle", middle, (S, S, 0.5)),
    Situation("second", second, ((2,), S), constant=("0",)),
    Situation("exponential", exponential, (S,)),
    Situation("exponential", exponential, (S, S), ("out",), formulas=False),
    Situation("accumulated", accumulated, (S,)),
    Situation("accumulated", accumulated, (S, None), ("total",)),
    Situation("accumulated", accumulated, (S, S), ("total",)),
    Situation("composed_or_new", accumulated, (S,)),
    Situation("composed_or_new", accumulated, (S, S), ("out",)),
    Situation("ruled", ruled, (S,)),
    Situation("ruled", ruled, (S, S), ("out",), constant=("out",)),
    Situation("beside", beside, (S,)),
    Situation("beside", beside, (S, (3,)), ("weight",)),
    Situation("beside", beside, (S, S), ("running",), constant=("running",)),
    Situation("beside", beside, (S, (3,), S), ("weight", "running"), constant=("running",)),
    Situation("both", both, (S, S), formulas=False),
    Situation("both", both, (S, S, S), ("extra",), formulas=False),
    Situation("nothing", nothing, (S,), formulas=False),
    Situation("nothing", nothing, (S, S), ("then",), formulas=False),
    Situation("nothing", nothing, (S, S, S), ("first", "then"), formulas=False),
]
DIFFERENTIABLE = [s for s in SITUATIONS if s.formulas]


def tensors(value) -> list[torch.Tensor]:
    return [t for t in torch.utils._pytree.tree_leaves(value) if isinstance(t, torch.Tensor)]


def places(result, arguments) -> list[int | None]:
    """Which argument each result is."""
    given = [id(t) for t in tensors(arguments)]
    return [given.index(id(t)) if id(t) in given else None for t in tensors(result)]


def assert_same(actual, expected) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-12)


def both_sides(situation: Situation, ops, run) -> tuple:
    """What `run(f, args, kwargs)` gives for the operator and for ATen, and the arguments after."""
    found = []
    for f in (getattr(ops, situation.name), situation.oracle):
        args, kwargs = situation.values()
        found.append((run(f, args, kwargs), args, kwargs))
    return tuple(found)


def call(f, args, kwargs):
    return f(*args, **kwargs)


@pytest.mark.parametrize("situation", SITUATIONS, ids=str)
@pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad, torch.inference_mode])
def test_values_and_identity_are_those_of_aten(situation, mode, ops) -> None:
    with mode():
        (actual, args, kwargs), (expected, other, others) = both_sides(situation, ops, call)
    assert_same(tensors([actual, args, kwargs]), tensors([expected, other, others]))
    assert places(actual, [args, kwargs]) == places(expected, [other, others])


@pytest.mark.parametrize("situation", SITUATIONS, ids=str)
def test_what_is_written_has_a_new_version_and_nothing_else(situation, ops) -> None:
    def versions(f, args, kwargs):
        before = [t._version for t in tensors([args, kwargs])]
        f(*args, **kwargs)
        return [t._version > v for t, v in zip(tensors([args, kwargs]), before)]

    (actual, *_), (expected, *_) = both_sides(situation, ops, versions)
    assert actual == expected


@pytest.mark.parametrize("situation", SITUATIONS, ids=str)
def test_meta_has_the_shapes(situation, ops) -> None:
    def run(f, args, kwargs):
        args, kwargs = torch.utils._pytree.tree_map_only(
            torch.Tensor, lambda t: t.to("meta"), (args, kwargs)
        )
        result = f(*args, **kwargs)
        return [(t.shape, t.dtype, t.device, t.stride()) for t in tensors(result)]

    (actual, *_), (expected, *_) = both_sides(situation, ops, run)
    assert actual == expected


def leaves(situation: Situation, args, kwargs) -> dict[str, torch.Tensor]:
    """The arguments that may require grad, by place or name."""
    named = {**{str(i): a for i, a in enumerate(args)}, **kwargs}
    return {
        n: t for n, t in named.items()
        if isinstance(t, torch.Tensor) and n not in situation.constant
    }  # fmt: skip


def with_gradients(situation: Situation, f, args, kwargs) -> tuple:
    """A function of the leaves, which calls with copies: leaves cannot be written to."""
    found = leaves(situation, args, kwargs)

    def call(*values):
        named = {**{str(i): a for i, a in enumerate(args)}, **kwargs, **dict(zip(found, values))}
        given = torch.utils._pytree.tree_map_only(torch.Tensor, torch.clone, named)
        result = f(*(given[str(i)] for i in range(len(args))), **{n: given[n] for n in kwargs})
        return tuple(t for t in tensors(result) if t.is_floating_point())

    return call, tuple(found.values())


@pytest.mark.parametrize("situation", DIFFERENTIABLE, ids=str)
def test_gradients_of_both_orders_are_those_of_aten(situation, ops) -> None:
    def run(f, args, kwargs):
        function, values = with_gradients(situation, f, args, kwargs)
        values = tuple(v.requires_grad_() for v in values)
        total = sum((r * (i + 2) * r).sum() for i, r in enumerate(function(*values)))
        first = torch.autograd.grad(total, values, create_graph=True)
        return [*first, *torch.autograd.grad(sum((g**2).sum() for g in first), values)]

    (actual, *_), (expected, *_) = both_sides(situation, ops, run)
    assert_same(actual, expected)


@pytest.mark.parametrize("situation", DIFFERENTIABLE, ids=str)
def test_each_result_alone_has_the_gradient_of_aten(situation, ops) -> None:
    def run(f, args, kwargs):
        function, values = with_gradients(situation, f, args, kwargs)
        values = tuple(v.requires_grad_() for v in values)
        results = function(*values)
        return [
            torch.autograd.grad(r.sum(), values, retain_graph=True, materialize_grads=True)
            for r in results
        ]

    (actual, *_), (expected, *_) = both_sides(situation, ops, run)
    assert_same(actual, expected)


@pytest.mark.parametrize("situation", DIFFERENTIABLE, ids=str)
def test_tangents_are_those_of_aten(situation, ops) -> None:
    def run(f, args, kwargs):
        function, values = with_gradients(situation, f, args, kwargs)
        tangents = tuple(torch.full_like(v, 0.3 + i) for i, v in enumerate(values))
        found = [torch.func.jvp(function, values, tangents)]
        for index in range(len(values)):  # of one argument alone

            def of_one(value, index=index):
                return function(*values[:index], value, *values[index + 1 :])

            found.append(
                torch.func.jvp(of_one, values[index : index + 1], tangents[index : index + 1])
            )
        return found

    (actual, *_), (expected, *_) = both_sides(situation, ops, run)
    assert_same(actual, expected)


@pytest.mark.parametrize("situation", DIFFERENTIABLE, ids=str)
def test_functional_transforms_are_those_of_aten(situation, ops) -> None:
    def run(f, args, kwargs):
        function, values = with_gradients(situation, f, args, kwargs)

        def total(*values):
            return sum((r * r).sum() for r in function(*values))

        every = tuple(range(len(values)))
        return torch.func.grad(total, every)(*values), torch.func.jacfwd(total, every)(*values)

    (actual, *_), (expected, *_) = both_sides(situation, ops, run)
    assert_same(actual, expected)


# What torch traces by itself under torch.compile, torch.func.functionalize refuses.
FUNCTIONALIZED = [s for s in SITUATIONS if s.name != "nothing"]


@pytest.mark.parametrize("situation", FUNCTIONALIZED, ids=str)
@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
def test_functionalize_gives_the_same(situation, remove, ops) -> None:
    def run(f, args, kwargs):
        def function(args, kwargs):
            return f(*args, **kwargs), args, kwargs

        return functionalize(function, remove=remove)(args, kwargs)

    (actual, *rest), (expected, *other) = both_sides(situation, ops, run)
    assert_same(tensors([actual, rest]), tensors([expected, other]))


@pytest.mark.parametrize("situation", SITUATIONS, ids=str)
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_calls_give_the_same(situation, backend, ops) -> None:
    torch._dynamo.reset()

    def run(f, args, kwargs):
        def function(args, kwargs):
            scaled = [
                a * 1 if i == 0 and isinstance(a, torch.Tensor) else a for i, a in enumerate(args)
            ]
            result = f(*scaled, **kwargs)
            return result, scaled[0]

        is_ours = f is not situation.oracle
        chosen = torch.compile(function, backend=backend, fullgraph=True) if is_ours else function
        return chosen(args, kwargs), chosen(args, kwargs)

    (actual, *rest), (expected, *other) = both_sides(situation, ops, run)
    assert_same(tensors([actual, rest]), tensors([expected, other]))


@pytest.mark.parametrize("situation", DIFFERENTIABLE, ids=str)
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_gradients_are_those_of_aten(situation, backend, ops) -> None:
    torch._dynamo.reset()

    def run(f, args, kwargs):
        function, values = with_gradients(situation, f, args, kwargs)
        values = tuple(v.requires_grad_() for v in values)
        is_ours = f is not situation.oracle
        chosen = torch.compile(function, backend=backend, fullgraph=True) if is_ours else function
        total = sum((r * (i + 2) * r).sum() for i, r in enumerate(chosen(*values)))
        return torch.autograd.grad(total, values)

    (actual, *_), (expected, *_) = both_sides(situation, ops, run)
    assert_same(actual, expected)


@pytest.mark.parametrize("situation", SITUATIONS, ids=str)
def test_exported_programs_give_the_same(situation, ops) -> None:
    class Module(torch.nn.Module):
        def __init__(self, f):
            super().__init__()
            self.f = f

        def forward(self, args, kwargs):
            return self.f(*args, **kwargs)

    def run(f, args, kwargs):
        if f is situation.oracle:
            return [f(*args, **kwargs)] * 2
        fresh = situation.values()
        program = torch.export.export(Module(f), fresh)
        results = program.module()(args, kwargs)
        again = program.run_decompositions().module()(*situation.values())
        return [results, again]

    (actual, *rest), (expected, *other) = both_sides(situation, ops, run)
    assert_same(tensors([actual, rest]), tensors([expected, other]))


BATCHED = [s for s in SITUATIONS if s.name in ("pair", "counted", "accumulated")]


@pytest.mark.parametrize("situation", BATCHED, ids=str)
def test_vmap_by_a_rule_is_that_of_aten(situation, ops) -> None:
    def run(f, args, kwargs):
        def function(args, kwargs):
            return f(*args, **kwargs)

        in_dims = torch.utils._pytree.tree_map(
            lambda a: 0 if isinstance(a, torch.Tensor) else None, (args, kwargs)
        )
        return torch.vmap(function, in_dims=in_dims)(args, kwargs)

    (actual, *rest), (expected, *other) = both_sides(situation, ops, run)
    assert_same(tensors([actual, rest]), tensors([expected, other]))


def test_what_returns_nothing_is_refused_by_functionalize(ops) -> None:
    with pytest.raises(RuntimeError, match="output has alias annotations: resultstest::nothing"):
        functionalize(lambda x, y: ops.nothing(x, y))(torch.ones(2), torch.ones(2))


@pytest.mark.parametrize("name", ["mixed", "named", "middle", "accumulated"])
def test_what_is_copied_for_its_layout_is_returned_itself(name, ops) -> None:
    def run(f, args, kwargs):
        x, out = (t.t() for t in (*args, *kwargs.values()) if isinstance(t, torch.Tensor))
        rest = [a for a in args if isinstance(a, float)]
        result = f(x, out, *rest)
        first = result[0] if isinstance(result, tuple) else result
        assert first is (x if name == "named" else out) and not first.is_contiguous()
        return result

    situation = next(s for s in SITUATIONS if s.name == name and s.arguments[1:2] == (S,))
    (actual, *rest), (expected, *other) = both_sides(situation, ops, run)
    assert_same(tensors([actual, rest]), tensors([expected, other]))


@pytest.mark.parametrize("name", ["listed", "both"])
def test_without_a_formula_every_result_names_the_operator(name, ops) -> None:
    x, y = (torch.rand(2, 3, requires_grad=True) for _ in range(2))
    for result in tensors(getattr(ops, name)(x.clone(), y.clone())):
        with pytest.raises(RuntimeError, match=f"resultstest::{name}"):
            result.sum().backward()


def test_a_given_keyword_refuses_gradients_and_tangents_as_an_out_form(ops) -> None:
    x, out = torch.rand(3, requires_grad=True), torch.empty(3)
    for f in (torch.exp, ops.exponential):
        with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
            f(x, out=out)
        with pytest.raises(NotImplementedError):
            torch.func.jvp(lambda x, f=f: f(x, out=torch.empty(3)), (torch.ones(3),) * 1, (x,) * 1)


def test_a_leaf_that_is_given_is_refused_as_by_aten(ops) -> None:
    x, leaf = torch.rand(3), torch.rand(3, requires_grad=True)
    for f in (lambda: leaf.add_(x), lambda: ops.accumulated(x, leaf), lambda: ops.mixed(x, leaf)):
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
            f()


def test_a_given_result_is_brought_to_its_size_as_an_out_form(ops) -> None:
    out = torch.empty(0, dtype=torch.double)
    x = torch.rand(2, 3, dtype=torch.double)
    assert ops.ruled(x, out) is out
    assert_same(out, x * 2)
    with pytest.raises(RuntimeError, match="resultstest::ruled: the out= tensor must have dtype"):
        ops.ruled(x, torch.empty(2, 3))
    compiled = torch.compile(ops.ruled, backend="aot_eager", fullgraph=True)
    with pytest.raises(RuntimeError, match="no call that is traced resizes it"):
        compiled(x, torch.empty(0, dtype=torch.double))


# -- check

LEAKING = ["leaking", "leaking_or_not"]


@pytest.mark.parametrize("name", LEAKING)
def test_check_finds_a_composite_that_returns_what_it_writes_to_as_new(name, ops, capsys) -> None:
    library = "resultstest"
    report = check(library, operators=[name], checks=["opcheck"], raise_exception=False)
    cell = report.cells[name, "opcheck"]
    assert cell.state is State.FAILED
    assert "the result is the argument 'out', and new by the schema" in cell.reason


def test_check_finds_nothing_in_the_others(ops, capsys) -> None:
    names = sorted({s.name for s in SITUATIONS})
    columns = "opcheck gradcheck gradgradcheck forward_mode vmap layouts empty meta compile pickle"
    report = check("resultstest", operators=names, checks=columns.split(), raise_exception=False)
    assert [(c.operator, c.check, c.reason) for c in report.failures] == []


# -- missing optional tensors


@pytest.mark.parametrize("given", [False, True])
def test_a_formula_passes_a_missing_tensor_on_as_one(given, ops) -> None:
    x = torch.rand(3, requires_grad=True)
    y = torch.rand(3) if given else None
    zs = [None, torch.rand(3), None]
    ops.gated(x, y, zs).sum().backward()
    assert_same(x.grad, zs[1] * (y if given else 1))


def test_kernels_are_given_no_undefined_tensor_by_callers_in_cpp(ops) -> None:
    x = torch.rand(3)
    assert_same(ops.called_with_undefined(x), [x * x] * 3)


# Written to as views


INTO_VIEWS = {
    "middle": lambda o, x, y, into: o.middle(x, into, 0.5),
    "second": lambda o, x, y, into: o.second(torch.zeros(2), into),
    "accumulated": lambda o, x, y, into: o.accumulated(x, into),
    "ruled": lambda o, x, y, into: o.ruled(x, into),
}


@pytest.mark.parametrize("wanted", [(0,), (1,), (0, 1)], ids=str)
@pytest.mark.parametrize("is_view", [True, False], ids=["view", "whole"])
@pytest.mark.parametrize("name", INTO_VIEWS)
def test_what_is_written_to_may_be_a_view(name: str, is_view: bool, wanted, ops) -> None:
    """torch takes the first gradient of a node for that of the part of the base: the others of the
    operator's arguments must not be lost, nor the base's own."""

    def gradients(call):
        x = torch.linspace(-1, 2, 6).reshape(2, 3).requires_grad_()
        leaf = torch.linspace(1, 3, 18).reshape(3, 2, 3).requires_grad_()
        base = leaf * 3 if is_view else leaf[1] * 3
        call(x, base[1] if is_view else base)
        loss = (base * torch.linspace(1, 2, base.numel()).reshape(base.shape)).sum()
        inputs = [(x, leaf)[i] for i in wanted]
        return torch.autograd.grad(loss, inputs, allow_unused=True, materialize_grads=True)

    actual = gradients(lambda x, into: INTO_VIEWS[name](ops, x, x, into))

    def written_outside(x, into):
        into.copy_(INTO_VIEWS[name](ops, x, x, into.clone()))

    assert_close(actual, gradients(written_outside))


def test_results_that_are_views_beside_others_are_refused(ops) -> None:
    x, base = torch.ones(2, 3, requires_grad=True), torch.ones(2, 2, 3)
    with pytest.raises(RuntimeError, match="'out' is a view, and an operator with several"):
        ops.mixed(x, base[0])


def test_a_copy_for_a_layout_is_not_apart_from_what_it_is_a_copy_of(ops) -> None:
    """What a kernel sees does not depend on the strides: such a call is refused."""
    x, z = torch.rand(3, 2), torch.rand(3, 2).t()
    assert ops.mixed(x, x)[0] is x  # nothing is copied
    kept = z.clone()
    with pytest.raises(RuntimeError, match="resultstest::mixed: 'x' shares memory with another"):
        ops.mixed(z, z)
    assert z.equal(kept)
    assert_close(ops.mixed(z, z.clone()), mixed(kept, kept.clone()))
