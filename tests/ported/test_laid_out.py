# SPDX-License-Identifier: BSD-3-Clause
"""Results that a kernel lays out in another way than its rule says are copied: what is compiled
reads memory by the strides of the rule. And tensors that are written to and share memory."""

from __future__ import annotations

import pytest
import torch
from torch._inductor import config
from torch._subclasses import FakeTensorMode

CALLS = {
    "sorted_rows": (lambda ops, x: ops.sorted_rows(x), lambda x: tuple(torch.sort(x, -1))),
    "places": (lambda ops, x: (ops.places(x),), lambda x: (torch.nonzero(x),)),
    "tripled": (lambda ops, x: tuple(ops.tripled([x, x + 1])), lambda x: (x * 3, (x + 1) * 3)),
    "by_columns": (lambda ops, x: (ops.by_columns(x),), lambda x: (x * 2,)),
}
GIVEN = {
    "contiguous": lambda: torch.tensor([[3.0, 0.0, 2.0], [0.0, 5.0, 4.0]]),
    "transposed": lambda: torch.tensor([[3.0, 0.0], [0.0, 5.0], [2.0, 4.0]]).t(),
    "sliced": lambda: torch.tensor([[3.0, 0.0, 2.0, 1.0], [0.0, 5.0, 4.0, 0.0]])[:, ::2],
    "expanded": lambda: torch.tensor([[3.0], [2.0]]).expand(2, 3),
    "empty": lambda: torch.ones(3, 0).t(),
    "a row": lambda: torch.tensor([[3.0], [1.0], [2.0]]).t(),
}


def weighted(results):
    """What reads every element by its place."""
    return [
        r * torch.arange(1, r.numel() + 1).reshape(r.shape) if r.numel() else r for r in results
    ]


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("name", CALLS)
def test_values_and_strides_are_those_of_the_rule(name, given, ops) -> None:
    ours, aten = CALLS[name]
    results, expected = ours(ops, GIVEN[given]()), aten(GIVEN[given]())
    for result, value in zip(results, expected, strict=True):
        assert result.equal(value)
        laid_out = result.t() if name == "by_columns" else result
        assert laid_out.is_contiguous()


@pytest.mark.parametrize("name", [name for name in CALLS if name != "places"])
def test_fake_tensors_say_the_same(name, ops) -> None:
    x = GIVEN["transposed"]()
    with FakeTensorMode() as mode:
        fakes = CALLS[name][0](ops, mode.from_tensor(x))
    assert [f.stride() for f in fakes] == [r.stride() for r in CALLS[name][0](ops, x)]


@pytest.mark.parametrize("asserts", [True, False])
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("given", ["contiguous", "transposed", "sliced"])
@pytest.mark.parametrize("name", [name for name in CALLS if name != "places"])
def test_what_is_compiled_reads_it_so(name, given, backend, asserts, ops) -> None:
    """AOTInductor has no assertions of sizes, and gave other values in silence."""
    torch._dynamo.reset()
    ours, aten = CALLS[name]
    with config.patch(size_asserts=asserts):
        found = torch.compile(
            lambda x: weighted(ours(ops, x)), backend=backend, fullgraph=True, dynamic=False
        )(GIVEN[given]())
    for result, value in zip(found, weighted(aten(GIVEN[given]())), strict=True):
        assert result.equal(value)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("given", ["contiguous", "transposed"])
def test_sizes_that_values_tell_too(given, backend, ops) -> None:
    torch._dynamo.reset()
    scale = torch.tensor([[10, 1]])
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        compiled = torch.compile(
            lambda x: (ops.places(x) * scale, ops.places(x).reshape(-1)), backend=backend
        )
        found = compiled(GIVEN[given]())
    expected = torch.nonzero(GIVEN[given]())
    assert found[0].equal(expected * scale)
    assert found[1].equal(expected.reshape(-1))


def test_gradients_know_the_copy(ops) -> None:
    x = GIVEN["transposed"]().requires_grad_()
    weight = torch.arange(6.0).reshape(2, 3)
    (found,) = torch.autograd.grad((ops.sorted_rows(x)[0] * weight).sum(), x)
    (expected,) = torch.autograd.grad((torch.sort(x, -1)[0] * weight).sum(), x)
    assert found.equal(expected)


def test_what_is_written_twice_is_refused_under_transforms_too(ops) -> None:
    """Where the tensors are wrapped, and only what they wrap has memory."""
    x, mask = torch.ones(3), torch.ones(3)
    words = "'d' and 'e' are written to and share memory|'d' is a view"

    def same(x):
        d = x * 1
        return ops.mixed(x, d, d, mask)[0].sum()

    def overlapping(x):
        d = x * torch.ones(2, 3)
        flat = d.reshape(-1)
        return ops.mixed(x, flat[:3], flat[2:5], mask)[0].sum()

    for f in (same, overlapping):
        for transform in (torch.func.grad, lambda f: torch.func.grad(torch.func.grad(f))):
            with pytest.raises(RuntimeError, match=words):
                transform(f)(x)
        with pytest.raises(RuntimeError, match=words):
            torch.vmap(torch.func.grad(f))(torch.ones(2, 3))
        with pytest.raises(RuntimeError, match=words):
            torch.func.grad(lambda x, f=f: torch.vmap(f)(x).sum())(torch.ones(2, 3))


def test_what_is_written_and_read_is_one_tensor_for_each_example(ops) -> None:
    """Also where examples are written to on copies."""

    def ours(x):
        d, e = x * 1, x + 1
        d, e = ops.mixed(x, d, e, d)
        return (d * e).sum()

    def aten(x):
        d, e = x * 1, x + 1
        d.add_(x * d.detach())
        e.add_(x * d.detach())
        return (d * e).sum()

    batch = torch.arange(6.0).reshape(2, 3)
    assert torch.vmap(ours)(batch).equal(torch.vmap(aten)(batch))
    value = torch.func.vjp(torch.vmap(ours), batch)[0]
    assert value.equal(torch.vmap(aten)(batch))


def test_parts_of_one_base_are_functionalized_under_transforms(ops) -> None:
    base, mask = torch.arange(6.0).reshape(2, 3), torch.tensor([1.0, 0.0, 2.0])

    def ours(base):
        base = base * 1
        ops.mixed(mask, base[0], base[1], mask)
        return base

    def aten(base):
        base = base * 1
        base[0].add_(mask * mask)
        base[1].add_(mask * mask)
        return base

    functionalize = torch.func.functionalize
    batch = torch.stack([base, base + 1])
    assert torch.vmap(functionalize(ours))(batch).equal(torch.vmap(aten)(batch))
    found = torch.func.grad(lambda b: functionalize(ours)(b).pow(2).sum())(base)
    assert found.equal(torch.func.grad(lambda b: aten(b).pow(2).sum())(base))
