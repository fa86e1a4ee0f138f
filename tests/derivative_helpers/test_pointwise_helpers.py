# SPDX-License-Identifier: BSD-3-Clause
"""Derivative helpers of pointwise functions, against the gradients of torch's own operators."""

import math

import pytest
import torch
from aten_oracle import assert_differentiable, assert_same, gradients, sample

OPS = torch.ops.derivative_helpers
REAL, COMPLEX = torch.float64, torch.complex128
BOTH = [True, True]
INF, NAN = math.inf, math.nan


def tensor(*numbers, dtype=REAL):
    return torch.tensor(numbers, dtype=dtype)


def assert_is_gradient(helper, function, inputs):
    """`helper(grad, result, *inputs)` gives what autograd does, and differentiates again."""
    result = function(*inputs)
    grad = sample(*result.shape, dtype=result.dtype)
    assert_same(helper(grad, result, *inputs), gradients(function, inputs, grad))


def with_graph(helper, function):
    """The helper as a function of the gradient and the inputs alone, as the graph sees it."""
    return lambda grad, *inputs: helper(grad, function(*inputs), *inputs)


# Functions of one tensor.

UNARY = {
    "angle": (torch.angle, lambda g, y, x: OPS.angle_backward(g, x)),
    "deg2rad": (torch.deg2rad, lambda g, y, x: OPS.deg2rad_backward(g)),
    "rad2deg": (torch.rad2deg, lambda g, y, x: OPS.rad2deg_backward(g)),
    "i1": (torch.special.i1, lambda g, y, x: OPS.i1_backward(g, x, y)),
    "i1e": (torch.special.i1e, lambda g, y, x: OPS.i1e_backward(g, x, y)),
    "log1p": (torch.log1p, lambda g, y, x: OPS.log1p_backward(g, x)),
    "sgn": (torch.sgn, lambda g, y, x: OPS.sgn_backward(x, g, y)),
    "sinc": (torch.sinc, lambda g, y, x: OPS.sinc_backward(g, x)),
}
TAKES_COMPLEX = ["angle", "log1p", "sgn", "sinc"]


def unary(name):
    function, helper = UNARY[name]
    return function, lambda *arguments: [helper(*arguments)]


@pytest.mark.parametrize("dtype", [REAL, torch.float32])
@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("size", [(3, 4), (), (0, 2)])
def test_gradients_of_real_functions(name, size, dtype):
    function, helper = unary(name)
    x = sample(*size, dtype=dtype)
    assert_is_gradient(helper, function, [x.abs() if name == "log1p" else x])


@pytest.mark.parametrize("name", TAKES_COMPLEX)
@pytest.mark.parametrize("size", [(3, 4), (), (0, 2)])
def test_gradients_of_complex_functions(name, size):
    function, helper = unary(name)
    assert_is_gradient(helper, function, [sample(*size, dtype=COMPLEX)])


@pytest.mark.parametrize(
    "name, dtype",
    [(name, dtype) for name in UNARY for dtype in (REAL, torch.float32)]
    + [(name, COMPLEX) for name in TAKES_COMPLEX],
)
def test_gradients_at_and_near_zero(name, dtype):
    function, helper = unary(name)
    assert_is_gradient(helper, function, [tensor(0, -0.0, 1e-3, -1e-3, 5, -0.5, dtype=dtype)])


@pytest.mark.parametrize(
    "name, dtype",
    [(name, REAL) for name in UNARY if name not in ("angle", "sgn")]
    + [(name, COMPLEX) for name in TAKES_COMPLEX],
)
def test_gradients_differentiate_again(name, dtype):
    function, helper = unary(name)
    x = sample(4, dtype=dtype)
    x = x.abs() + 0.5 if name == "log1p" else x
    grad = sample(4, dtype=function(x).dtype, seed=1)
    assert_differentiable(with_graph(helper, function), grad, x)


@pytest.mark.parametrize("name", ["i1", "i1e"])
def test_bessel_functions_stay_exact_where_the_quotient_cancels(name):
    function, helper = unary(name)
    x = tensor(1e-15, -1e-15, 1e-17, 0).requires_grad_()
    (slope,) = helper(torch.ones_like(x), function(x), x)
    (curvature,) = torch.autograd.grad(slope.sum(), x)
    torch.testing.assert_close(slope.detach(), torch.full_like(x, 0.5), atol=1e-14, rtol=0)
    assert curvature.isfinite().all()


def test_tangents_of_angle_and_sgn_are_what_their_formulas_say():
    x, t = sample(5, dtype=COMPLEX), sample(5, dtype=COMPLEX, seed=1)
    _, angle = torch.func.jvp(torch.angle, (x,), (t,))
    assert_same([OPS.angle_backward(t.conj(), x).conj().real], [angle])
    y, sgn = torch.func.jvp(torch.sgn, (x,), (t,))
    assert_same([OPS.sgn_backward(x, t, y)], [sgn])


def test_log1p_of_a_sparse_tensor_has_no_gradient():
    for x in (torch.eye(2).to_sparse(), torch.eye(2).to_sparse_csr()):
        with pytest.raises(RuntimeError, match="log1p: a sparse tensor has no gradient"):
            OPS.log1p_backward(torch.eye(2), x)


@pytest.mark.parametrize("p", [1, 2, 5])
def test_mvlgamma(p):
    x = sample(3, 2).abs() + 3
    assert_is_gradient(
        lambda g, y, x: [OPS.mvlgamma_backward(g, x, p)], lambda x: torch.mvlgamma(x, p), [x]
    )
    assert_differentiable(lambda g, x: OPS.mvlgamma_backward(g, x, p), sample(3, 2, seed=1), x)


@pytest.mark.parametrize("eps", [None, 0.0, 0.2])
def test_logit(eps):
    def helper(grad, y, x):
        return [OPS.infinitely_differentiable_logit_backward(grad, x, eps)]

    x = tensor(0.1, 0.2, 0.5, 0.8, 0.9)
    assert_is_gradient(helper, lambda x: torch.logit(x, eps), [x])
    x = tensor(-0.5, 0.25, 0.75, 1.5)
    assert_is_gradient(helper, lambda x: torch.logit(x, eps), [x])
    inside = tensor(0.3, 0.5, 0.7)
    assert_differentiable(lambda g, x: helper(g, None, x)[0], sample(3), inside)


# Products, quotients and small parts of formulas.

PAIRS = [(REAL, REAL), (COMPLEX, COMPLEX), (REAL, COMPLEX), (COMPLEX, REAL)]


@pytest.mark.parametrize("self_dtype, other_dtype", PAIRS)
def test_gradients_of_products_and_quotients(self_dtype, other_dtype):
    a, b = sample(3, 2, dtype=self_dtype), sample(3, 2, dtype=other_dtype, seed=1)

    def of_product(g, y, a, b):
        return OPS.mul_tensor_backward(g, b, a.dtype), OPS.mul_tensor_backward(g, a, b.dtype)

    def of_quotient(g, y, a, b):
        return OPS.div_tensor_self_backward(g, b, a.dtype), OPS.div_tensor_other_backward(g, a, b)

    grad = sample(3, 2, dtype=(a * b).dtype, seed=2)
    for helper, function in ((of_product, torch.mul), (of_quotient, torch.div)):
        assert_is_gradient(helper, function, [a, b])
        assert_differentiable(with_graph(helper, function), grad, a, b)


@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
@pytest.mark.parametrize("scalar", [2, 0.5, 1 + 2j])
def test_gradients_of_products_and_quotients_with_scalars(dtype, scalar):
    x = sample(3, dtype=dtype)
    assert_is_gradient(
        lambda g, y, x: [OPS.mul_tensor_backward(g, scalar, x.dtype)], lambda x: x * scalar, [x]
    )
    assert_is_gradient(
        lambda g, y, x: [OPS.div_tensor_self_backward(g, scalar, x.dtype)],
        lambda x: x / scalar,
        [x],
    )


@pytest.mark.parametrize("mode", ["floor", "trunc"])
def test_rounded_quotients_have_no_slope(mode):
    def helper(g, y, a, b):
        return (
            OPS.div_tensor_self_backward(g, b, a.dtype, mode),
            OPS.div_tensor_other_backward(g, a, b, mode),
        )

    a, b = sample(3), sample(3, seed=1)
    assert_is_gradient(helper, lambda a, b: torch.div(a, b, rounding_mode=mode), [a, b])
    of_scalar = OPS.div_tensor_self_backward(a, 2.0, torch.float32, mode)
    assert_same([of_scalar], [torch.zeros(3, dtype=torch.float32)])


def test_gradients_of_real_inputs_are_real():
    gradient = sample(3, dtype=COMPLEX)
    for real in (OPS.handle_r_to_c(REAL, gradient), OPS.handle_r_to_c(sample(3), gradient)):
        assert_same([real], [gradient.real])
    assert OPS.handle_r_to_c(COMPLEX, gradient) is gradient


def test_multiplication_by_one_is_left_out():
    x = sample(3)
    for one in (1, 1.0, 1 + 0j):
        assert OPS.maybe_multiply(x, one) is x
    assert_same([OPS.maybe_multiply(x, 2.5)], [x * 2.5])


def test_copysign():
    a, b = tensor(1.5, -2.5, 0, 3, -4, 0), tensor(-1, -1, -1, 1, 1, 1)

    def helper(g, y, a):
        return [OPS.copysign_tensor_self_backward(g, a, y)]

    assert_is_gradient(helper, lambda a: torch.copysign(a, b), [a])


def test_missing_formulas_raise_and_name_the_operator():
    with pytest.raises(NotImplementedError, match="derivative for 'op' is not implemented: reason"):
        OPS.not_implemented("op", "reason")
    with pytest.raises(NotImplementedError, match="derivative for 'op' is not implemented: cuDNN"):
        OPS.not_implemented_list("op")


# Powers.


def of_power(grad, result, base, exponent):
    return (
        OPS.pow_backward_self(grad, base, exponent),
        OPS.pow_backward_exponent(grad, base, exponent, result),
    )


@pytest.mark.parametrize("base_dtype, exponent_dtype", PAIRS)
def test_gradients_of_powers(base_dtype, exponent_dtype):
    base = sample(3, 2, dtype=base_dtype)
    base = base if base.is_complex() else base.abs() + 0.1
    exponent = sample(3, 2, dtype=exponent_dtype, seed=1)
    assert_is_gradient(of_power, torch.pow, [base, exponent])
    grad = sample(3, 2, dtype=base.pow(exponent).dtype, seed=2)
    # torch's own tangent of pow is wrong for a real number and a complex one.
    forward = base_dtype == exponent_dtype
    assert_differentiable(with_graph(of_power, torch.pow), grad, base, exponent, forward=forward)


@pytest.mark.parametrize("base_dtype, exponent_dtype", PAIRS)
def test_gradients_of_powers_at_zeros_and_of_negative_bases(base_dtype, exponent_dtype):
    base = tensor(0, 0, 0, 0, 2, -2, -2, dtype=base_dtype)
    exponent = tensor(0, 1, 2, -1, 0, 2, 0, dtype=exponent_dtype)
    assert_is_gradient(of_power, torch.pow, [base, exponent])


@pytest.mark.parametrize("base", [0.0, 0, 0j, tensor(0, 0, 0), tensor(0, 0, 0, dtype=COMPLEX)])
def test_second_derivatives_where_a_power_of_zero_is_constant(base):
    """The slope is masked, not its product with what comes in: the derivative of a masked product
    is zero times minus infinity."""
    exponent = tensor(0.5, 1, 2).requires_grad_()
    result = torch.pow(base, exponent)
    grad = torch.tensor([1, 2, 3], dtype=result.dtype).requires_grad_()
    own = OPS.pow_backward_exponent(grad, base, exponent, result)
    (expected,) = torch.autograd.grad(result, exponent, grad, create_graph=True)
    assert_same([own.detach()], [expected.detach()])
    second = [torch.autograd.grad(x, grad, torch.ones_like(x))[0] for x in (own, expected)]
    assert_same(second[:1], second[1:])
    assert second[0].eq(0).all()


def test_gradients_of_powers_of_integers_and_by_integers():
    whole, x = torch.tensor([0, 1, 2, 3]), tensor(2, 0, 0.5, 3)
    grad = sample(4)
    (expected,) = gradients(lambda x: whole**x, [x], grad)
    assert_same([OPS.pow_backward_exponent(grad, whole, x, whole**x)], [expected])
    (expected,) = gradients(lambda x: x**whole, [x], grad)
    assert_same([OPS.pow_backward_self(grad, x, whole)], [expected])


@pytest.mark.parametrize("dtype", [REAL, torch.float32, COMPLEX])
@pytest.mark.parametrize("exponent", [0, 0.0, 1, 2, 3, -1, 0.5, 2.5, 1 + 2j, 0j])
def test_gradients_of_powers_by_scalars(dtype, exponent):
    x = tensor(0.5, 2, 1, 3, dtype=dtype)

    def helper(g, y, x):
        return [OPS.pow_backward(g, x, exponent)]

    assert_is_gradient(helper, lambda x: torch.pow(x, exponent), [x])
    if dtype != torch.float32 and exponent != 0:
        grad = sample(4, dtype=torch.pow(x, exponent).dtype)
        forward = x.is_complex() or not isinstance(exponent, complex)
        assert_differentiable(lambda g, x: helper(g, None, x)[0], grad, x, forward=forward)


@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
@pytest.mark.parametrize("base", [0, 0.0, 2, 2.5, -2, 1 + 2j])
def test_gradients_of_powers_of_scalars(dtype, base):
    exponent = tensor(0, 1, 2, 3, 0.5 if base != -2 else 5, dtype=dtype)
    assert_is_gradient(
        lambda g, y, e: [OPS.pow_backward_exponent(g, base, e, y)],
        lambda e: torch.pow(base, e),
        [exponent],
    )


# Clamping, with ties, crossed bounds and NaN.

X = tensor(-1, 0, 0.5, 1, 2, NAN)
BOUNDS = [(0.0, 1.0), (1.0, 1.0), (1.0, 0.0), (NAN, 1.0), (0.0, NAN), (0.0, None), (None, 1.0)]


@pytest.mark.parametrize("low, high", BOUNDS)
def test_clamp_to_scalars(low, high):
    assert_is_gradient(
        lambda g, y, x: [OPS.clamp_backward(g, x, low, high)],
        lambda x: torch.ops.aten.clamp.default(x, low, high),
        [X],
    )


@pytest.mark.parametrize("low, high", BOUNDS)
def test_clamp_to_tensors(low, high):
    bounds = [torch.full_like(X, b) for b in (low, high) if b is not None]

    def place(bounds):
        bounds = list(bounds)
        return [None if b is None else bounds.pop(0) for b in (low, high)]

    def helper(g, y, x, *bounds):
        low, high = place(bounds)
        of_bounds = OPS.clamp_backward_min_max(g, x, low, high, BOTH)
        assert [b is None for b in of_bounds] == [low is None, high is None]
        of_x = OPS.clamp_backward(g, x, low, high)
        return [of_x, *(b for b in of_bounds if b is not None)]

    assert_is_gradient(helper, lambda x, *b: torch.clamp(x, *place(b)), [X, *bounds])


@pytest.mark.parametrize("low, high", BOUNDS)
def test_tangents_of_clamp(low, high):
    bounds = [None if b is None else torch.full_like(X, b) for b in (low, high)]
    tangents = [None if b is None else sample(6, seed=seed) for seed, b in enumerate(bounds, 1)]

    def function(x, *given):
        given = list(given)
        return torch.clamp(x, *(None if b is None else given.pop(0) for b in bounds))

    primals = [X, *(b for b in bounds if b is not None)]
    given = [sample(6), *(t for t in tangents if t is not None)]
    _, expected = torch.func.jvp(function, tuple(primals), tuple(given))
    arguments = [t for pair in zip(bounds, tangents, strict=True) for t in pair]
    assert_same([OPS.clamp_jvp(X, sample(6), *arguments)], [expected])


def test_a_missing_tangent_of_clamp_is_zero():
    x, low, high = tensor(-1, 0.5, 2), torch.zeros(3, dtype=REAL), torch.ones(3, dtype=REAL)
    t = sample(3)
    assert_same([OPS.clamp_jvp(x, t, low, None, high, None)], [t * tensor(0, 1, 0)])
    assert_same([OPS.clamp_jvp(x, None, low, t, high, None)], [t * tensor(1, 0, 0)])


def test_clamp_without_bounds_or_without_need():
    grad = sample(6)
    assert_same([OPS.clamp_backward(grad, X, None, None)], [grad])
    assert OPS.clamp_backward_min_max(None, X, X, X, BOTH) == (None, None)
    assert OPS.clamp_backward_min_max(grad, X, X, X, [False, False]) == (None, None)


def test_clamp_broadcasts():
    x, low, high = sample(4, 3), torch.tensor(-0.5, dtype=REAL), sample(3, seed=1).abs()
    grad = sample(4, 3, seed=2)
    expected = gradients(torch.clamp, [x, low, high], grad)
    of_low, of_high = OPS.clamp_backward_min_max(grad, x, low, high, BOTH)
    actual = [OPS.clamp_backward(grad, x, low, high), of_low.sum(), of_high.sum(0)]
    assert_same(actual, expected)


def test_clamp_differentiates_again():
    x, low, high = tensor(-1, 0.5, 2), tensor(0, 0, 0), tensor(1, 1, 1)

    def helper(grad, x):
        of_bounds = OPS.clamp_backward_min_max(grad, x, low, high, BOTH)
        return OPS.clamp_backward(grad, x, low, high), *of_bounds

    assert_differentiable(helper, sample(3), x)


# Polar coordinates.


def test_atan2():
    def helper(g, y, a, b):
        return OPS.atan2_backward(g, a, b, BOTH)

    a, b = tensor(0, 0, 1, -2, 0.5), tensor(0, -1, 0, 3, -0.25)
    assert_is_gradient(helper, torch.atan2, [a, b])
    assert_differentiable(lambda g, a, b: helper(g, None, a, b), sample(4), a[1:], b[1:])
    assert OPS.atan2_backward(None, a, b, BOTH) == (None, None)
    of_a, of_b = OPS.atan2_backward(a, a, b, [False, True])
    assert of_a is None and of_b is not None


def test_atan2_broadcasts():
    a, b, grad = sample(2, 3), sample(3, seed=1), sample(2, 3, seed=2)
    of_a, of_b = OPS.atan2_backward(grad, a, b, BOTH)
    assert_same([of_a, of_b.sum(0)], gradients(torch.atan2, [a, b], grad))


def test_polar():
    def helper(g, y, r, phi):
        return OPS.polar_backward(g, y)

    r, phi = tensor(0, 1, 2.5, 0.5), tensor(1, -2, 0, 4)
    assert_is_gradient(helper, torch.polar, [r, phi])
    grad = sample(3, dtype=COMPLEX)
    assert_differentiable(with_graph(helper, torch.polar), grad, r[1:], phi[1:])
    assert OPS.polar_backward(None, r) == (None, None)
