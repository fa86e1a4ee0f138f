# SPDX-License-Identifier: BSD-3-Clause
"""Operators that read what has the memory of what they write to, and lists that are too short."""

from __future__ import annotations

import pytest
import torch

SQUARE = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64)
# What is read, as a part of what is written to.
READ = {
    "the first row": lambda c: c[0],
    "the columns as rows": lambda c: c.t(),
    "all of it": lambda c: c,
    "the last row, everywhere": lambda c: c[-1:].expand(2, 2),
    "a detached row": lambda c: c.detach()[0],
    "other memory": lambda c: c.clone(),
}
JACOBIANS = {
    "jacfwd": torch.func.jacfwd,
    "dual numbers": lambda f: (
        lambda x: torch.stack([tangent(f, x, i) for i in range(x.numel())], -1).unflatten(
            -1, x.shape
        )
    ),
}


def tangent(f, x, i):
    with torch.autograd.forward_ad.dual_level():
        direction = torch.zeros(x.numel(), dtype=x.dtype)
        direction[i] = 1
        dual = torch.autograd.forward_ad.make_dual(x, direction.view_as(x))
        return torch.autograd.forward_ad.unpack_dual(f(dual)).tangent


@pytest.mark.parametrize("jacobian", JACOBIANS)
@pytest.mark.parametrize("read", READ)
def test_a_tangent_reads_what_was_there_before(read, jacobian, ops):
    def written(b):
        c = b.clone()
        ops.scaled_by_(c, READ[read](c))
        return c.sum(0)

    def pure(b):
        return (b * READ[read](b)).sum(0)

    jacobian = JACOBIANS[jacobian]
    torch.testing.assert_close(jacobian(written)(SQUARE), jacobian(pure)(SQUARE))


@pytest.mark.parametrize("weight", [None, *READ])
@pytest.mark.parametrize("read", READ)
def test_so_does_that_of_an_entry_that_writes(read, weight, ops):
    def factors(c):
        return READ[read](c), None if weight is None else READ[weight](c)

    def written(b):
        c = b.clone()
        ops.weighted_(c, *factors(c))
        return c.sum(0)

    def pure(b):
        other, w = factors(b)
        return (b * other * (1 if w is None else w)).sum(0)

    jacobian = torch.func.jacfwd
    torch.testing.assert_close(jacobian(written)(SQUARE), jacobian(pure)(SQUARE))


@pytest.mark.parametrize("read", READ)
def test_reverse_mode_refuses_what_was_written_over(read, ops):
    x = SQUARE.clone().requires_grad_()
    c = x.clone()
    given = READ[read](c)
    loss = ops.scaled_by_(c, given).sum()
    if read == "other memory":
        (found,) = torch.autograd.grad(loss, x)
        torch.testing.assert_close(found, 2 * SQUARE)
    else:
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()


def test_lists_of_one_length_have_gradients_and_tangents(ops):
    xs = [torch.rand(2, 3, dtype=torch.float64, requires_grad=True) for _ in range(4)]

    def f(*tensors):
        return tuple(ops.each_times(list(tensors[:2]), list(tensors[2:])))

    assert torch.autograd.gradcheck(f, xs, check_forward_ad=True)


@pytest.mark.parametrize("requires_grad", [False, True])
def test_a_list_that_is_too_short_is_refused_by_name(requires_grad, ops):
    xs = [torch.ones(2, requires_grad=requires_grad) for _ in range(3)]
    with pytest.raises(RuntimeError, match="reads 'ys', which has 1"):
        ops.each_times(xs, [torch.ones(2)])
