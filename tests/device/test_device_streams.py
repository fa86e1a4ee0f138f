# SPDX-License-Identifier: BSD-3-Clause
"""Streams and events of the test device, whose work is done when a call returns."""

import threading

import pytest
import torch


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
