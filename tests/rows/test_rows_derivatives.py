# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of operators of rows: numbers, and torch's own second derivatives."""

import pytest
import torch
from rows_with_torch import WITH_TORCH, arguments_of, as_tuple, smooth
from torch.autograd import gradcheck, gradgradcheck
from torch.nn import functional as F


def case(rowstest, name):
    given = arguments_of(name, (3,), 5, requires_grad=True)
    return smooth(getattr(rowstest, name)), given


@pytest.mark.parametrize("name", WITH_TORCH)
def test_gradcheck(rowstest, name):
    function, given = case(rowstest, name)
    assert gradcheck(
        function, given, check_forward_ad=True, check_batched_grad=True,
        check_batched_forward_grad=True,
    )  # fmt: skip


@pytest.mark.parametrize("name", WITH_TORCH)
def test_gradgradcheck(rowstest, name):
    function, given = case(rowstest, name)
    assert gradgradcheck(
        function, given, check_fwd_over_rev=True, check_rev_over_rev=True, check_batched_grad=True
    )


def derivatives(function, given, order):
    """The results, and the gradient of each leaf, with outer ones that are the same for all."""
    leaves = [a.detach().clone().requires_grad_() for a in given if a.is_floating_point()]
    rest = [a for a in given if not a.is_floating_point()]
    found = [dict(enumerate(as_tuple(smooth(function)(*leaves, *rest))))]
    for depth in range(order):
        smooth_ones = {i: v for i, v in found[-1].items() if v is not None and v.requires_grad}
        outer = [
            torch.randn(v.shape, generator=torch.Generator().manual_seed(10 * depth + i)).to(
                v.dtype
            )
            for i, v in smooth_ones.items()
        ]
        grads = torch.autograd.grad(
            list(smooth_ones.values()), leaves, outer, create_graph=True, allow_unused=True
        )
        found.append(dict(enumerate(grads)))
    return found


def compare(own, expected, **tolerances):
    for mine, torchs in zip(own, expected, strict=True):
        for i, value in torchs.items():
            if value is None:
                assert mine[i] is None or not mine[i].any()
            elif mine[i] is None:
                assert not value.any()
            else:
                torch.testing.assert_close(mine[i], value.to(mine[i].dtype), **tolerances)


def layer_norm(x, w, b):
    """With functions of elements: the third derivative of torch's own is not that of its value,
    which no shift of a row changes."""
    distance = x - x.mean(-1, keepdim=True)
    return distance * torch.rsqrt(distance.square().mean(-1, keepdim=True) + 1e-5) * w + b


@pytest.mark.parametrize("name", [n for n in WITH_TORCH if n != "largest"])
def test_third_derivatives_are_torchs(rowstest, name):
    given = arguments_of(name, (4,), 6)
    written = layer_norm if name == "layer_norm" else WITH_TORCH[name][0]
    compare(derivatives(getattr(rowstest, name), given, 3), derivatives(written, given, 3))


@pytest.mark.parametrize("name", ["softmax", "layer_norm", "cross_entropy", "rms_norm"])
def test_second_derivatives_are_torchs(rowstest, name):
    given = arguments_of(name, (4,), 6)
    compare(
        derivatives(getattr(rowstest, name), given, 2),
        derivatives(WITH_TORCH[name][0], given, 2),
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", WITH_TORCH)
def test_gradients_in_lower_precision(rowstest, name, dtype):
    """Against those of the same numbers in double precision: each is rounded once."""
    given = arguments_of(name, (4,), 300, dtype)
    leaves = [a.requires_grad_() if a.is_floating_point() else a for a in given]
    wide = [a.detach().double().requires_grad_() if a.is_floating_point() else a for a in given]
    nothing = torch.zeros(())
    for results in (smooth(getattr(rowstest, name))(*leaves), smooth(WITH_TORCH[name][0])(*wide)):
        sum(
            r.sum() if r.dim() == 1 else (r * torch.arange(r.shape[-1]) % 7).sum() for r in results
        ).backward()
    for own, expected in zip(leaves, wide, strict=True):
        if own.is_floating_point():
            mine, torchs = (nothing if x.grad is None else x.grad for x in (own, expected))
            bound = 8 * torch.finfo(dtype).eps * torchs.abs().max()
            assert (mine.double() - torchs).abs().max() <= bound


def test_only_wanted_gradients_are_computed(rowstest):
    x, w = torch.randn(3, 5), torch.randn(5, requires_grad=True)
    (grad,) = torch.autograd.grad(rowstest.rms_norm(x, w).sum(), w)
    assert grad.shape == (5,)
    found = rowstest.rms_norm_backward(torch.ones(3, 5), x, w, 1e-6, [False, True])
    assert found[0] is None
    torch.testing.assert_close(found[1], grad)


@pytest.mark.parametrize(
    "size", [(7,), (1, 7), (4, 1, 7), (3, 7), (4, 3, 7), (1,), (4, 3, 1)], ids=str
)
def test_gradients_have_the_size_of_what_is_broadcast(rowstest, size):
    """Of one row for all, which kernels sum, and of what autograd and they sum together."""
    torch.manual_seed(0)
    x, weight = torch.randn(4, 3, 7, requires_grad=True), torch.randn(size, requires_grad=True)
    outer = torch.randn(4, 3, 7)
    found = []
    for function in (rowstest.rms_norm, lambda x, w: F.rms_norm(x, (7,), None, 1e-6) * w):
        grads = torch.autograd.grad(function(x, weight), [x, weight], outer, create_graph=True)
        again = torch.autograd.grad(grads[1].sin().sum(), [x, weight], allow_unused=True)
        found.append([*grads, *again])
    for own, expected in zip(*found, strict=True):
        torch.testing.assert_close(own, torch.zeros_like(weight) if expected is None else expected)


def test_sums_over_rows_are_exact_enough_whatever_threads_there_are(rowstest):
    x, weight = torch.rand(30_000, 9) + 0.5, torch.rand(9, requires_grad=True)
    grad = torch.rand(30_000, 9) + 0.5
    threads, found = torch.get_num_threads(), []
    try:
        for count in (1, 2, 5):
            torch.set_num_threads(count)
            found += torch.autograd.grad(rowstest.rms_norm(x, weight), weight, grad)
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])
    expected = (grad.double() * F.rms_norm(x.double(), (9,), None, 1e-6)).sum(0)
    assert (found[0] / expected - 1).abs().max() < 1e-6


def test_of_sums_over_rows_no_rows_are_written(rowstest):
    x, weight = torch.randn(4096, 64), torch.randn(64)
    grad = torch.ones_like(x)
    with torch.profiler.profile(profile_memory=True) as profile:
        rowstest.rms_norm_backward(grad, x, weight, 1e-6, [False, True])
    made = [event.cpu_memory_usage for event in profile.events() if event.cpu_memory_usage > 0]
    assert max(made) < x.nbytes / 32


def peak(function, *given):
    """The most memory in bytes that a call and its gradient have at a time."""
    with torch.profiler.profile(profile_memory=True) as profile:
        function(*given).sum().backward()
    now = most = 0
    for event in sorted(profile.profiler.kineto_results.events(), key=lambda e: e.start_ns()):
        if event.name() == "[memory]":
            now += event.nbytes()
            most = max(most, now)
    return most


def test_cross_entropy_has_half_the_memory_of_torchs(rowstest):
    x, target = torch.randn(256, 4096, requires_grad=True), torch.randint(0, 4096, (256,))
    own = peak(rowstest.cross_entropy, x, target)
    x.grad = None
    assert own <= peak(WITH_TORCH["cross_entropy"][0], x, target) / 2
    assert own < 1.1 * x.nbytes


def test_the_largest_share_a_gradient(rowstest):
    x = torch.tensor([[1.0, 3, 3], [2, 2, 2]], requires_grad=True)
    (own,) = torch.autograd.grad(rowstest.largest(x)[0].sum(), x)
    (expected,) = torch.autograd.grad(x.amax(-1).sum(), x)
    assert torch.equal(own, expected)
