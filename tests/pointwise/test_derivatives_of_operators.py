# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives that follow from expressions: of every order and mode, and beside autograd's."""

import itertools

import pytest
import torch
import written_with_torch as written
from every_path import PATHS
from torch.autograd import forward_ad, gradcheck, gradgradcheck
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vmap
from torch.testing import assert_close

CALLS = {
    "swiglu": ([(3, 4), (4,)], {}),
    "scaled": ([(3, 4), (4,)], {"alpha": 2.5}),
    "affine": ([(3, 4), (4,), ()], {}),
    "huber": ([(3, 4), (3, 1)], {"delta": 0.5}),
    "rotate": ([(3, 4), (3, 4), (4,)], {}),
    "powered": ([(3, 4)], {"n": 3, "twice": True}),
    "same": ([(3, 4)], {}),
    "stepped": ([(3, 1), (4,)], {}),
    "wrapped": ([(3, 4), (4,)], {}),
}


MODES = list(itertools.product([jacfwd, jacrev], repeat=3))


def leaves(name):
    torch.manual_seed(3)
    sizes, options = CALLS[name]
    made = [torch.rand(s, dtype=torch.float64).add_(0.6).requires_grad_() for s in sizes]
    return made, options


@pytest.mark.parametrize("name", CALLS)
def test_first_derivatives_are_those_of_numbers(pointwisetest, name):
    given, options = leaves(name)
    assert gradcheck(
        lambda *x: getattr(pointwisetest, name)(*x, **options),
        given,
        check_forward_ad=True,
        check_batched_grad=True,
        check_batched_forward_grad=True,
    )


def test_a_tangent_has_the_sizes_of_the_result(pointwisetest):
    """Also where what the argument broadcasts with has no gradient, and no tangent."""
    (x, y), _ = leaves("stepped")
    for other in (y.detach(), y.detach().float()):
        results = [
            torch.func.jvp(lambda x, f=f: f(x, other), (x.detach(),), (torch.ones_like(x),))
            for f in (pointwisetest.stepped, written.stepped)
        ]
        assert_close(*results)


@pytest.mark.parametrize("name", CALLS)
def test_second_derivatives_are_those_of_numbers(pointwisetest, name):
    given, options = leaves(name)
    assert gradgradcheck(
        lambda *x: getattr(pointwisetest, name)(*x, **options),
        given,
        check_fwd_over_rev=True,
        check_rev_over_rev=True,
        check_batched_grad=True,
    )


@pytest.mark.parametrize("modes", MODES, ids=lambda modes: "-".join(m.__name__ for m in modes))
def test_third_derivatives_in_every_mode_are_torchs(pointwisetest, modes):
    x, y = torch.tensor(0.7, dtype=torch.float64), torch.tensor(-0.4, dtype=torch.float64)
    for name in ("swiglu", "huber"):
        own, other = getattr(pointwisetest, name), getattr(written, name)
        for mode in modes:
            own, other = mode(own), mode(other)
        assert_close(own(x, y), other(x, y))


def test_a_gradient_of_a_gradient_of_a_gradient_goes_on(pointwisetest):
    own, other = pointwisetest.swiglu, written.swiglu
    x, y = torch.tensor(0.7, dtype=torch.float64), torch.tensor(-0.4, dtype=torch.float64)
    for _ in range(5):
        own, other = grad(own), grad(other)
        assert_close(own(x, y), other(x, y))


def test_hessians_of_batches_are_torchs(pointwisetest):
    x = torch.randn(5, 3, dtype=torch.float64)

    def of(swiglu):
        return vmap(hessian(lambda row: swiglu(row, row).sum()))(x)

    assert_close(of(pointwisetest.swiglu), of(written.swiglu))


def test_only_the_gradients_that_are_asked_for_are_made(pointwisetest):
    g, gate, up = (torch.randn(3, 4) for _ in range(3))
    for mask in itertools.product([True, False], repeat=2):
        found = pointwisetest.swiglu_backward(g, gate, up, list(mask))
        assert [r is not None for r in found] == list(mask)
    gate.requires_grad_()
    node = pointwisetest.swiglu(gate, up).grad_fn
    assert [r is not None for r in node(g)] == [True, False]


def test_a_gradient_that_nobody_gave_is_no_zero(pointwisetest):
    """Infinity times zero would be NaN."""
    x = torch.tensor([1.0], requires_grad=True)
    y = torch.tensor([2.0], requires_grad=True)
    angle = torch.tensor([float("inf")])
    across, _ = pointwisetest.rotate(x, y, torch.zeros(1))
    across.backward()
    assert (x.grad.item(), y.grad.item()) == (1, 0)
    found = pointwisetest.rotate_backward(None, torch.ones(1), x, y, angle, [True, True, False])
    assert found[0].isnan().item() and found[1].isnan().item()
    (first, *_) = pointwisetest.rotate_backward(torch.ones(1), None, x, y, 0 * x, [True] * 3)
    assert first.item() == 1


def test_results_without_a_gradient_require_none(pointwisetest):
    x = torch.randn(3, requires_grad=True)
    values, is_first = pointwisetest.larger(x, torch.zeros(3))
    assert values.requires_grad and not is_first.requires_grad
    assert not pointwisetest.positive(x).requires_grad
    assert not any(r.requires_grad for r in pointwisetest.adam(x, x, x, x * x, 0.1))


@pytest.mark.parametrize("path", PATHS)
def test_what_depends_smoothly_on_no_tensor_has_no_gradient(pointwisetest, path):
    """As a comparison has none; what stands beside it keeps its gradient, and its tangent."""
    x, x_t = torch.randn(2, 20)

    def product(x):
        return pointwisetest.step(x, 0.5) * x

    expected = (x > 0.5).float()
    assert_close(PATHS[path](grad(lambda x: product(x).sum()))(x), expected)
    assert_close(PATHS[path](lambda x, x_t: jvp(product, (x,), (x_t,))[1])(x, x_t), expected * x_t)
    leaf = x.clone().requires_grad_()
    assert not pointwisetest.step(leaf).requires_grad
    product(leaf).sum().backward()
    assert_close(leaf.grad, expected)
    with pytest.raises(RuntimeError, match="step_"):
        pointwisetest.step_(leaf * 1)


@pytest.mark.parametrize("path", PATHS)
def test_a_tangent_has_the_sizes_that_other_results_bring(pointwisetest, path):
    x, x_t = torch.randn(2, 4)
    y = torch.randn(3, 4)

    def tangent(x, x_t):
        return jvp(lambda x: pointwisetest.sine_beside(x, y)[0], (x,), (x_t,))[1]

    assert_close(PATHS[path](tangent)(x, x_t), (x_t * x.cos()).expand(3, 4))
    found = PATHS[path](grad(lambda x: pointwisetest.sine_beside(x, y)[0].sum()))(x)
    assert_close(found, 3 * x.cos())


def test_a_tensor_of_a_condition_has_no_gradient(pointwisetest):
    mask, x, y = (torch.randn(4, requires_grad=True) for _ in range(3))
    pointwisetest.chosen(mask, x, y).sum().backward()
    assert mask.grad is None
    assert torch.equal(x.grad, (mask > 0).float())
    assert torch.equal(y.grad, (mask <= 0).float())


def test_formulas_that_are_written_count(pointwisetest):
    x = torch.randn(3, requires_grad=True)
    pointwisetest.twice(x).sum().backward()
    assert torch.equal(x.grad, torch.full((3,), 3.0))
    assert not hasattr(pointwisetest, "twice_backward")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_gradients_of_halves_are_computed_in_float32(pointwisetest, dtype):
    torch.manual_seed(5)
    given = [torch.randn(40).to(dtype).requires_grad_() for _ in range(2)]
    exact = [x.detach().double().requires_grad_() for x in given]
    pointwisetest.swiglu(*given).sum().backward()
    written.swiglu(*exact).sum().backward()
    for own, other in zip(given, exact, strict=True):
        assert torch.equal(own.grad, other.grad.to(dtype))


def test_gradients_have_the_dtypes_of_what_they_are_of(pointwisetest):
    x = torch.randn(3, 4, dtype=torch.float16, requires_grad=True)
    weight = torch.randn(4, requires_grad=True)
    out = pointwisetest.scaled(x, weight)
    assert out.dtype == torch.float32
    out.sum().backward()
    assert (x.grad.dtype, weight.grad.dtype) == (torch.float16, torch.float32)
    assert weight.grad.shape == (4,)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x.detach(), torch.ones_like(x))
        out = pointwisetest.scaled(dual, weight.detach())
        assert forward_ad.unpack_dual(out).tangent.dtype == torch.float32


def test_a_missing_tensor_has_no_gradient(pointwisetest):
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    assert gradcheck(pointwisetest.scaled, (x,), check_forward_ad=True)
    assert gradgradcheck(pointwisetest.scaled, (x,), check_fwd_over_rev=True)


def test_what_is_detached_is_constant_to_any_order(pointwisetest):
    x, y = torch.rand(5, dtype=torch.float64) + 0.6, torch.rand(5, dtype=torch.float64)
    at = x.clone()
    ours = pointwisetest.straight_through

    def written_out(x, y):
        return at * y**2 + x * at.exp() + x**3 + (at.round() - at)

    def along(f):
        return lambda x, y: torch.func.jvp(f, (x, y), (at.cos(), at.sin()))[1]

    def gradient(f):
        return lambda x, y: sum(grad(lambda *p: f(*p).sum(), (0, 1))(x, y))

    for modes in itertools.product([along, gradient], repeat=3):
        for order in (1, 2, 3):
            both = []
            for f in (ours, written_out):
                for mode in modes[:order]:
                    f = mode(f)
                both.append(f(x, y))
            assert_close(*both)
    for f in (ours, lambda x, y: ours(x, y) * 1):
        assert_close(vmap(gradient(f))(x, y), gradient(written_out)(x, y))
