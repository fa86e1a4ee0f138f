# SPDX-License-Identifier: BSD-3-Clause
"""Kernels that go over a grid, on the host with grids so small that they must."""

import pytest
import torch

from torchext.testing import cuda_on_host

ops = torch.ops.myns


def rms_norm(x, weight):
    return x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * weight


def silu_and_mul(x):
    gate, up = x.chunk(2, -1)
    return torch.nn.functional.silu(gate) * up


def gradients(f, tensors, incoming):
    leaves = [t.clone().requires_grad_() for t in tensors]
    return torch.autograd.grad(f(*leaves), leaves, incoming)


# Ours and torch's.
KERNELS = {
    "softmax of rows": (lambda x: ops.softmax(x, -1), lambda x: torch.softmax(x, -1)),
    "softmax of columns": (lambda x: ops.softmax(x, 0), lambda x: torch.softmax(x, 0)),
    "cumsum": (lambda x: ops.cumsum(x, -1), lambda x: torch.cumsum(x, -1)),
    "cumsum of columns": (lambda x: ops.cumsum(x, 0), lambda x: torch.cumsum(x, 0)),
    "rms_norm": (lambda x: ops.rms_norm(x, x[0], 1e-6), lambda x: rms_norm(x, x[0])),
    "gradients of rms_norm": (
        lambda x: gradients(lambda a, w: ops.rms_norm(a, w, 1e-6), [x, x[0]], x.cos()),
        lambda x: gradients(rms_norm, [x, x[0]], x.cos()),
    ),
    "silu_and_mul": (ops.silu_and_mul, silu_and_mul),
    "gradient of silu_and_mul": (
        lambda x: gradients(ops.silu_and_mul, [x], x.chunk(2, -1)[0].cos()),
        lambda x: gradients(silu_and_mul, [x], x.chunk(2, -1)[0].cos()),
    ),
}


# With rows that are read in wide loads, and rows that are not.
@pytest.mark.parametrize("shape", [(37, 48), (9, 1030), (5, 4096), (300, 6)], ids=str)
@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_grid_that_is_too_small_is_gone_over(host_device, kernel, most, shape):
    ours, torchs = KERNELS[kernel]
    x = torch.randn(shape, generator=torch.Generator().manual_seed(3))
    with cuda_on_host.schedule(most_blocks=most):
        found = ours(x.to(host_device))
    found = torch.utils._pytree.tree_map(lambda t: t.cpu(), found)
    torch.testing.assert_close(found, torchs(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("count", [1, 4095, 4097, 70000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int32, torch.uint8], ids=str)
def test_a_dot_product_of_several_blocks(gpu, count, dtype):
    generator = torch.Generator().manual_seed(4)
    x, y = (torch.randint(0, 9, (count,), generator=generator).to(dtype) for _ in range(2))
    if dtype.is_floating_point:
        x, y = x / count**0.5, y / count**0.5
        expected = torch.dot(x.double(), y.double())
    else:
        expected = (x.long() * y.long()).sum()
    torch.testing.assert_close(ops.dot(x.to(gpu), y.to(gpu)).cpu(), expected.to(dtype))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_a_dot_product_is_summed_in_more_bits_than_its_result_has(gpu, dtype):
    x = torch.full((65536,), 0.5, dtype=dtype)
    x[::32], x[16::32] = 2048, -2048  # beside which a half is lost
    found = ops.dot(x.to(gpu), torch.ones_like(x).to(gpu))
    assert found.item() == 0.5 * len(x) * 30 / 32


@pytest.mark.parametrize("count", [5, 4099, 70001])
@pytest.mark.parametrize("begin", [0, 1, 4])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int8], ids=str)
def test_a_dot_product_begins_and_ends_anywhere(gpu, count, begin, dtype):
    x, y = (torch.randint(-3, 4, (count + 4,)).to(dtype).to(gpu) for _ in range(2))
    found = ops.dot(x[begin : begin + count], y[4 : 4 + count])
    exact = (x[begin : begin + count].cpu().long() * y[4 : 4 + count].cpu().long()).sum()
    assert found.item() == exact.to(dtype).item()
