# SPDX-License-Identifier: BSD-3-Clause
"""The test device itself: memory, copies, views, autograd through its fallback, guard."""

import copy
import io
import threading

import pytest
import torch
import torch.nn.functional as F

DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint16,
    torch.uint32,
    torch.uint64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex32,
    torch.complex64,
    torch.complex128,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
]


@pytest.fixture(params=[0, 1], ids=["first", "second"])
def any_device(request, device):
    return torch.device(device.type, request.param)


def random_values(dtype: torch.dtype) -> torch.Tensor:
    """Return a CPU tensor whose elements are random bits (0 and 1 for bool)."""
    if dtype is torch.bool:
        return torch.randint(0, 2, (4, 6)).bool()
    return torch.randint(0, 256, (4, 6 * dtype.itemsize), dtype=torch.uint8).view(dtype)


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.dtype == b.dtype and torch.equal(a.view(torch.uint8), b.view(torch.uint8))


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: str(dtype).removeprefix("torch."))
def test_every_dtype_survives_the_way_through_both_devices(dtype, device, second_device):
    values = random_values(dtype)
    on_first = values.to(device)
    on_second = on_first.to(second_device)
    assert (on_first.device, on_second.device) == (device, second_device)
    assert on_first.data_ptr() != on_second.data_ptr()
    assert same_bits(on_second.cpu(), values)


def test_devices_are_independent_copies(device, second_device):
    x = torch.ones(3, device=device)
    y = x.to(second_device)
    y.zero_()
    assert x.tolist() == [1, 1, 1]
    x.copy_(y)
    assert x.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.t(),
        lambda x: x[::2, 1::3],
        lambda x: x[1:2].expand(5, 6),
        lambda x: x[0:0],
        lambda x: x.diagonal(),
    ],
    ids=["transposed", "strided", "expanded", "empty", "diagonal"],
)
def test_non_contiguous_tensors_copy_both_ways(view, any_device):
    values = torch.arange(24.0).reshape(4, 6)
    on_device = values.to(any_device)
    assert torch.equal(view(on_device).cpu(), view(values))
    assert torch.equal(view(values).to(any_device).cpu(), view(values))


def test_copy_writes_only_what_the_view_covers(any_device):
    x = torch.zeros(3, 4, device=any_device)
    x.t()[1] = torch.tensor([1.0, 2.0, 3.0])
    x[:, 3:] = 7
    assert x.cpu().tolist() == [[0, 1, 0, 7], [0, 2, 0, 7], [0, 3, 0, 7]]


def test_copy_broadcasts_and_converts(any_device):
    x = torch.zeros(2, 3, dtype=torch.int32, device=any_device)
    x.copy_(torch.tensor([1.9, 2.0, -3.5]))
    assert x.tolist() == [[1, 2, -3]] * 2


def test_a_copy_onto_what_it_reads_is_refused(any_device):
    x = torch.arange(6.0, device=any_device)
    with pytest.raises(RuntimeError, match="unsupported operation"):
        x[1:].copy_(x[:-1])
    with pytest.raises(RuntimeError, match="unsupported operation"):
        x[:1].expand(3).copy_(x[3:])
    assert x.tolist() == [0, 1, 2, 3, 4, 5]


def test_conj_and_neg_bits_are_copied_by_value(device, second_device):
    values = torch.tensor([1 + 2j, 3 - 4j])
    x = values.to(device)
    assert x.conj().is_conj() and x.conj().imag.is_neg()
    assert torch.equal(x.conj().cpu(), values.conj().resolve_conj())
    assert torch.equal(x.conj().to(second_device).cpu(), values.conj().resolve_conj())
    assert torch.equal(x.conj().imag.cpu(), torch.tensor([-2.0, 4.0]))


def test_memory_format_is_kept(any_device):
    x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    assert x.to(any_device).stride() == x.stride()
    made = torch.empty(2, 3, 4, 5, device=any_device, memory_format=torch.channels_last)
    assert made.stride() == x.stride()


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[1],
        lambda x: x.view(3, 2),
        lambda x: x.t(),
        lambda x: x.reshape(-1),
        lambda x: x.unfold(1, 2, 1),
        lambda x: torch.view_as_complex(x.view(3, 2)),
        lambda x: x.view(torch.int32),
        lambda x: x.detach(),
    ],
    ids=["select", "view", "t", "reshape", "unfold", "complex", "dtype", "detach"],
)
def test_views_share_memory(view, any_device):
    x = torch.arange(1.0, 7.0, device=any_device).reshape(2, 3)
    y = view(x)
    assert y.device == x.device
    assert y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    y.zero_()
    assert view(x).count_nonzero() == 0
    assert x[1].count_nonzero() == 0


def test_item_truth_and_printing(any_device):
    x = torch.tensor([1.5, 2.5], device=any_device)
    assert x[1].item() == 2.5
    assert bool(x[0] > 1)
    assert repr(x) == f"tensor([1.5000, 2.5000], device='{any_device}')"


def test_factories_put_their_result_on_the_device(any_device):
    assert torch.empty(2, 3, device=any_device).device == any_device
    assert torch.empty_strided((2, 3), (1, 2), device=any_device).stride() == (1, 2)
    assert torch.arange(4, device=any_device).tolist() == [0, 1, 2, 3]
    assert torch.full((2,), 5, device=any_device).tolist() == [5, 5]
    assert torch.ones_like(torch.rand(2, device=any_device)).device == any_device


def test_a_device_without_index_is_the_current_one(device):
    with torch.torchext.device(1):
        assert torch.empty(1, device="torchext").device.index == 1
        assert torch.empty(1, device=device).device.index == 0
    assert torch.empty(1, device="torchext").device.index == 0


@pytest.mark.parametrize("index", [2, 7])
def test_an_index_that_is_no_device_is_refused(index, device):
    with pytest.raises(RuntimeError, match=f"no test device has index {index}"):
        torch.empty(1, device=torch.device(device.type, index))
    with pytest.raises(RuntimeError, match=f"no test device has index {index}"):
        torch.torchext.set_device(index)


def test_to_changes_dtype_and_device_together(device, second_device):
    x = torch.tensor([1.25, -2.0], device=device)
    assert x.to(torch.float16).dtype is torch.float16
    y = x.to(second_device, torch.int64)
    assert (y.device, y.tolist()) == (second_device, [1, -2])
    assert x.torchext(1).device == second_device and x.is_torchext


def test_deepcopy_and_saving_keep_the_device(any_device):
    x = torch.arange(6.0, device=any_device)[1:].requires_grad_()
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    for again in (copy.deepcopy(x), torch.load(file)):
        assert again.device == any_device and again.requires_grad
        assert again.data_ptr() != x.data_ptr()
        assert torch.equal(again.detach().cpu(), x.detach().cpu())


def test_storages_grow_and_keep_their_contents(any_device):
    x = torch.ones(2, device=any_device)
    x.resize_(3)[2] = 5
    assert (x.tolist(), x.untyped_storage().device) == ([1, 1, 5], any_device)
    x.untyped_storage().resize_(0)
    assert x.untyped_storage().nbytes() == 0
    y = torch.empty(0, device=any_device).set_(torch.ones(4, device=any_device))
    assert y.tolist() == [1, 1, 1, 1]


def test_out_arguments_are_resized_and_written(any_device):
    x = torch.arange(3.0, device=any_device)
    out = torch.empty(0, device=any_device)
    assert torch.cumsum(x, 0, out=out) is out
    assert out.tolist() == [0, 1, 3]
    assert torch.add(x, 1, out=out).tolist() == [1, 2, 3]
    index = torch.tensor([2], device=any_device)
    assert x.index_add_(0, index, x[1:2].clone()).tolist() == [0, 1, 3]


def test_backward_gives_the_gradients_of_the_cpu(any_device):
    def loss(x, weight, bias):
        hidden = F.layer_norm(x @ weight, (5,), bias=bias)
        return (F.gelu(hidden) + hidden[:, :1]).pow(2).sum() + (weight * weight).sum()

    torch.manual_seed(0)
    on_cpu = [torch.randn(size, requires_grad=True) for size in ((3, 4), (4, 5), (5,))]
    on_device = [t.detach().to(any_device).requires_grad_() for t in on_cpu]
    loss(*on_cpu).backward()
    for _ in range(2):  # the second one accumulates
        loss(*on_device).backward()
    for expected, actual in zip(on_cpu, on_device, strict=True):
        assert actual.grad.device == any_device
        torch.testing.assert_close(actual.grad.cpu(), 2 * expected.grad)


def test_backward_crosses_devices(device, second_device):
    x = torch.ones(2, device=device, requires_grad=True)
    y = torch.ones(2, requires_grad=True)
    (x.to(second_device) * y.to(second_device) * 3).sum().backward()
    assert (x.grad.device, y.grad.device) == (device, torch.device("cpu"))
    assert x.grad.tolist() == y.grad.tolist() == [3, 3]


def test_the_fallback_refuses_tensors_of_two_devices(device, second_device):
    x = torch.ones(3, device=device)
    with pytest.raises(RuntimeError, match="'tensor' of aten::dot is on torchext:1"):
        torch.dot(x, x.to(second_device))
    with pytest.raises(RuntimeError, match="same device"):
        x + x.to(second_device)
    assert (x + torch.tensor(1.0)).device == device
    assert x[torch.tensor([0, 2])].tolist() == [1, 1]


def test_the_current_device_belongs_to_the_thread(device):
    seen = []
    with torch.torchext.device(1):
        thread = threading.Thread(target=lambda: seen.append(torch.torchext.current_device()))
        thread.start()
        thread.join()
        assert torch.torchext.current_device() == 1
    assert seen == [0]
    assert (torch.torchext.current_device(), torch.torchext.device_count()) == (0, 2)


def test_creating_a_tensor_leaves_the_current_device_alone(second_device):
    torch.ones(2, device=second_device)
    assert torch.torchext.current_device() == 0


def test_torch_accelerator_sees_the_device(device):
    assert torch.accelerator.current_accelerator().type == device.type
    assert torch.accelerator.device_count() == 2


def test_the_tools_that_test_operators_work_beside_the_device(any_device):
    torch.library.opcheck(torch.ops.aten.sin.default, (torch.randn(3, requires_grad=True),))
    x = torch.randn(3, dtype=torch.float64, device=any_device, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: x.sin() * x, (x,))


def test_a_module_that_moves_keeps_its_parameters(device):
    first, second = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
    second.weight = first.weight
    model = torch.nn.Sequential(first, second)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    model.to(device)
    assert second.weight is first.weight and first.weight.device == device
    before = first.weight.detach().cpu()
    model(torch.ones(2, 3, device=device)).sum().backward()
    optimizer.step()
    assert not torch.equal(first.weight.detach().cpu(), before)
    model.cpu()
    assert second.weight is first.weight and first.weight.device.type == "cpu"


def test_autocast_casts_operators_of_aten(device):
    linear = torch.nn.Linear(4, 4).to(device)
    x = torch.randn(2, 4, device=device)
    with torch.autocast(device.type, torch.bfloat16):
        y = linear(x)
        assert y.dtype == linear(y).dtype == torch.bfloat16
        assert y.softmax(-1).dtype == y.norm().dtype == torch.float32
        assert torch.addcmul(x, y, y).dtype == torch.float32
        with pytest.raises(RuntimeError, match="unsafe to autocast"):
            torch.nn.functional.binary_cross_entropy(y.sigmoid(), y.sigmoid())
    assert linear(x).dtype == torch.float32


def test_set_and_is_set_to(device):
    x = torch.ones(4, device=device)
    assert x.is_set_to(x.view(4)) and not x.is_set_to(x[1:])
    x.set_()
    assert x.shape == (0,) and x.device == device and x.untyped_storage().nbytes() == 0


def test_memory_is_recorded_for_a_stream_of_the_device(device):
    x = torch.ones(4, device=device)
    x.record_stream(torch.Stream(device))
    assert x.tolist() == [1] * 4
