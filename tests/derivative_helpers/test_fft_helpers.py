# SPDX-License-Identifier: BSD-3-Clause
"""The helpers of torchext/derivatives/fft.h against aten's autograd."""

import pytest
import torch
from aten_oracle import sample
from linalg_oracle import assert_backward, assert_gradcheck, ops
from torch.testing import assert_close

aten = torch.ops.aten

# shape, dims
TRANSFORMS = [
    ((5,), [0]),
    ((6,), [0]),
    ((1,), [0]),
    ((2,), [0]),
    ((3, 4), [1]),
    ((3, 4), [0]),
    ((4, 5), [0, 1]),
    ((4, 5), [1, 0]),
    ((2, 3, 4), [0, 2]),
    ((2, 3, 4), [2, 0, 1]),
]
over_transforms = pytest.mark.parametrize(("shape", "dim"), TRANSFORMS)
over_normalizations = pytest.mark.parametrize("normalization", [0, 1, 2])


@over_transforms
@over_normalizations
@pytest.mark.parametrize("onesided", [True, False])
def test_from_real_numbers(shape, dim, normalization, onesided):
    flags = (dim, normalization, onesided)
    assert_backward(
        lambda x: aten._fft_r2c(x, *flags),
        lambda grads, ins, _: ops.fft_r2c_backward(grads[0], *flags, ins[0].shape[dim[-1]]),
        sample(*shape),
    )


@over_transforms
@over_normalizations
@pytest.mark.parametrize("is_odd", [False, True])
def test_to_real_numbers(shape, dim, normalization, is_odd):
    size = 2 * (shape[dim[-1]] - 1) + is_odd
    if size == 0:
        pytest.skip("an even transform of one element has no result")
    assert_backward(
        lambda x: aten._fft_c2r(x, dim, normalization, size),
        lambda grads, *_: ops.fft_c2r_backward(grads[0], dim, normalization),
        sample(*shape, dtype=torch.complex128),
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
def test_single_precision_stays_so(dtype):
    g = sample(4, dtype=dtype)
    if dtype.is_complex:
        assert ops.fft_r2c_backward(g, [0], 0, True, 6).dtype == torch.float32
    else:
        assert ops.fft_c2r_backward(g, [0], 0).dtype == torch.complex64


def test_helpers_differentiate_in_both_modes():
    g = sample(2, 3, dtype=torch.complex128)
    assert_gradcheck(lambda g: ops.fft_r2c_backward(g, [0, 1], 1, True, 4), g)
    assert_gradcheck(lambda g: ops.fft_c2r_backward(g, [0, 1], 1), sample(2, 4))


def test_under_vmap():
    g = sample(5, 2, 3, dtype=torch.complex128)
    for helper, stack in (
        (lambda x: ops.fft_r2c_backward(x, [0, 1], 1, True, 4), g),
        (lambda x: ops.fft_c2r_backward(x, [0, 1], 1), sample(5, 2, 4)),
    ):
        assert_close(torch.func.vmap(helper)(stack), torch.stack([helper(x) for x in stack]))
