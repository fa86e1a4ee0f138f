# SPDX-License-Identifier: BSD-3-Clause
"""Written arguments anywhere among the others, returned or not: as a composite of ATen's does."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close


def mixed(x, d, e, mask):
    d.add_(x * mask)
    e.add_(x * mask)
    return d, e


def mixed_none(x, d, e, mask):
    mixed(x, d, e, mask)


def mixed_ends(d, x, e):
    return d.add_(x), e.mul_(x)


def mixed_first(x, d, mask):
    return d.add_(x * mask)


def mixed_lists(x, ds):
    for d in ds:
        d.add_(x)


BY_ATEN = {f.__name__: f for f in (mixed, mixed_none, mixed_ends, mixed_first, mixed_lists)}


def arguments(name, *shape):
    torch.manual_seed(0)
    count = {"mixed": 4, "mixed_none": 4, "mixed_lists": 3}.get(name, 3)
    tensors = [torch.rand(*shape, 3) for _ in range(count)]
    return (tensors[0], tensors[1:]) if name == "mixed_lists" else tuple(tensors)


def called(f, args):
    """What a call returns, and what it leaves in its arguments."""
    result = f(*args)
    return result, args


HOW = {
    "eager": lambda f: f,
    "aot_eager": lambda f: torch.compile(f, backend="aot_eager", fullgraph=True),
    "inductor": lambda f: torch.compile(f, fullgraph=True),
    "dynamic": lambda f: torch.compile(f, backend="aot_eager", fullgraph=True, dynamic=True),
}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", BY_ATEN)
def test_values_and_what_is_written(name, how, ops) -> None:
    torch._dynamo.reset()
    op = getattr(ops, name)
    expected = called(BY_ATEN[name], arguments(name))
    assert_close(called(HOW[how](lambda *args: op(*args)), arguments(name)), expected)


@pytest.mark.parametrize("name", ["mixed", "mixed_ends", "mixed_first"])
def test_functionalize(name, ops) -> None:
    f = torch.func.functionalize(getattr(ops, name))
    expected = called(BY_ATEN[name], arguments(name))
    assert_close(called(f, arguments(name)), expected)


@pytest.mark.parametrize("name", ["mixed_none", "mixed_lists"])
def test_functionalize_refuses_what_returns_nothing(name, ops) -> None:
    """torch.func.functionalize alone; torch.compile has a way of its own for such operators."""
    with pytest.raises(RuntimeError, match="custom .* operator whose output has alias annotations"):
        torch.func.functionalize(getattr(ops, name))(*arguments(name))


@pytest.mark.parametrize("name", [name for name in BY_ATEN if name != "mixed_lists"])
def test_vmap(name, ops) -> None:
    def apply(f):
        args = arguments(name, 2)
        torch.vmap(lambda *args: (f(*args), args[0])[1])(*args)
        return args

    assert_close(apply(getattr(ops, name)), apply(BY_ATEN[name]))


@pytest.mark.parametrize("name", BY_ATEN)
def test_meta_needs_no_rule(name, ops) -> None:
    args = torch.utils._pytree.tree_map(lambda t: t.to("meta"), arguments(name))
    result = getattr(ops, name)(*args)
    returned = {"mixed": (1, 2), "mixed_ends": (0, 2), "mixed_first": (1,)}.get(name)
    if returned is None:
        assert result is None
    else:
        given = (result,) if name == "mixed_first" else result
        assert all(a is args[i] for a, i in zip(given, returned, strict=True))


# -- the functional form of a writing operator, where only some arguments are batched


def plus_times(d, x):
    return d * x


def twice_batched(f):
    one = torch.vmap(torch.func.grad(lambda x, d: f(d, x).pow(2).sum(), (0, 1)), (0, None))
    return torch.vmap(one, (None, 0))


WITHIN = {
    "x": lambda f: torch.vmap(torch.func.grad(lambda x, d: f(d, x).pow(2).sum()), (0, None)),
    "both": lambda f: torch.vmap(
        torch.func.grad(lambda x, d: f(d, x).pow(2).sum(), (0, 1)), (0, None)
    ),
    "nested": lambda f: lambda x, d: twice_batched(f)(x, torch.stack([d, d * 2])),
    "jvp": lambda f: torch.vmap(
        lambda x, d: torch.func.jvp(lambda x: f(d, x), (x,), (x * 2,)), (0, None)
    ),
    "hessian": lambda f: torch.vmap(
        torch.func.hessian(lambda x, d: f(d, x).pow(2).sum()), (0, None)
    ),
    "no_transform": lambda f: torch.vmap(lambda x, d: f(d, x), (0, None)),
}


# torch does not trace hessians of its own in-place operators either
@pytest.mark.parametrize(
    ("within", "traced"),
    [(w, traced) for w in WITHIN for traced in (False, True) if (w, traced) != ("hessian", True)],
)
def test_a_functional_form_has_room_for_a_batch(within, traced, ops) -> None:
    torch._dynamo.reset()
    x, d = torch.rand(4, 3), torch.rand(3)
    found = WITHIN[within](ops.plus_times)
    if traced:
        found = torch.compile(found, backend="aot_eager", fullgraph=True)
    assert_close(found(x, d), WITHIN[within](plus_times)(x, d))
    assert_close(WITHIN[within](lambda d, x: ops.plus_times(x, d))(x, d),
                 WITHIN[within](plus_times)(x, d))  # fmt: skip


def test_a_batch_of_one_result_of_several(ops) -> None:
    d, e, mask = torch.rand(3, 3)
    loss = lambda f: lambda x: f(x, d.clone(), e.clone(), mask)[0].pow(2).sum()  # noqa: E731
    x = torch.rand(4, 3)
    expected = torch.stack([torch.func.grad(loss(mixed))(row) for row in x])
    assert_close(torch.vmap(torch.func.grad(loss(ops.mixed_functional)))(x), expected)


# -- lazily conjugated and negated views


def lazy(kind, tensor):
    complex_ = torch.complex(tensor, tensor.flip(-1))
    return complex_.conj() if kind == "conj" else torch._neg_view(complex_)


@pytest.mark.parametrize("kind", ["conj", "neg"])
def test_parts_of_a_list_that_may_be_missing(kind, ops) -> None:
    x, part = torch.rand(2, 3, dtype=torch.complex128).unbind()
    view = part.conj() if kind == "conj" else torch._neg_view(part)
    assert_close(ops.with_parts(x, [None, view, part]), x + view.resolve_neg() + part)


@pytest.mark.parametrize("kind", ["conj", "neg"])
@pytest.mark.parametrize("which", ["all", "written", "last"])
@pytest.mark.parametrize("name", BY_ATEN)
def test_lazy_views_are_written_to(name, which, kind, ops) -> None:
    def made():
        read, *written = torch.utils._pytree.tree_leaves(arguments(name))
        if name == "mixed_ends":
            read, written = written[0], [read, *written[1:]]
        read = lazy(kind, read) if which == "all" else torch.complex(read, read)
        for i, tensor in enumerate(written):
            is_lazy = which != "last" or i == len(written) - 1
            written[i] = lazy(kind, tensor) if is_lazy else torch.complex(tensor, tensor)
        if name == "mixed_lists":
            return read, written
        return (written[0], read, *written[1:]) if name == "mixed_ends" else (read, *written)

    found, args = called(getattr(ops, name), made())
    expected, leaves = called(BY_ATEN[name], made())
    assert_close((found, args), (expected, leaves))
    if name != "mixed_lists" and found is not None:
        results = [found] if torch.is_tensor(found) else found
        assert all(any(r is a for a in args) for r in results)


@pytest.mark.parametrize("kind", ["conj", "neg"])
def test_lazy_views_that_share_memory_are_refused(kind, ops) -> None:
    x, d, mask = (torch.rand(3, dtype=torch.complex64) for _ in range(3))
    view = d.conj() if kind == "conj" else torch._neg_view(d)
    before = d.clone()
    with pytest.raises(
        RuntimeError, match=r"mixed_none: 'd' is a lazily .* shares memory with 'e'"
    ):
        ops.mixed_none(x, view, d, mask)
    assert_close(d, before)
    expected = called(mixed_none, (x, view.clone(), d.clone(), mask))[1]
    assert_close(called(ops.mixed_none, (x, view, d.clone(), mask))[1], expected)


def gradients(f):
    x, d, e, mask = arguments("mixed")
    leaves = [t.requires_grad_() for t in (x, d, e)]
    a, b = f(x, d * 1, e * 1, mask)
    return torch.autograd.grad((a**2).sum() + 2 * b.sum(), leaves)


@pytest.mark.parametrize("form", ["mixed", "mixed_functional"])
def test_a_form_that_writes_and_its_functional_one_differentiate(form, ops) -> None:
    assert_close(gradients(getattr(ops, form)), gradients(mixed))


def test_the_functional_form_differentiates_under_compile(ops) -> None:
    torch._dynamo.reset()
    f = torch.compile(lambda *args: ops.mixed_functional(*args), fullgraph=True)
    assert_close(gradients(f), gradients(mixed))


@pytest.mark.parametrize("form", ["mixed", "mixed_functional"])
def test_gradients_of_what_is_functionalized(form, ops) -> None:
    """The traced form has no formula of its own; it differentiates as the operator does."""
    assert_close(gradients(torch.func.functionalize(getattr(ops, form))), gradients(mixed))


def test_a_transform_around_functionalize(ops) -> None:
    args = arguments("mixed")[1:]

    def loss(op):
        f = torch.func.functionalize(op)
        return lambda x: f(x, *(a.clone() for a in args))[0].pow(2).sum()

    x = torch.rand(3)
    assert_close(torch.func.grad(loss(ops.mixed))(x), torch.func.grad(loss(mixed))(x))


def test_an_exported_program_differentiates(ops) -> None:
    class Module(torch.nn.Module):
        def forward(self, x, d, e, mask):
            return ops.mixed(x, d * 1, e * 1, mask)

    program = torch.export.export(Module(), arguments("mixed"))
    assert_close(gradients(program.module()), gradients(mixed))
