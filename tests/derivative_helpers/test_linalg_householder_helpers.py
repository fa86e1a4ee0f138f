# SPDX-License-Identifier: BSD-3-Clause
"""The helpers of torchext/derivatives/linalg_householder.h against aten's autograd."""

import pytest
import torch
from aten_oracle import sample
from linalg_oracle import (
    assert_backward,
    assert_gradcheck,
    assert_jvp,
    assert_maps,
    ops,
    over_dtypes,
)
from torch.testing import assert_close

product = torch.linalg.householder_product

# the shape of the input, the number of reflectors
PRODUCTS = [
    ((3, 3), 3),
    ((5, 3), 3),
    ((5, 3), 2),
    ((4, 1), 1),
    ((1, 1), 1),
    ((2, 4, 3), 2),
    ((3, 2), 0),
    ((0, 0), 0),
    ((0, 4, 2), 2),
]
over_products = pytest.mark.parametrize(("shape", "count"), PRODUCTS)


def reflectors(shape, count, dtype):
    """Reflectors that need not be unitary."""
    tau = sample(*shape[:-2], count, dtype=dtype, seed=1)
    return sample(*shape, dtype=dtype), tau


def reference_product(V, tau, C, flip_order):
    """The reflectors times C, one after the other."""
    order = range(tau.shape[-1])
    for i in order if flip_order else reversed(order):
        v = torch.cat([torch.zeros_like(V[:i, i]), torch.ones_like(V[:1, i]), V[i + 1 :, i]])
        C = C - tau[i] * torch.outer(v, v.conj() @ C)
    return C


@over_dtypes
@over_products
def test_product(shape, count, dtype):
    assert_backward(
        product,
        lambda grads, ins, outs: ops.householder_product_backward(grads[0], outs[0], *ins, False),
        *reflectors(shape, count, dtype),
    )
    assert_jvp(
        product,
        lambda tangents, ins, outs: ops.householder_product_jvp(*tangents, outs[0], *ins),
        *reflectors(shape, count, dtype),
    )


@over_dtypes
@pytest.mark.parametrize("flip_order", [False, True])
def test_product_with_a_constant_in_either_order(flip_order, dtype):
    C = sample(4, 5, dtype=dtype, seed=2)
    assert_backward(
        lambda V, tau: reference_product(V, tau, C, flip_order),
        lambda grads, ins, outs: ops.householder_product_backward(
            grads[0], outs[0], *ins, flip_order
        ),
        *reflectors((4, 3), 3, dtype),
    )


def test_an_undefined_gradient_stays_so():
    V, tau = reflectors((4, 3), 3, torch.float64)
    assert ops.householder_product_backward(None, V, V, tau, False) == (None, None)
    found = ops.ormqr_backward(None, V, V, tau, V, True, False, [True] * 3)
    assert found == (None, None, None)


def reference_ormqr(V, tau, C, left, transpose):
    eye = torch.eye(V.shape[0], dtype=V.dtype)
    Q = reference_product(V, tau, eye, flip_order=False)
    Q = Q.mH if transpose else Q
    return Q @ C if left else C @ Q


@over_dtypes
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
def test_ormqr(left, transpose, dtype):
    V, tau = reflectors((4, 3), 3, dtype)
    C = sample(*((4, 2) if left else (2, 4)), dtype=dtype, seed=2)
    inputs = (V, tau, C)
    assert_close(torch.ormqr(*inputs, left, transpose), reference_ormqr(*inputs, left, transpose))

    def helper(grads, ins, outs):
        return ops.ormqr_backward(grads[0], outs[0], *ins, left, transpose, [True] * 3)

    assert_backward(lambda *x: torch.ormqr(*x, left, transpose), helper, *inputs, twice=False)
    assert_backward(lambda *x: reference_ormqr(*x, left, transpose), helper, *inputs)


@pytest.mark.parametrize("position", [0, 1, 2])
def test_ormqr_computes_what_the_mask_asks_for(position):
    V, tau = reflectors((4, 3), 3, torch.float64)
    C = sample(4, 2, seed=2)
    result = torch.ormqr(V, tau, C)
    everything = ops.ormqr_backward(C, result, V, tau, C, True, False, [True] * 3)
    mask = [i == position for i in range(3)]
    found = ops.ormqr_backward(C, result, V, tau, C, True, False, mask)
    assert_close(found[position], everything[position])
    assert (found[2] is None) == (position != 2)
    assert (found[0] is None) == (position == 2)


@over_dtypes
def test_reverse_helpers_differentiate_in_both_modes(dtype):
    V, tau = reflectors((3, 2), 2, dtype)
    assert_gradcheck(
        lambda g, V, tau: ops.householder_product_backward(g, product(V, tau), V, tau, False),
        sample(3, 2, dtype=dtype, seed=3),
        V,
        tau,
    )


@over_dtypes
def test_under_vmap(dtype):
    V, tau = reflectors((3, 4, 2), 2, dtype)
    Q = product(V, tau)
    g = sample(3, 4, 2, dtype=dtype, seed=3)
    assert_maps(lambda *x: ops.householder_product_backward(*x, False), g, Q, V, tau)
    assert_maps(ops.householder_product_jvp, g, tau + 1, Q, V, tau)
