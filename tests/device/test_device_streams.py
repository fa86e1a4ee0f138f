# SPDX-License-Identifier: BSD-3-Clause
"""Streams and events of the test device, whose work is done when a call returns, but for copies to
the CPU that do not block."""

import gc
import os
import threading

import pytest
import torch

import torchext


def test_each_device_has_a_default_stream_and_new_ones(device, second_device):
    default = torch.accelerator.current_stream(device)
    first, second = torch.Stream(device), torch.Stream(device)
    assert {s.device for s in (default, first, second)} == {device}
    assert len({default, first, second}) == 3
    assert torch.accelerator.current_stream(second_device).device == second_device


def test_the_current_stream_is_the_threads_and_the_devices(device, second_device):
    default = torch.accelerator.current_stream(device)
    seen = []
    with torch.Stream(device) as stream:
        assert torch.accelerator.current_stream(device) == stream
        assert torch.torchext.current_stream(device) == stream
        assert torch.accelerator.current_stream(second_device) != stream
        thread = threading.Thread(
            target=lambda: seen.append(torch.accelerator.current_stream(device))
        )
        thread.start()
        thread.join()
        assert torch.ones(2, device=device).add(1).tolist() == [2, 2]
    assert torch.accelerator.current_stream(device) == default
    assert seen == [default]


def test_events_are_recorded_waited_for_and_timed(device):
    stream, other = torch.Stream(device), torch.Stream(device)
    start, end = (torch.Event(device, enable_timing=True) for _ in range(2))
    start.record(stream)
    torch.ones(1000, device=device).sum()
    end.record(stream)
    other.wait_event(end)
    other.wait_stream(stream)
    end.synchronize()
    assert start.query() and end.query() and stream.query()
    assert 0 < start.elapsed_time(end) < 60_000
    stream.synchronize()
    torch.accelerator.synchronize(device)


def test_an_event_that_was_not_recorded_has_no_time(device):
    start, end = (torch.Event(device, enable_timing=True) for _ in range(2))
    end.record(torch.Stream(device))
    with pytest.raises((RuntimeError, ValueError), match="recorded"):
        start.elapsed_time(end)


def test_a_backward_runs_on_the_stream_of_its_forward(device):
    seen = []

    class Seen(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            seen.append(torch.accelerator.current_stream(device))
            return grad

    x = torch.ones(2, device=device, requires_grad=True)
    with torch.Stream(device) as stream:
        y = Seen.apply(x).sum()
    y.backward()
    assert seen == [stream]


DTYPES = [torch.float32, torch.int64, torch.bool, torch.complex64, torch.bfloat16, torch.uint8]


def off_the_device(x, **options):
    """A copy on the CPU that nobody has waited for."""
    return x.to("cpu", non_blocking=True, **options)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_copy_to_the_cpu_that_does_not_block_arrives_when_it_is_waited_for(dtype, device):
    expected = torch.tensor([[0, 1, 2], [1, 0, 1]]).to(dtype)
    copy = off_the_device(expected.to(device))
    assert not torch.equal(copy, expected) and bool((copy != expected).all())
    torch.accelerator.current_stream(device).synchronize()
    assert torch.equal(copy, expected)


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.int8], ids=str)
def test_values_of_all_bits_are_others_too_until_then(dtype, device):
    expected = torch.tensor([-1, 0, 7]).to(dtype)
    copy = off_the_device(expected.to(device))
    assert bool((copy != expected).all())
    torch.accelerator.synchronize(device)
    assert torch.equal(copy, expected)


def test_new_streams_are_some_in_turn(device):
    streams = [torch.Stream(device) for _ in range(100)]
    assert len({stream.stream_id for stream in streams}) == 32
    assert torch.accelerator.current_stream(device) not in streams


def test_into_views_of_any_layout_and_nothing_beside_them(device):
    large = torch.zeros(4, 6)
    large[::2, 1::2].t().copy_(torch.ones(3, 2, device=device), non_blocking=True)
    torch.accelerator.synchronize(device)
    expected = torch.zeros(4, 6)
    expected[::2, 1::2] = 1
    assert torch.equal(large, expected)
    conjugate = torch.zeros(2, dtype=torch.complex64).conj()
    conjugate.copy_(torch.tensor([1j, 2j]).to(device), non_blocking=True)
    torch.accelerator.synchronize(device)
    assert conjugate.tolist() == [1j, 2j]


WAITS = {
    "synchronize": lambda stream, event, x: stream.synchronize(),
    "query": lambda stream, event, x: stream.query(),
    "device": lambda stream, event, x: torch.accelerator.synchronize(x.device),
    "event": lambda stream, event, x: event.synchronize(),
    "event query": lambda stream, event, x: event.query(),
    "a copy that blocks": lambda stream, event, x: x.cpu(),
    "a number": lambda stream, event, x: x[0].item(),
    "a copy from the CPU": lambda stream, event, x: torch.ones(1).to(x.device),
    "an operator that runs on the CPU": lambda stream, event, x: torch.cos(x),
}


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
def test_whatever_waits_for_the_stream(wait, device):
    x = torch.ones(3, device=device)
    event = torch.Event(device)
    with torch.Stream(device) as stream, torchext.fallback.mode("silent"):
        copy = off_the_device(x)
        event.record(stream)
        wait(stream, event, x)
    assert copy.tolist() == [1, 1, 1]


def test_another_stream_does_not_wait_unless_it_is_told_to(device, second_device):
    x = torch.ones(2, device=device)
    with torch.Stream(device) as stream:
        first = off_the_device(x)
        event = stream.record_event()
        second = off_the_device(x)
    other = torch.Stream(device)
    other.synchronize()
    torch.accelerator.synchronize(second_device)
    assert first.isnan().all()
    other.wait_event(event)
    assert first.isnan().all()
    other.synchronize()
    assert first.tolist() == [1, 1] and second.isnan().all()
    other.wait_stream(stream)
    stream.wait_stream(other)
    other.synchronize()
    assert second.tolist() == [1, 1]


def test_a_copy_holds_what_the_tensor_was_when_it_was_made(device):
    x = torch.ones(2, device=device)
    copy = off_the_device(x)
    x.zero_()
    torch.accelerator.synchronize(device)
    assert copy.tolist() == [1, 1]


def test_who_never_waits_keeps_no_tensor_and_gathers_nothing(device):
    copies = [off_the_device(torch.ones(2, device=device)) for _ in range(100)]
    assert [c.isnan().any().item() for c in copies].count(True) == 64  # the device gets on
    copies.clear()
    gc.collect()
    torch.accelerator.synchronize(device)  # which writes to none of them
    copy = off_the_device(torch.ones(2, device=device))
    copy.resize_(100_000).fill_(3)  # elsewhere by now
    torch.accelerator.synchronize(device)
    assert (copy == 3).all()


def test_a_child_has_the_streams_of_its_parent(device):
    copy = off_the_device(torch.ones(2, device=device))
    child = os.fork()
    if child == 0:
        status = 1
        try:
            torch.accelerator.current_stream(device).synchronize()
            status = 0 if copy.tolist() == [1, 1] else 1
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert copy.isnan().all()


def test_threads_wait_for_one_stream(device):
    stream = torch.Stream(device)
    wrong = []

    def work():
        for _ in range(200):
            with stream:
                copy = off_the_device(torch.ones(3, device=device))
                stream.synchronize()
                wrong.extend(value for value in copy.tolist() if value != 1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
