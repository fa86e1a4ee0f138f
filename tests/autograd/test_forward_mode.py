# SPDX-License-Identifier: BSD-3-Clause
"""Forward mode: tangents are those of torch's operators; without a formula they are refused."""

import re

import formula_calls
import plain_calls
import pytest
import tangent_calls
import torch
from torch.autograd import forward_ad, gradcheck, gradgradcheck

DIFFERENCES = [name for name in tangent_calls.ALL if name not in tangent_calls.DETACHING]
BATCHED = [name for name in tangent_calls.ALL if name not in tangent_calls.NOT_BATCHED]
WITHOUT = {
    **plain_calls.ALL,
    **{n: c for n, c in formula_calls.ALL.items() if not tangent_calls.has_tangents(n)},
    "product.Scalar": lambda ops, x: (ops.product.Scalar(x, 2.5),),
}


def primal():
    return torch.arange(1.0, 7.0, dtype=torch.float64).reshape(2, 3)


def inputs(dtype=torch.float64):
    """Two primals and their tangents."""
    generator = torch.Generator().manual_seed(11)
    return [torch.randn(2, 3, dtype=dtype, generator=generator) for _ in range(4)]


def ours(name, ops):
    return lambda x, y: tangent_calls.ALL[name](ops, x, y)


def tangents_of(function, primals, tangents):
    """What torch has for each result: its value and its tangent, zeros for none."""
    with forward_ad.dual_level():
        duals = [p if t is None else forward_ad.make_dual(p, t) for p, t in zip(primals, tangents)]
        found = [forward_ad.unpack_dual(result) for result in function(*duals)]
        return [
            (f.primal, torch.zeros_like(f.primal) if f.tangent is None else f.tangent)
            for f in found
        ]


# ---- the tangents themselves


def test_a_linear_operator_gives_its_differentiable_result_alone_a_tangent(agtest):
    x, _, x_t, _ = inputs()
    with forward_ad.dual_level():
        constant, value = agtest.float_and_value(forward_ad.make_dual(x, x_t))
        assert forward_ad.unpack_dual(constant).tangent is None
        torch.testing.assert_close(forward_ad.unpack_dual(value).tangent, 2 * x_t)


@pytest.mark.parametrize("given", [(True, True), (True, False), (False, True)], ids=str)
@pytest.mark.parametrize("name", tangent_calls.ALL)
def test_tangents_are_those_of_torch_where_one_input_has_none_too(name, given, agtest):
    x, y, *tangents = inputs()
    tangents = [t if has else None for t, has in zip(tangents, given)]
    actual = tangents_of(ours(name, agtest), (x, y), tangents)
    expected = tangents_of(tangent_calls.REFERENCES[name], (x, y), tangents)
    torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("name", tangent_calls.COMPLEX)
def test_tangents_of_complex_numbers(name, agtest):
    x, y, *tangents = inputs(torch.complex128)
    actual = tangents_of(ours(name, agtest), (x, y), tangents)
    expected = tangents_of(tangent_calls.REFERENCES[name], (x, y), tangents)
    torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("name", DIFFERENCES)
def test_both_modes_agree_with_finite_differences(name, agtest):
    arguments = [t.requires_grad_() for t in inputs()[:2]]
    assert gradcheck(ours(name, agtest), arguments, check_forward_ad=True)


@pytest.mark.parametrize("name", tangent_calls.COMPLEX)
def test_both_modes_agree_with_finite_differences_of_complex_numbers(name, agtest):
    arguments = [t.requires_grad_() for t in inputs(torch.complex128)[:2]]
    assert gradcheck(ours(name, agtest), arguments, check_forward_ad=True)


@pytest.mark.parametrize("name", DIFFERENCES)
def test_forward_over_reverse_agrees_with_finite_differences(name, agtest):
    arguments = [t.requires_grad_() for t in inputs()[:2]]
    assert gradgradcheck(ours(name, agtest), arguments, check_fwd_over_rev=True)


@pytest.mark.parametrize("name", tangent_calls.ALL)
def test_reverse_over_forward_is_that_of_torch(name, agtest):
    x, y, *tangents = inputs()

    def second(function):
        def loss(x, y):
            _, found = torch.func.jvp(function, (x, y), tuple(tangents))
            return sum((t * t).sum() for t in found)

        return torch.func.grad(loss, (0, 1))(x, y)

    torch.testing.assert_close(second(ours(name, agtest)), second(tangent_calls.REFERENCES[name]))


@pytest.mark.parametrize("name", BATCHED)
def test_hessians_and_batches_of_tangents_are_those_of_torch(name, agtest):
    x, y, *tangents = inputs()

    def hessian(function):
        return torch.func.hessian(lambda x: sum((r * r).sum() for r in function(x, y)))(x)

    def batch(function):
        def tangent(t):
            return torch.func.jvp(lambda x: function(x, y), (x,), (t,))[1]

        return torch.func.vmap(tangent)(torch.stack(tangents))

    for transform in (hessian, batch):
        expected = transform(tangent_calls.REFERENCES[name])
        torch.testing.assert_close(transform(ours(name, agtest)), expected)


def test_a_tangent_of_another_dtype_promotes_as_torchs_does(agtest):
    x, y, tangent, _ = inputs()
    x, tangent = x.float(), tangent.float()
    actual = tangents_of(lambda x, y: (agtest.product(x, y),), (x, y), (tangent, None))
    expected = tangents_of(lambda x, y: (x * y,), (x, y), (tangent, None))
    torch.testing.assert_close(actual, expected)


# ---- lists


@pytest.mark.parametrize("with_tangent", [(0,), (1,), (0, 2), ()], ids=str)
def test_tangents_of_some_elements_of_a_list(with_tangent, agtest):
    primals = [torch.arange(3.0) + i for i in range(3)]
    tangents = [torch.full((3,), 2.0 + i) if i in with_tangent else None for i in range(3)]

    def both(stack, each):
        return lambda *tensors: [stack(list(tensors)), *each(list(tensors))]

    actual = both(agtest.stacked, lambda t: agtest.each_scaled(t, [2, 3, 4]))
    expected = both(torch.stack, lambda t: [2 * t[0], 3 * t[1], 4 * t[2]])
    torch.testing.assert_close(
        tangents_of(actual, primals, tangents), tangents_of(expected, primals, tangents)
    )


def test_an_element_without_a_tangent_gives_a_result_without_one(agtest):
    x, y, t, _ = inputs()
    with forward_ad.dual_level():
        results = agtest.each_expo([x, forward_ad.make_dual(y, t)])
        has = [forward_ad.unpack_dual(result).tangent is not None for result in results]
    assert has == [False, True]


# ---- what has no tangent


def test_a_result_that_is_not_differentiable_has_no_tangent(agtest):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(primal(), primal())
        value, index = agtest.value_and_index(dual)
        assert torch.equal(forward_ad.unpack_dual(value).tangent, 2 * primal())
        assert forward_ad.unpack_dual(index).tangent is None


@pytest.mark.parametrize("yes", [True, False])
def test_a_condition_of_differentiability_holds_for_tangents(yes, agtest):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(primal(), primal())
        tangent = forward_ad.unpack_dual(agtest.differentiable_if(dual, yes)).tangent
    assert (tangent is not None) == yes
    assert not yes or torch.equal(tangent, 2 * primal())


@pytest.mark.parametrize("first", [True, False])
def test_conditions_hold_for_the_tangents_of_their_own_results(first, agtest):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(primal(), primal())
        tangents = [forward_ad.unpack_dual(r).tangent for r in agtest.pair_if(dual, first)]
    assert [t is None for t in tangents] == [not first, first]
    assert torch.equal(tangents[not first], (2 if first else 3) * primal())


def test_a_tangent_on_an_argument_declared_not_differentiable_is_dropped(agtest):
    x = primal()
    _, tangent = torch.func.jvp(lambda y: agtest.ignores_other(x, y), (primal(),), (primal(),))
    assert tangent.eq(0).all()


@pytest.mark.parametrize("grad_mode", [True, False])
def test_a_tangent_on_an_argument_without_a_gradient_raises(grad_mode, agtest):
    x = primal()
    with torch.set_grad_enabled(grad_mode), forward_ad.dual_level():
        dual = forward_ad.make_dual(primal(), primal())
        with pytest.raises(NotImplementedError, match="agtest::lacks_other: 'other'"):
            agtest.lacks_other(x, dual)
        tangent = forward_ad.unpack_dual(agtest.lacks_other(dual, x)).tangent
    assert torch.equal(tangent, primal() * x)


def test_a_result_declared_not_differentiable_has_no_tangent(agtest):
    result, tangent = torch.func.jvp(agtest.plain_step, (primal(),), (primal(),))
    assert result.eq(1).all()
    assert tangent.eq(0).all()


# ---- operators without a formula for tangents


def refused(name):
    name = plain_calls.operator_of(name).removesuffix(".Scalar")
    return pytest.raises(NotImplementedError, match=re.escape(name))


@pytest.mark.parametrize("name", WITHOUT)
def test_jvp_without_a_formula_raises(name, agtest):
    def call(x):
        return WITHOUT[name](agtest, x.clone())[0]

    with refused(name):
        torch.func.jvp(call, (primal(),), (torch.ones(2, 3, dtype=torch.float64),))


@pytest.mark.parametrize("grad_mode", [True, False])
@pytest.mark.parametrize("name", WITHOUT)
def test_dual_numbers_without_a_formula_raise(name, grad_mode, agtest):
    tangent = torch.ones(2, 3, dtype=torch.float64)
    with torch.set_grad_enabled(grad_mode), forward_ad.dual_level():
        dual = forward_ad.make_dual(primal(), tangent)
        with refused(name):
            WITHOUT[name](agtest, dual)


@pytest.mark.parametrize("name", ["plain_mul", "product"])
def test_out_refuses_a_tangent(name, agtest):
    operator = getattr(agtest, name)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(primal(), torch.ones(2, 3, dtype=torch.float64))
        with refused(name):
            operator(dual, dual, out=primal())
        with refused(name):
            operator(primal(), primal(), out=dual)
        with pytest.raises(NotImplementedError, match="forward AD"):
            torch.mul(dual, dual, out=primal())


def test_jacfwd_and_hessian_raise_without_a_formula(agtest):
    with refused("plain_mul"):
        torch.func.jacfwd(lambda x: agtest.plain_mul(x, x))(primal())
    with refused("clash_result"):
        torch.func.hessian(lambda x: agtest.clash_result(x).sum())(primal())


def test_a_tangent_is_not_lost_in_what_is_overwritten_without_derivative(agtest):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(primal(), torch.ones(2, 3, dtype=torch.float64))
        with refused("plain_step_"):
            agtest.plain_step_(dual)
