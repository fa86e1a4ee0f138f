# SPDX-License-Identifier: BSD-3-Clause
"""What formulas call and give back, and what Meta kernels refuse, beside ATen's own operators."""

import itertools
from pathlib import Path

import pytest
import torch
from library_build import build_and_load
from torch.autograd import forward_ad


@pytest.fixture(scope="module")
def ops():
    """The operators of readingtest/."""
    return build_and_load(Path(__file__).parent / "readingtest", "readingtest_library.so")


@pytest.fixture(scope="module")
def myns():
    import torchext.ops  # noqa: F401  loads the library

    return torch.ops.myns


def dual(primal, tangent):
    return forward_ad.make_dual(primal, tangent)


def tangent_of(tensor):
    return forward_ad.unpack_dual(tensor).tangent


# C++ functions of the library's own.


@pytest.mark.parametrize("dtype", [torch.double, torch.complex128])
def test_a_formula_calls_functions_of_a_header(ops, dtype):
    x = torch.rand(4, dtype=dtype) + 0.5
    x.requires_grad_()
    torch.autograd.gradcheck(ops.cube, x, check_forward_ad=True, check_batched_grad=True)
    torch.autograd.gradgradcheck(ops.cube, x, check_fwd_over_rev=True)


def test_such_a_formula_is_compiled_and_transformed_as_atens(ops):
    x = torch.rand(3, 4, dtype=torch.double) + 0.5

    def calls(cube):
        yield torch.func.vmap(torch.func.grad(lambda t: cube(t).sum()))(x)
        yield torch.func.hessian(lambda t: cube(t).sum())(x)
        yield torch.func.jvp(torch.func.vmap(cube), (x,), (x,))[1]
        leaf = x.clone().requires_grad_()
        torch.compile(cube, fullgraph=True, backend="aot_eager")(leaf).sum().backward()
        yield leaf.grad

    for ours, atens in zip(calls(lambda t: ops.cube(t)), calls(lambda t: t * t * t), strict=True):
        torch.testing.assert_close(ours, atens)


# A real and a complex argument.

_PAIRS = [
    (torch.double, torch.complex128), (torch.complex128, torch.double),
    (torch.double, torch.double), (torch.complex128, torch.complex128),
]  # fmt: skip


@pytest.mark.parametrize("dtypes", _PAIRS, ids=str)
@pytest.mark.parametrize("name", ["product", "mul", "add", "muladd"])
def test_gradients_of_real_and_complex_arguments_are_atens(ops, myns, name, dtypes):
    ours, atens = {
        "product": (ops.product, torch.mul),
        "mul": (myns.mul, torch.mul),
        "add": (lambda a, b: myns.add(a, b, alpha=2), lambda a, b: torch.add(a, b, alpha=2)),
        "muladd": (lambda a, b: myns.muladd(a, b, 1.5), lambda a, b: a * b + 1.5),
    }[name]
    given = [torch.randn(3, dtype=dtype) for dtype in dtypes]
    found = []
    for function in (ours, atens):
        leaves = [t.clone().requires_grad_() for t in given]
        result = function(*leaves)
        first = torch.autograd.grad(
            result, leaves, torch.ones_like(result), create_graph=True, materialize_grads=True
        )
        tangent = torch.func.jvp(function, tuple(given), tuple(given))[1]
        found.append([result, *first, tangent])
    torch.testing.assert_close(*found)
    leaves = [t.clone().requires_grad_() for t in given]
    torch.autograd.gradcheck(ours, leaves, check_forward_ad=True)


# A tangent that is its argument's: written to through the result, and through the argument.


def ours_and_atens(ops):
    """Operators of a linear formula that gives back what it is given, and ATen's that do."""
    return {
        "shifted": (ops.shifted, lambda x: torch.add(x, 1)),
        "elementwise": (ops.elementwise, lambda x: torch.add(x, 1)),
        "flattened": (ops.flattened, lambda x: torch.add(x, 0).flatten()),
        "either": (lambda x: ops.either(x, x + 1), lambda x: torch.clone(x)),
        "first of two": (lambda x: ops.two_of(x)[0], lambda x: torch.add(x, 1)),
        "second of two": (lambda x: ops.two_of(x)[1], lambda x: torch.add(x, 2)),
        "list": (lambda x: ops.shifted_all([x, x])[1], lambda x: torch._foreach_add([x, x], 1)[1]),
        "gathered": (lambda x: ops.gathered([x, x]), lambda x: torch.cat([x])),
        "in place": (
            lambda x: ops.copied_(torch.zeros(3, dtype=x.dtype), x),
            lambda x: torch.add(torch.zeros(3, dtype=x.dtype), x),
        ),
    }


_OPERATORS = [
    "shifted", "elementwise", "flattened", "either", "first of two", "second of two", "list",
    "gathered", "in place",
]  # fmt: skip


@pytest.mark.parametrize("writes_to", ["result", "argument"])
@pytest.mark.parametrize("dtype", [torch.double, torch.complex128])
@pytest.mark.parametrize("name", _OPERATORS)
def test_writing_to_a_result_leaves_the_arguments_tangent(ops, name, dtype, writes_to):
    found = []
    for function in ours_and_atens(ops)[name]:
        with forward_ad.dual_level():
            tangent = torch.ones(3, dtype=dtype)
            x = dual(torch.full((3,), 2.0, dtype=dtype), tangent)
            y = function(x)
            (y if writes_to == "result" else x).mul_(3)
            found.append([tangent_of(x), tangent_of(y), tangent])
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("name", ["two_of", "two_at_once"])
def test_two_results_have_tangents_of_their_own(ops, name):
    with forward_ad.dual_level():
        x = dual(torch.ones(3), torch.ones(3))
        first, second = getattr(ops, name)(x)
        first.mul_(3)
        assert tangent_of(first).tolist() == [3.0] * 3
        assert tangent_of(second).tolist() == tangent_of(x).tolist() == [1.0] * 3


def test_an_in_place_form_keeps_its_own_tangent(ops):
    with forward_ad.dual_level():
        tangent = torch.ones(3)
        x = dual(torch.ones(3), tangent)
        assert ops.shifted_(x) is x
        x.mul_(3)
        assert tangent_of(x).tolist() == [3.0] * 3


@pytest.mark.parametrize("name", _OPERATORS)
def test_the_same_under_functorch(ops, name):
    """Tangents are wrapped there, once for each level and batch."""

    def written(function):
        def run(x):
            y = function(x)
            return y.mul(1).mul_(3) + x, y

        return run

    def wrote(function):
        def run(x):
            y = function(x)
            y.mul_(3)
            return x * 1, y

        return run

    x, t = torch.ones(2, 3, dtype=torch.double), torch.rand(2, 3, dtype=torch.double)

    def through(function):
        return torch.func.jvp(function, (x[0],), (t[0],))

    def through_vmap(function):
        return torch.func.vmap(lambda a, b: torch.func.jvp(function, (a,), (b,)))(x, t)

    def in_vmap(function):
        return torch.func.jvp(torch.func.vmap(function), (x,), (t,))

    for change, way in itertools.product((written, wrote), (through, through_vmap, in_vmap)):
        if name in ("gathered", "in place") or (name == "list" and way is not through):
            continue  # the one is written with plain tangents, the other to what has no batch
        ours, atens = (way(change(function)) for function in ours_and_atens(ops)[name])
        torch.testing.assert_close(ours[1], atens[1])


def test_tangents_that_share_nothing_are_not_copied(ops):
    with forward_ad.dual_level():
        x = dual(torch.ones(3), torch.ones(3))
        with torch.profiler.profile() as profile:
            ops.cube(x)
        assert "aten::clone" not in {event.name for event in profile.events()}
        with torch.profiler.profile() as profile:
            ops.shifted(x)
        assert [event.name for event in profile.events()].count("aten::clone") == 1


# Devices on Meta: a rule refuses what the kernel of a device with several would.


def on_meta(*size, dtype=torch.float32):
    return torch.empty(size, device="meta", dtype=dtype)


def is_refused(call) -> bool:
    try:
        result = call()
    except RuntimeError as error:
        assert "device" in str(error), error
        return True
    assert result.is_meta
    return False


def test_meta_refuses_tensors_on_other_devices_as_atens_does(ops, myns):
    cpu, meta = torch.ones(3), on_meta(3)
    atens = is_refused(lambda: torch.add(meta, cpu))
    assert atens is True
    for first, second in [(meta, cpu), (cpu, meta)]:
        calls = {
            "weight": lambda a=first, b=second: ops.weighed(a, [], b),
            "list": lambda a=first, b=second: ops.weighed(a, [b], None),
            "structured": lambda a=first, b=second: ops.scaled(a, b),
            "iterator": lambda a=first, b=second: myns.mul(a, b),
            "myns": lambda a=first, b=second: myns.rms_norm(a, b),
            "out": lambda a=first, b=second: ops.weighed.out(a, [], b, out=on_meta(3)),
        }
        assert {n: is_refused(c) for n, c in calls.items()} == dict.fromkeys(calls, atens)
    assert is_refused(lambda: ops.weighed.out(meta, [], meta, out=torch.ones(3)))
    assert is_refused(lambda: ops.scaled_(on_meta(3), cpu))
    with pytest.raises(RuntimeError, match="'weight' is on cpu and 'self' on meta"):
        ops.weighed(meta, [], cpu)


def test_meta_takes_what_the_kernels_take(ops, myns):
    meta = on_meta(3)
    assert ops.weighed(meta, [meta], None).is_meta
    assert ops.weighed(meta, [], meta).is_meta
    assert ops.scaled_(meta, on_meta(3)) is meta
    assert ops.weighed_anywhere(meta, torch.ones(3)).is_meta  # device_check: NoCheck
    # numbers, which are tensors of the CPU, where ATen's iterators take them
    assert torch.add(meta, torch.ones(())).is_meta and myns.add(meta, torch.ones(())).is_meta


def test_fake_tensors_see_the_devices_that_they_have(ops):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        x, w = torch.ones(3), torch.ones(3, device="cuda")
        assert ops.weighed(x, [x], x).device.type == "cpu"
        assert ops.scaled(w, w).device.type == "cuda"
        for mixed in (lambda: torch.add(x, w), lambda: ops.weighed(x, [], w)):
            with pytest.raises(RuntimeError, match="device"):
                mixed()


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_code_calls_them_as_before(ops, dynamic):
    def function(x, w):
        return ops.weighed(x, [w], w) + ops.scaled(x, w)

    x, w = torch.rand(3), torch.rand(3)
    compiled = torch.compile(function, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    torch.testing.assert_close(compiled(x, w), function(x, w))


def test_every_check_passes(ops, tmp_path):
    """Of what this library has that the samples of others have not."""
    from torchext.testing import check

    report = check(
        "readingtest",
        operators=["cube", "product", "shifted", "elementwise", "flattened"],
        checks=["gradcheck", "gradgradcheck", "forward_mode", "vmap", "meta"],
        raise_exception=False,
    )
    assert not report.failures, str(report)
