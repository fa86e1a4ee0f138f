# SPDX-License-Identifier: BSD-3-Clause
"""Arguments that formulas use: of every type, and with names that generated code must survive."""

import formula_calls
import pytest
import torch


def ratio(result, x):
    return (result / x).unique()


def test_every_argument_reaches_the_formula(agtest):
    x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    result = agtest.typed(x, **formula_calls.typed_arguments())
    (gradient,) = torch.autograd.grad(result.sum(), x)
    assert torch.equal(gradient, result)


NOTHING = {
    "a": 0, "b": 0, "c": [], "d": [0, 0], "e": 0.0, "f": False, "g": 0, "h": None, "i": "",
    "j": None, "k": None, "l": None, "m": [False, False], "n": None, "o": None, "p": None,
    "q": None, "r": None, "s": None, "t": None, "u": [], "v": None, "w": [], "x": 0j, "y": None,
    "z": None,
}  # fmt: skip


@pytest.mark.parametrize("name", NOTHING)
def test_each_argument_reaches_the_formula_alone(name, agtest):
    x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    given = {**NOTHING, name: formula_calls.typed_arguments()[name]}
    result = agtest.typed(x, **given)
    assert result[0, 0] != 0
    (gradient,) = torch.autograd.grad(result.sum(), x)
    assert torch.equal(gradient, result)


@pytest.mark.parametrize("name", [None, *NOTHING])
def test_each_argument_reaches_the_tangent(name, agtest):
    full = formula_calls.typed_arguments()
    given = {**NOTHING, name: full[name]} if name else full
    x = torch.arange(1, 7, dtype=torch.float64).view(2, 3)
    value, tangent = torch.func.jvp(lambda x: agtest.typed(x, **given), (x,), (x.flip(0),))
    assert value[0, 0] != 0
    torch.testing.assert_close(tangent, value.flip(0))


def test_missing_arguments_stay_missing(agtest):
    x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    result = agtest.typed(x, **NOTHING)
    (gradient,) = torch.autograd.grad(result.sum(), x)
    assert result.eq(0).all()
    assert gradient.eq(0).all()


def test_empty_lists_are_not_missing_ones(agtest):
    x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    result = agtest.typed(x, **{**NOTHING, "j": [], "k": [], "n": [], "o": "", "e": 1.0})
    (gradient,) = torch.autograd.grad(result.sum(), x)
    assert gradient.eq(1).all()


def test_lists_and_strings_are_copied(agtest):
    x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    arguments = formula_calls.typed_arguments()
    result = agtest.typed(x, **arguments)
    for value in arguments.values():
        if isinstance(value, list):
            value.clear()
    del arguments
    junk = ["x" * n for n in range(1000)]  # memory that was freed is used again
    (gradient,) = torch.autograd.grad(result.sum(), x)
    assert torch.equal(gradient, result)
    assert junk


@pytest.mark.parametrize(("n", "v"), [(None, None), ([5, 6], None), (None, 7), ([5], 7)])
def test_symbolic_integers(n, v, agtest):
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    result = agtest.typed_symint(x, 2, [3, 4], n, v)
    result.sum().backward()
    assert x.grad.eq(9 + sum(n or []) + (v or 0)).all()


def test_names_that_generated_code_uses_itself(agtest):
    tensors = [torch.rand(3, dtype=torch.float64, requires_grad=True) for _ in range(5)]

    def clash(default, self, keys, node, operator):
        return agtest.clash(default, self, 2.0, 3, keys, node, 1.5, True, 0.5, operator)

    assert torch.autograd.gradcheck(clash, tensors)
    assert torch.autograd.gradgradcheck(clash, tensors)


def test_a_flag_called_like_a_keyword(agtest):
    tensors = [torch.full((3,), 2.0, requires_grad=True) for _ in range(4)]
    default, self, keys, node = tensors
    agtest.clash(default, self, 2.0, 3, keys, node, 1.5, False, 0.5).sum().backward()
    assert node.grad.eq(1).all()
    assert keys.grad.eq(1.5).all()


def test_lists_and_numbers_with_such_names(agtest):
    tensors = [torch.rand(3, dtype=torch.float64, requires_grad=True) for _ in range(3)]

    def clash(x, y, z):
        return agtest.clash_list([x, y], z, 2.0, 3.0, 0.5)

    assert torch.autograd.gradcheck(clash, tensors)


def test_results_with_such_names(agtest):
    x = torch.rand(3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(agtest.clash_results, x)
    assert torch.autograd.gradcheck(agtest.clash_result, x)


def test_errors_call_arguments_by_their_names(agtest):
    from torch.autograd import forward_ad

    x = torch.ones(3)
    with forward_ad.dual_level(), pytest.raises(NotImplementedError, match="'keys' carries"):
        agtest.clash(x, x, 2.0, 3, forward_ad.make_dual(x, x), x, 1.5, True, 0.5)
