# SPDX-License-Identifier: BSD-3-Clause
"""What a fallback copies: every kind of argument and result, and what is written to."""

import pytest
import torch
from torch.testing import assert_close

import torchext


def values(*size, seed=0, dtype=torch.float32):
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed)).to(dtype)


@pytest.fixture(params=[0, 1], ids=["first", "second"])
def any_device(request, device):
    return torch.device(device.type, request.param)


def moved(value, device):
    """The tensors of a value, on the device."""
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, (list, tuple)):
        return type(value)(moved(item, device) for item in value)
    if isinstance(value, dict):
        return {key: moved(item, device) for key, item in value.items()}
    return value


def assert_same(actual, expected, device):
    """The values are equal, and the tensors of the first lie on the device."""
    if isinstance(expected, torch.Tensor):
        assert actual.device == device
        assert actual.stride() == expected.stride()
        assert_close(actual.cpu(), expected, rtol=0, atol=0)
    elif isinstance(expected, (list, tuple)):
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            assert_same(one, other, device)
    elif isinstance(expected, dict):
        assert list(actual) == list(expected)
        assert_same(list(actual.values()), list(expected.values()), device)
    else:
        assert actual == expected


CALLS = {
    "tensors": ("total", lambda v: (v(2, 3), v(2, 3, seed=1), [v(2, 3)], [v(2, 3), None])),
    "none": ("total", lambda v: (v(2, 3), None, [], [])),
    "only missing": ("total", lambda v: (v(2, 3), None, [v(3)], [None, None])),
    "dictionary and pair": (
        "named_total",
        lambda v: (v(2), {"a": v(2), "b": v(2, seed=1)}, (v(2), 3)),
    ),
    "two results": ("halves", lambda v: (v(5, 2),)),
    "empty": ("halves", lambda v: (v(0, 2),)),
    "0-dim": ("total", lambda v: (v(()), v(()), [], [])),
    "list of results": ("rows", lambda v: (v(3, 2),)),
    "no results": ("rows", lambda v: (v(0, 2),)),
    "numbers": ("norms", lambda v: (v(3, 2),)),
    "transposed": ("total", lambda v: (v(3, 2).t(), v(2, 3), [], [])),
    "expanded": ("total", lambda v: (v(1, 3).expand(2, 3), v(3, 2).t(), [], [])),
}


@pytest.mark.parametrize("name", CALLS)
def test_results_are_those_of_the_cpu_and_come_back(name, ops, any_device):
    op, arguments = CALLS[name]
    call, given = getattr(ops, op), arguments(values)
    assert_same(call(*moved(given, any_device)), call(*given), any_device)
    assert torch.torchext.current_device() == 0


@pytest.mark.parametrize(
    "dtype", [torch.bool, torch.uint8, torch.int64, torch.float16, torch.bfloat16, torch.complex64]
)
def test_dtypes(dtype, ops, any_device):
    x = values(2, 3).to(dtype)
    assert_same(ops.halves(x.to(any_device)), ops.halves(x), any_device)


def test_conjugated_and_negated_arguments(ops, device):
    x = torch.randn(2, 3, dtype=torch.complex64)
    given = x.to(device)
    assert_same(ops.total(given.conj(), None, [], []), x.conj().resolve_conj(), device)
    assert_same(ops.total(given.conj().imag, None, [], []), -x.imag, device)


# Each makes views of a buffer: the two that are written to, and the one that is read.
OVERLAPS = {
    "apart": lambda b: (b[:4], b[4:8], b[8:]),
    "the same": lambda b: (b, b, b),
    "equal views": lambda b: (b[2:6], b[2:6], b[8:]),
    "partly": lambda b: (b[0:6], b[4:8], b[5:9]),
    "read what is written": lambda b: (b[0:6], b[8:], b),
    "transposed": lambda b: (b.view(3, 4).t(), b.view(4, 3), b[:2]),
    "interleaved": lambda b: (b[::2], b[1::2], b),
    "expanded": lambda b: (b[3:4].expand(5), b[5:6].expand(2, 1), b[:2]),
    "windows": lambda b: (b.unfold(0, 4, 2), b.unfold(0, 3, 1), b[3:]),
    "another dtype": lambda b: (b, b[4:8].view(torch.float16), b[2:3]),
    "another size of elements": lambda b: (b[2:].view(torch.complex64), b[3:5], b),
    "empty": lambda b: (b[2:6], b[:1], b[:0]),
}


@pytest.mark.parametrize("name", OVERLAPS)
def test_what_overlaps_on_the_device_overlaps_in_the_copy(name, ops, any_device):
    expected, actual = values(12), values(12).to(any_device)
    ops.write_both(*OVERLAPS[name](expected), 5.0)
    ops.write_both(*OVERLAPS[name](actual), 5.0)
    assert_same(actual, expected, any_device)
    assert not torch.equal(expected, values(12))


@pytest.mark.parametrize(
    "view",
    [lambda x: x, lambda x: x.t(), lambda x: x[1:, ::2], lambda x: x[0], lambda x: x[:, 1:1]],
    ids=["whole", "transposed", "strided", "row", "empty"],
)
def test_an_inplace_operator_writes_to_the_view_alone_and_returns_it(view, ops, any_device):
    expected, actual = values(3, 4), values(3, 4).to(any_device)
    ops.accumulate_(view(expected), torch.tensor(2.0))
    part = view(actual)
    version = part._version
    assert ops.accumulate_(part, torch.tensor(2.0)) is part
    assert part._version == version + 1
    assert_same(actual, expected, any_device)


def masked(memory):
    numbers, mask = memory[:40].view(torch.float32), memory[40:50].view(torch.bool)
    numbers.copy_(torch.arange(10.0) - 3.5)
    mask[::2] = True
    numbers.masked_fill_(mask, 7.0)


def chosen(memory):
    condition, other = memory[:32:2].view(torch.bool), memory[40:56]
    torch.where(condition, other, other, out=memory[1:33:2])


def put(memory):
    mask = memory.view(torch.bool).as_strided((2, 2), (2, 2))
    zero = torch.tensor([0], device=memory.device)
    mask.index_put_((zero, zero), torch.tensor([False], device=memory.device))


@pytest.mark.parametrize("write", [masked, chosen, put])
def test_bytes_beside_those_of_a_bool_stay_as_they_are(write, device):
    """Copied as bool, every byte of a storage that others have parts of would be 0 or 1."""
    memory = [torch.arange(64, dtype=torch.uint8, device=d) for d in (device, "cpu")]
    for one in memory:
        write(one)
    assert_same(memory[0], memory[1], device)


def changed_in_turn(x, y):
    x.add_(1)
    y.mul_(2)


def test_storages_of_one_memory_overlap_as_they_do_on_the_device(device):
    """As those of from_dlpack do; the shorter storage does not hold all of both."""
    library = torch.library.Library("fallbackshares", "DEF")
    library.define("change(Tensor(a!) x, Tensor(b!) y) -> ()")
    library.impl("change", changed_in_turn, "CPU")
    try:
        whole = torch.ones(4, device=device)
        storage = torch._C._construct_storage_from_data_pointer(whole.data_ptr(), device, 8)
        part = torch.empty(0, device=device).set_(storage, 0, (2,))
        torch.ops.fallbackshares.change(part, whole)
        assert whole.tolist() == [4, 4, 2, 2] and part.tolist() == [4, 4]
        torch.ops.fallbackshares.change(whole, part)
        assert whole.tolist() == [10, 10, 3, 3]
        after = torch.empty(0, device=device).set_(storage, 1, (1,))
        half = whole[1:].view(torch.int16)  # in smaller elements, of the longer storage
        torch.ops.fallbackshares.change(half, after)
        expected = torch.tensor([10.0, 10.0, 3.0, 3.0])
        changed_in_turn(expected[1:].view(torch.int16), expected[1:2])
        assert_close(whole.cpu(), expected, rtol=0, atol=0)
    finally:
        library._destroy()


def test_what_is_copied_when_it_is_written_shares_no_memory(device):
    indices = torch.tensor([0, 1, 2])
    for one in (device, "cpu"):
        x = torch.ones(3, device=one)
        lazy = torch._lazy_clone(x)
        lazy.index_add_(0, indices.to(one), x)
        assert (lazy.tolist(), x.tolist()) == ([2, 2, 2], [1, 1, 1])


def test_parts_of_a_storage_that_lie_apart_are_copied_alone(device):
    flat = torch.ones(1000, device=device)
    torchext.fallback.reset_stats()
    torch.sin(flat[:1], out=flat[-1:])
    (counts,) = torchext.fallback.stats().values()
    assert (counts.bytes_to_cpu, counts.bytes_to_device) == (8, 4)
    assert_close(flat[-1].cpu(), torch.ones(()).sin(), rtol=0, atol=0)


def test_an_argument_that_overlaps_itself_is_refused_as_on_the_cpu(ops, device):
    x = torch.zeros(1, device=device).expand(3)
    with pytest.raises(RuntimeError, match="refers to a single memory location"):
        ops.accumulate_(x, torch.ones(3, device=device))


def test_every_tensor_of_a_list_is_written_to(ops, any_device):
    x = torch.zeros(3, 4, device=any_device)
    ops.number_all([x[0], x[:, 1], torch.empty(0, device=any_device), x[2, 2:]])
    assert x.tolist() == [[0, 1, 0, 0], [0, 1, 0, 0], [0, 1, 3, 3]]


def test_out_arguments_are_resized_and_written(ops, any_device):
    x = values(3)
    expected = torch.outer(x, x)
    for size in ((0,), (3, 3), (9,)):
        out = torch.zeros(size, device=any_device)
        assert ops.outer(x.to(any_device), out=out) is out
        assert_same(out, expected, any_device)
    buffer = torch.zeros(20, device=any_device)
    ops.outer(x.to(any_device), out=buffer[2:11].view(3, 3))
    assert_same(buffer[2:11].view(3, 3), expected, any_device)
    assert buffer[:2].tolist() + buffer[11:].tolist() == [0] * 11


def test_the_strides_that_an_out_argument_was_given_are_kept(ops, any_device):
    x = values(2, 3, 4, 5)
    out = torch.empty(0, device=any_device)
    ops.channels(x.to(any_device), out=out)
    assert_same(out, x.contiguous(memory_format=torch.channels_last), any_device)


def test_an_out_argument_that_does_not_fit(ops, any_device, capfd):
    x = values(3).to(any_device)
    with pytest.raises(RuntimeError, match="unsupported operation.*overlap|single memory location"):
        torch.ops.fallbacktest.outer(x, out=x.expand(3, 3))
    given = x.clone()
    capfd.readouterr()
    ops.outer(x, out=given)
    assert given.shape == (3, 3)
    # torch.ops leaves warnings of C++ to stderr
    assert "An output with one or more elements was resized" in capfd.readouterr().err


def test_nothing_is_written_by_a_kernel_that_fails(ops, any_device):
    x = torch.zeros(4, device=any_device)
    with pytest.raises(RuntimeError, match="this kernel fails"):
        ops.fail_halfway(x)
    assert x.tolist() == [0] * 4
    assert torch.torchext.current_device() == 0


def test_a_device_that_is_asked_for(ops, device, second_device):
    x = torch.ones(2, device=device)
    assert ops.zeros_there(x, device).device == device
    assert ops.zeros_there(x, second_device).device == second_device
    assert ops.zeros_there(x, torch.device("cpu")).device.type == "cpu"


def test_tensors_of_two_devices(ops, device, second_device):
    x, y = torch.ones(2, device=device), torch.ones(2, device=second_device)
    for other in (y, y.cpu()):
        with pytest.raises(RuntimeError, match="'maybe' of fallbacktest::total is on"):
            ops.total(x, other, [], [])
    # a number may stand anywhere, and without a check any tensor
    assert ops.total(x, torch.tensor(2.0), [], []).tolist() == [3, 3]
    result = ops.sum_of_any(x, y)
    assert (result.device, result.tolist()) == (device, [2, 2])


def test_gradients_come_through_it(ops, any_device):
    def gradients(where):
        x = values(3, 2).to(where).requires_grad_()
        factor = values(2, seed=1).to(where).requires_grad_()
        ops.scaled(x, factor).pow(2).sum().backward()
        return x.grad, factor.grad

    assert_same(gradients(any_device), gradients("cpu"), any_device)


def test_whether_tensors_share_memory_is_not_asked_of_copies(ops, device):
    x = torch.ones(2, device=device)
    with pytest.raises(NotImplementedError, match="copies do not"):
        ops.shares_memory(x, x.view(2))


def test_autocast_of_the_device_casts_above_it(ops, device):
    x, factor = values(2, 3), values(3, seed=1)
    with torch.autocast(device.type, torch.bfloat16):
        result = ops.scaled(x.to(device), factor.to(device))
    assert_same(result, ops.scaled(x.bfloat16(), factor.bfloat16()), device)


def test_autocast_of_the_cpu_is_not_asked(ops, device):
    x = values(2, 2)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.mm(x, x).dtype is torch.bfloat16
        assert ops.product(x.to(device), x.to(device)).dtype is torch.float32
