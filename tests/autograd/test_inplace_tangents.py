# SPDX-License-Identifier: BSD-3-Clause
"""Forward mode of in-place operators: a tangent is written to as the value is, views included."""

import inplace_calls
import pytest
import torch
from inplace_calls import both, values
from torch.autograd import forward_ad

GIVEN = [(True, True), (True, False), (False, True)]


def inputs():
    """Two values and their tangents."""
    x, y = values()
    return x, y, torch.cos(3 * x), torch.sin(5 * y)


def duals(given):
    tensors = inputs()
    primals, tangents = tensors[:2], tensors[2:]
    return [
        forward_ad.make_dual(primal, tangent) if has else primal
        for primal, tangent, has in zip(primals, tangents, given)
    ]


def unpacked(*tensors):
    """Values and tangents, zeros for none."""
    found = [forward_ad.unpack_dual(tensor) for tensor in tensors]
    return [
        (f.primal.clone(), torch.zeros_like(f.primal) if f.tangent is None else f.tangent.clone())
        for f in found
    ]


def compare(name, agtest, function):
    """What `function` gives of the operator and of torch's own, each at a level of its own."""
    found = []
    for write in both(name, agtest):
        with forward_ad.dual_level():
            found.append(function(write))
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("grad_mode", [True, False])
@pytest.mark.parametrize("given", GIVEN, ids=str)
@pytest.mark.parametrize("name", inplace_calls.ALL)
def test_a_tangent_follows_the_value(name, given, grad_mode, agtest):
    def write_to_tensor(write):
        x, y = duals(given)
        with torch.set_grad_enabled(grad_mode):
            assert write(x, y) is x
        return unpacked(x)

    compare(name, agtest, write_to_tensor)


@pytest.mark.parametrize("given", GIVEN, ids=str)
@pytest.mark.parametrize("name", ["weighed_", "own_weighed_"])
def test_the_tangent_of_what_is_overwritten_ends(name, given, agtest):
    x, y, _, y_t = inputs()
    with forward_ad.dual_level():
        written, other = duals(given)
        getattr(agtest, name)(written, other)
        ((value, tangent),) = unpacked(written)
    torch.testing.assert_close(value, x * y)
    torch.testing.assert_close(tangent, y_t * x if given[1] else torch.zeros_like(x))


def test_several_written_results_have_the_tangents_of_the_functional_form(agtest):
    with forward_ad.dual_level():
        x, y = duals((True, True))
        results = agtest.summed(x, y)
        expected = unpacked(x * 2, y + x)
        torch.testing.assert_close(unpacked(*results), expected)
        torch.testing.assert_close(unpacked(*agtest.summed_(x, y)), expected)


@pytest.mark.parametrize("name", inplace_calls.ALL)
def test_an_existing_tangent_is_written_to_in_place(name, agtest):
    def places(write):
        x, y = duals((True, True))
        before = forward_ad.unpack_dual(x).tangent
        write(x, y)
        after = forward_ad.unpack_dual(x).tangent
        return before.data_ptr() == after.data_ptr(), before.clone()

    compare(name, agtest, places)


@pytest.mark.parametrize("given", GIVEN, ids=str)
@pytest.mark.parametrize("name", inplace_calls.ALL)
def test_writing_to_a_view_writes_to_the_tangent_of_its_base(name, given, agtest):
    def write_to_view(write):
        base, y = duals(given)
        view = base.t()[1:]
        write(view, y.t()[1:])
        return unpacked(base, view, base[0])

    compare(name, agtest, write_to_view)


@pytest.mark.parametrize("name", inplace_calls.ALL)
def test_writing_to_a_base_writes_to_the_tangents_of_its_views(name, agtest):
    def write_to_base(write):
        base, y = duals((True, True))
        view = base.view(6)[1:4]
        write(base, y)
        return unpacked(base, view)

    compare(name, agtest, write_to_base)


@pytest.mark.parametrize("name", inplace_calls.ALL)
def test_several_writes(name, agtest):
    def write_often(write):
        x, y = duals((True, True))
        write(x[0], y[0])
        write(x, y)
        write(y, x)
        return unpacked(x, y)

    compare(name, agtest, write_often)


@pytest.mark.parametrize("name", inplace_calls.ALL)
def test_reverse_over_forward_and_forward_over_reverse(name, agtest):
    x, y, x_t, y_t = inputs()

    def reverse_over_forward(write):
        def loss(x, y):
            _, t = torch.func.jvp(lambda x, y: write(x * 1, y), (x, y), (x_t, y_t))
            return (t * t).sum()

        return torch.func.grad(loss, (0, 1))(x, y)

    def forward_over_reverse(write):
        gradient = torch.func.grad(lambda x, y: (write(x * 1, y) ** 2).sum(), (0, 1))
        return torch.func.jvp(gradient, (x, y), (x_t, y_t))

    for transform in (reverse_over_forward, forward_over_reverse):
        torch.testing.assert_close(*[transform(write) for write in both(name, agtest)])


@pytest.mark.parametrize("name", inplace_calls.ALL)
def test_gradients_of_a_tangent_that_was_written_to(name, agtest):
    def gradients(write):
        x, y, x_t, y_t = [t.requires_grad_() for t in inputs()]
        dual = forward_ad.make_dual(x * 1, x_t * 1)
        write(dual, forward_ad.make_dual(y * 1, y_t * 1))
        primal, tangent = forward_ad.unpack_dual(dual)
        loss = (tangent * tangent.detach()).sum() + (primal * 2).sum()
        return torch.autograd.grad(loss, (x, y, x_t, y_t), allow_unused=True)

    compare(name, agtest, gradients)


@pytest.mark.parametrize("name", inplace_calls.ALL)
def test_finite_differences(name, agtest):
    ours, _ = both(name, agtest)

    def function(x, y):
        base = x * 1
        ours(base[0], y[0])
        return base * 2, ours(x * 1, y)

    arguments = [t.requires_grad_() for t in values()]
    assert torch.autograd.gradcheck(function, arguments, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(function, arguments, check_fwd_over_rev=True)


@pytest.mark.parametrize("name", ["product_", "expo_", "squared_", "neg_", "scaled_sum_"])
def test_tangents_of_complex_numbers(name, agtest):
    x, y, x_t, y_t = inputs()
    primals = torch.complex(x, y), torch.complex(y, -x)
    tangents = torch.complex(x_t, 2 * y_t), torch.complex(-y_t, x_t)

    def tangent(write):
        return torch.func.jvp(lambda x, y: write(x * 1, y), primals, tangents)

    torch.testing.assert_close(*[tangent(write) for write in both(name, agtest)])
