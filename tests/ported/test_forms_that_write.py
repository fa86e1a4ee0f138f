# SPDX-License-Identifier: BSD-3-Clause
"""Operators of a few lines: forms that write, and results that TensorIterator sets up."""

from __future__ import annotations

import pytest
import torch
from torch.func import functionalize, grad, jvp, vmap
from torch.testing import assert_close

FORMS = {
    "masked": (2, lambda x, m: x * m),
    "mean_plus": (2, lambda x, y: x + y + x.mean()),
    "checked_times": (1, lambda x: x * 2),
    "softsign": (1, torch.nn.functional.softsign),
    "halfway": (2, lambda x, y: (x + y) / 2),
    "mixed_three": (3, lambda x, y, z: x * y + z),
}
DIFFERENTIABLE = ["masked", "mean_plus", "checked_times", "softsign"]


def tensors(name: str, *shape: int, dtype=torch.float64):
    torch.manual_seed(0)
    return [torch.rand(*shape, 3, dtype=dtype) + 0.5 for _ in range(FORMS[name][0])]


def called(ops, name: str, suffix: str = ""):
    op = getattr(ops, name + suffix)
    return (lambda x, **more: op(x, 2, **more)) if name == "checked_times" else op


@pytest.mark.parametrize("name", FORMS)
def test_the_functional_form_and_those_that_write(name, ops) -> None:
    args, f = tensors(name, 2), FORMS[name][1]
    expected = f(*args)
    assert_close(called(ops, name)(*args), expected)
    out = torch.empty(0, dtype=torch.float64)
    assert called(ops, name)(*args, out=out) is out
    assert_close(out, expected)
    x = args[0].clone()
    version = x._version
    assert called(ops, name, "_")(x, *args[1:]) is x
    assert_close(x, expected)
    assert x._version > version
    view = torch.stack([args[0], args[0]], -1)[..., 0]  # not contiguous
    assert_close(called(ops, name, "_")(view, *args[1:]), expected)


@pytest.mark.parametrize("name", FORMS)
def test_on_meta(name, ops) -> None:
    args = [t.to("meta") for t in tensors(name, 2)]
    assert called(ops, name)(*args).shape == (2, 3)
    assert called(ops, name, "_")(*args) is args[0]


@pytest.mark.parametrize("name", ["masked", "halfway"])
def test_an_inplace_form_is_no_broadcast_and_no_conversion(name, ops) -> None:
    x, y = torch.rand(3), torch.rand(2, 3)
    before = x.clone()
    words = "in-place tensor must have the shape of the result|doesn't match the broadcast shape"
    with pytest.raises(RuntimeError, match=words):
        called(ops, name, "_")(x, y)
    x, y = torch.tensor([1, 2, 3]), torch.rand(3)
    words = "in-place tensor must have dtype Float, got Long|can't be cast to the desired"
    with pytest.raises(RuntimeError, match=words):
        called(ops, name, "_")(x, y)
    assert x.tolist() == [1, 2, 3] and before.shape == (3,)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients(name, ops) -> None:
    args = [t.requires_grad_(name != "masked" or i == 0) for i, t in enumerate(tensors(name, 2))]
    f = FORMS[name][1]

    def loss(op, *args):
        return op(args[0] * 1, *args[1:]).pow(2).sum()

    leaves = [a for a in args if a.requires_grad]
    expected = torch.autograd.grad(loss(f, *args), leaves)
    for suffix in ("", "_"):
        op = called(ops, name, suffix)
        assert_close(torch.autograd.grad(loss(op, *args), leaves), expected)
        wrapped = lambda *xs: op(xs[0] * 1, *xs[1:])  # noqa: E731, B023
        assert torch.autograd.gradcheck(wrapped, args, check_forward_ad=True)
        assert torch.autograd.gradgradcheck(wrapped, args)


@pytest.mark.parametrize("suffix", ["", "_"])
@pytest.mark.parametrize("name", FORMS)
def test_under_transforms(name, suffix, ops) -> None:
    args, f = tensors(name, 4), FORMS[name][1]
    op = called(ops, name, suffix)
    fresh = lambda op: lambda *xs: op(xs[0].clone(), *xs[1:])  # noqa: E731
    assert_close(vmap(fresh(op))(*args), vmap(f)(*args))
    dims = (0, *[None] * (len(args) - 1))
    single = [args[0], *(a[0] for a in args[1:])]
    assert_close(vmap(fresh(op), dims)(*single), vmap(f, dims)(*single))
    assert_close(functionalize(fresh(op))(*args), f(*args))
    if name in DIFFERENTIABLE:
        ours = lambda *xs: fresh(op)(*xs).sum()  # noqa: E731
        theirs = lambda *xs: f(*xs).sum()  # noqa: E731
        assert_close(vmap(grad(ours))(*args), vmap(grad(theirs))(*args))
        tangents = (torch.ones_like(args[0]), *map(torch.zeros_like, args[1:]))
        assert_close(jvp(fresh(op), tuple(args), tangents), jvp(f, tuple(args), tangents))


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("name", FORMS)
def test_compiled(name, backend, ops) -> None:
    torch._dynamo.reset()
    args, f = tensors(name, 2, dtype=torch.float32), FORMS[name][1]

    def program(op, op_, x, *rest):
        y = x + 1
        op_(y, *rest)
        z = op(y, *rest)
        out = torch.empty_like(z)
        return y, z * 2, out

    def eager(x, *rest):
        y = f(x + 1, *rest)
        return y, f(y, *rest) * 2

    compiled = torch.compile(
        lambda *xs: program(called(ops, name), called(ops, name, "_"), *xs)[:2],
        fullgraph=True,
        backend=backend,
        dynamic=True,
    )
    assert_close(compiled(*args), eager(*args))
    if name in DIFFERENTIABLE:
        x = args[0].clone().requires_grad_()
        y = args[0].clone().requires_grad_()
        compiled(x, *args[1:])[1].sum().backward()
        eager(y, *args[1:])[1].sum().backward()
        assert_close(x.grad, y.grad)


def test_no_form_of_what_has_no_gradient_has_one(ops) -> None:
    x = torch.tensor([0.4, 1.6], requires_grad=True)
    assert not ops.rounded(x).requires_grad
    y = torch.tensor([0.4, 1.6])
    assert ops.rounded_(y) is y and y.tolist() == [0, 2] and not y.requires_grad
    with pytest.raises(NotImplementedError, match="rounded_: 'x' requires grad"):
        ops.rounded_(x * 1)


def test_iterators_set_up_the_results_of_the_usual_cases(ops) -> None:
    x, y = torch.tensor([[0, 1, 2], [3, 0, 5]]), torch.tensor([1.5, 0.5, 2.0])
    assert_close(ops.softsign(x), x / (x.abs() + 1))
    assert ops.softsign(x).dtype == torch.float32
    assert_close(ops.later(x, y), x > y)
    assert ops.later(x.float(), y, out=torch.empty(0, dtype=torch.float32)).dtype == torch.float32
    z = x.float()
    assert ops.later_(z, y) is z and z.tolist() == (x > y).float().tolist()
    assert_close(ops.is_zero(x), x == 0)
    assert_close(ops.halfway(x, x * 3), (x * 2).float())
    assert_close(ops.halfway(x, y, at=0.25), x * 0.75 + y * 0.25)
    assert_close(ops.mixed_three(x, y, x[:, :1]), x * y + x[:, :1])
    for op in (ops.softsign, ops.later, ops.halfway, ops.mixed_three, ops.is_zero):
        assert torch.Tag.pointwise in op.default.tags
        assert torch.Tag.pointwise in op.out.tags
    with pytest.raises(RuntimeError, match="must match|broadcast"):
        ops.later(x, torch.ones(2))
    assert_close(ops.later(x, torch.tensor(1)), x > 1)  # scalars of the CPU are allowed


@pytest.mark.parametrize("name", ["masked", "mean_plus", "checked_times"])
def test_opcheck(name, ops) -> None:
    args = tensors(name, 2)
    more = (2,) if name == "checked_times" else ()
    for overload in (getattr(ops, name), getattr(ops, f"{name}_")):
        for op in (getattr(overload, o) for o in overload.overloads() if "out" not in o):
            torch.library.opcheck(op, (*args, *more))


EIGHT = torch.zeros(8)
NOTHING = torch.empty(0)
IN_ONE_MEMORY = {
    "one tensor": (EIGHT[:4],) * 2,
    "a view": (EIGHT[:4], EIGHT[:4].view(4)),
    "in part": (EIGHT[:4], EIGHT[2:6]),
    "one that is resized": (NOTHING, NOTHING),
    "when they are resized": (EIGHT[:2], EIGHT[4:6]),
}


@pytest.mark.parametrize("name", IN_ONE_MEMORY)
def test_two_out_tensors_of_one_memory_are_refused(name, ops) -> None:
    a, b = IN_ONE_MEMORY[name]
    sizes = a.shape, b.shape
    with pytest.raises(RuntimeError, match="two_or_zeros: two out= tensors share memory"):
        ops.two_or_zeros(torch.ones(4), out0=a, out1=b)
    assert (a.shape, b.shape) == sizes and not EIGHT.any()


def test_two_tensors_of_one_memory_in_an_out_list_are_refused(ops) -> None:
    a, x = torch.zeros(3), torch.ones(3)
    with pytest.raises(RuntimeError, match="each_times: two out= tensors share memory"):
        ops.each_times([x, x], [x, x], out=[a, a])
    assert not a.any()


def test_out_tensors_of_one_storage_that_do_not_overlap_are_written(ops) -> None:
    x, storage = torch.rand(4), torch.zeros(8)
    ops.two_or_zeros(x, out0=storage[::2], out1=storage[1::2])
    assert_close(storage.view(4, 2), torch.stack([x * 2, x * 3], -1))


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        (torch.zeros(4, dtype=torch.int64), "the out= tensor must have dtype Float, got Long"),
        (torch.zeros(1).expand(4), "more than one element of the written-to tensor"),
        (torch.empty(4, device="meta"), "the out= tensor must be on cpu, got one on meta"),
    ],
    ids=["dtype", "overlap", "device"],
)
def test_nothing_is_written_where_an_out_tensor_is_refused(refused, words, ops) -> None:
    a = torch.zeros(4)
    with pytest.raises(RuntimeError, match=words):
        ops.two_or_zeros(torch.ones(4), out0=a, out1=refused)
    assert not a.any()
