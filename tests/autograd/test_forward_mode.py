# SPDX-License-Identifier: BSD-3-Clause
"""Without a formula for tangents a tangent is refused by name: a silent zero would be wrong."""

import re

import formula_calls
import plain_calls
import pytest
import torch
from torch.autograd import forward_ad

CALLS = {**plain_calls.ALL, **formula_calls.ALL}


def primal():
    return torch.arange(1.0, 7.0, dtype=torch.float64).reshape(2, 3)


def refused(name):
    return pytest.raises(NotImplementedError, match=re.escape(plain_calls.operator_of(name)))


@pytest.mark.parametrize("name", CALLS)
def test_jvp_raises(name, agtest):
    def call(x):
        return CALLS[name](agtest, x.clone())[0]

    with refused(name):
        torch.func.jvp(call, (primal(),), (torch.ones(2, 3, dtype=torch.float64),))


@pytest.mark.parametrize("grad_mode", [True, False])
@pytest.mark.parametrize("name", CALLS)
def test_dual_numbers_raise(name, grad_mode, agtest):
    tangent = torch.ones(2, 3, dtype=torch.float64)
    with torch.set_grad_enabled(grad_mode), forward_ad.dual_level():
        dual = forward_ad.make_dual(primal(), tangent)
        with refused(name):
            CALLS[name](agtest, dual)


def test_out_refuses_a_tangent(agtest):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(primal(), torch.ones(2, 3, dtype=torch.float64))
        with refused("plain_mul"):
            agtest.plain_mul(dual, dual, out=primal())
        with refused("plain_mul"):
            agtest.plain_mul(primal(), primal(), out=dual)


def test_jacfwd_and_hessian_raise(agtest):
    with refused("plain_mul"):
        torch.func.jacfwd(lambda x: agtest.plain_mul(x, x))(primal())
    with refused("expo"):
        torch.func.hessian(lambda x: agtest.expo(x).sum())(primal())


def test_a_result_declared_not_differentiable_has_no_tangent(agtest):
    result, tangent = torch.func.jvp(agtest.plain_step, (primal(),), (primal(),))
    assert result.eq(1).all()
    assert tangent.eq(0).all()


def test_a_tangent_on_an_argument_declared_not_differentiable_is_dropped(agtest):
    x = primal()
    _, tangent = torch.func.jvp(lambda y: agtest.ignores_other(x, y), (primal(),), (primal(),))
    assert tangent.eq(0).all()


def test_a_tangent_is_not_lost_in_what_is_overwritten_without_derivative(agtest):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(primal(), torch.ones(2, 3, dtype=torch.float64))
        with refused("plain_step_"):
            agtest.plain_step_(dual)
