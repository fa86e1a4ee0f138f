# SPDX-License-Identifier: BSD-3-Clause
"""The CUDA kernels that are generated from expressions, beside those for the CPU."""

import itertools

import pytest
import torch
from library_build import build
from torch.testing import assert_close, make_tensor

import torchext
from torchext.testing import cuda_on_host

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
DTYPES = [*FLOATS, torch.uint8, torch.int16, torch.int64]
# The kernels of all dtypes are one template: those of two, whose accesses have 32 and 16 bits, run
# in every order, the others in one.
SCHEDULES = [(dtype, None) for dtype in DTYPES]
SCHEDULES += itertools.product([torch.float32, torch.bfloat16], [0, 5])


@pytest.fixture(scope="module")
def ops(device, request):
    """The operators, with their kernels on the test device."""
    project = build(request.path.parent / "expressions")
    found = torchext.load_library(project / "fused_on_cuda.so")
    cuda_on_host.load("fused_on_cuda", project)
    return found


def layouts(x):
    """Dense; with another start, which 16-byte accesses do not fit; transposed; expanded."""
    yield x
    yield torch.cat([x.new_zeros(1), x.flatten()])[1:].view(x.shape)
    yield x.t().contiguous().t()
    yield x[:1].expand_as(x)
    yield x[0]


def moved(device, *tensors):
    """The tensors on the device, in the same memory layout."""
    found = []
    for x in tensors:
        count = x.untyped_storage().size() // x.element_size()
        memory = torch.as_strided(x, (count,), (1,), 0).to(device)
        found.append(memory.as_strided(x.shape, x.stride(), x.storage_offset()))
    return found


@pytest.mark.parametrize("dtype, order", SCHEDULES, ids=str, indirect=["order"])
@pytest.mark.parametrize("size", [(3, 37), (1, 5), (4, 64), (0, 3)])
def test_kernels_compute_what_those_of_the_cpu_do(ops, device, order, dtype, size):
    torch.manual_seed(3)
    x, y = (make_tensor(size, dtype=dtype, device="cpu", low=0, high=9) for _ in range(2))
    for a, b in itertools.product(layouts(x), layouts(y)) if size[0] else [(x, y)]:
        found = ops.combined(*moved(device, a, b))
        assert_close([r.cpu() for r in found], list(ops.combined(a, b)), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_gradients_and_forms(ops, device, order, dtype):
    torch.manual_seed(3)
    x, gate = torch.randn(3, 37).to(dtype), torch.randn(37).to(dtype)
    results = []
    for place in ("cpu", device):
        leaves = [t.clone().to(place).requires_grad_() for t in (x, gate)]
        out = ops.gated(*leaves, shift=0.5)
        grads = torch.autograd.grad(out, leaves, torch.ones_like(out), create_graph=True)
        second = torch.autograd.grad(grads[0].sum(), leaves[1])
        inplace = ops.gated_(x.to(place).clone(), gate.to(place))
        given = ops.gated.out(x.to(place), out=torch.empty(0, dtype=dtype, device=place))
        results.append([t.detach().cpu() for t in (out, *grads, *second, inplace, given)])
    assert_close(results[1], results[0])


def test_operands_of_several_dtypes_are_converted_in_the_kernel(ops, device, order):
    x, gate = torch.randn(3, 5), torch.randn(5, dtype=torch.float64)
    out = torch.empty(3, 5, dtype=torch.float64)
    found = ops.gated.out(x.to(device), gate.to(device), out=out.to(device))
    assert_close(found.cpu(), ops.gated(x, gate))
    whole = torch.arange(6)
    assert_close(ops.gated(whole.to(device), shift=2.5).cpu(), ops.gated(whole, shift=2.5))
    assert_close(ops.gated(x.to(device), gate[0]).cpu(), ops.gated(x, gate[0]))


def test_results_that_nobody_wants_are_not_written(ops, device, order):
    g, gate = torch.randn(2, 3), torch.randn(3)
    given = [g.to(device), g.to(device), gate.to(device)]
    for mask in ([True, False], [False, True], [False, False]):
        found = ops.gated_backward(*given, mask)
        assert [r is not None for r in found] == mask


def test_each_operand_is_read_and_each_result_written_once(ops, device):
    x, y, angle = (torch.randn(4096).to(device) for _ in range(3))
    with cuda_on_host.recorded() as launches:
        ops.turned(x, y, angle)
    (launch,) = launches
    assert (launch.read_bytes, launch.written_bytes) == (3 * 4 * 4096, 2 * 4 * 4096)


def of_rows(name, rows, length, dtype):
    """Arguments for an operator of rows; one index is to be ignored, and is no place of the row."""
    torch.manual_seed(length)
    x = torch.randn(*rows, length, dtype=torch.float64).to(dtype)
    if name == "rms_norm":
        return x, torch.randn(length).to(dtype)
    if name in ("rotary", "quantize_product"):
        return torch.cat([x, x + 1], -1), *[x.cos(), x.sin()][: 2 * (name == "rotary")]
    if name == "cross_entropy":
        target = torch.randint(0, length, rows)
        target.view(-1)[:1] = -100
        return x, target
    return (x, torch.randn(rows).to(dtype)) if name == "scaled" else (x,)


ROWS = ["rms_norm", "softmax", "cross_entropy", "scaled", "rotary", "quantize_product"]


@pytest.mark.parametrize(
    "dtype, order", [s for s in SCHEDULES if s[0] in FLOATS], ids=str, indirect=["order"]
)
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize(
    ("rows", "length"),
    [((5,), 7), ((2, 9), 64), ((3,), 1000), ((2,), 1025), ((1,), 5000), ((0,), 3)],
)
def test_rows_are_those_of_the_cpu(ops, device, order, name, rows, length, dtype):
    given = of_rows(name, rows, length, dtype)
    expected = getattr(ops, name)(*given)
    found = getattr(ops, name)(*moved(device, *given))
    pairs = zip(found, expected) if isinstance(expected, tuple) else [(found, expected)]
    for own, value in pairs:
        assert_close(own.cpu(), value)


@pytest.mark.parametrize("name", ["rms_norm", "softmax", "cross_entropy", "rotary"])
def test_gradients_of_rows(ops, device, order, name):
    for length in (17, 64, 1300):
        results = []
        for place in ("cpu", device):
            given = [t.to(place) for t in of_rows(name, (3,), length, torch.float32)]
            leaves = [t.requires_grad_() for t in given if t.is_floating_point()]
            out = getattr(ops, name)(*given)
            torch.manual_seed(1)
            outer = torch.randn(out.shape).to(place)
            grads = torch.autograd.grad(out, leaves, outer, create_graph=True)
            again = torch.autograd.grad(grads[0].square().sum(), leaves)
            results.append([t.detach().cpu() for t in (out, *grads, *again)])
        assert_close(results[1], results[0])


@pytest.mark.parametrize("layout", range(4))
def test_rows_of_any_layout(ops, device, order, layout):
    x = torch.randn(4, 24)
    laid_out = [
        x.t().contiguous().t(),
        torch.cat([x, x], -1)[:, 1:25],
        torch.stack([x, x], -1)[..., 0],
        x[:1].expand(4, 24),
    ][layout]
    (own,) = moved(device, laid_out)
    assert_close(ops.softmax(own).cpu(), laid_out.softmax(-1))
    one = torch.randn(4, 1).to(device).expand(4, 24)
    assert_close(ops.softmax(one).cpu(), torch.full((4, 24), 1 / 24))


def test_an_index_that_is_no_place_of_the_row_stops_the_kernel(ops, device):
    x, target = torch.randn(2, 5), torch.tensor([1, 5])
    with pytest.raises(RuntimeError, match="no place of the row"):
        ops.cross_entropy(x.to(device), target.to(device)).cpu()
