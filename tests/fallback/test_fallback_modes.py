# SPDX-License-Identifier: BSD-3-Clause
"""Modes, statistics and the profiler: how a fallback is seen."""

import os
import subprocess
import sys
import threading
import warnings

import pytest
import torch

import torchext

MESSAGE = "fallbacktest::halves has no kernel for torchext"


def test_silent_says_nothing(ops, stats, device):
    with warnings.catch_warnings(), torchext.fallback.mode("silent"):
        warnings.simplefilter("error")
        ops.halves(torch.ones(2, device=device))
    assert stats()["fallbacktest::halves"].calls == 1


def test_warn_says_once_which_operator_device_and_line(ops, stats, device, second_device):
    with warnings.catch_warnings(record=True) as seen, torchext.fallback.mode("warn"):
        warnings.simplefilter("always")
        for _ in range(3):
            ops.halves(torch.ones(2, device=second_device))  # the line of the warning
        ops.halves(torch.ones(2, device=device))
        ops.rows(torch.ones(2, device=device))
    messages = [str(warning.message) for warning in seen]
    assert len(messages) == 2, messages
    assert messages[0].startswith(MESSAGE)
    assert "first for torchext:1" in messages[0]
    with open(__file__) as file:
        line = next(i for i, text in enumerate(file, 1) if "# the line of the warning" in text)
    assert f"called at {__file__}:{line}" in messages[0]
    assert messages[1].startswith("fallbacktest::rows ")


def test_a_warning_names_the_callers_line_and_not_torchs(stats, device):
    with pytest.warns(UserWarning, match=f"aten::gelu.out .*called at {__file__}:"):
        with torchext.fallback.mode("warn"):
            torch.nn.functional.gelu(torch.ones(2, device=device))


def test_error_stops_at_the_first_and_runs_nothing(ops, stats, device):
    with torchext.fallback.mode("error"):
        with pytest.raises(NotImplementedError, match=f"{MESSAGE}:0.*called at {__file__}:"):
            ops.halves(torch.ones(2, device=device))
    assert stats() == {}


def test_modes_nest_and_decorate(ops, stats, device):
    @torchext.fallback.mode("error")
    def refused():
        with torchext.fallback.mode("silent"):
            ops.halves(torch.ones(2, device=device))
        ops.halves(torch.ones(2, device=device))

    for _ in range(2):
        with pytest.raises(NotImplementedError, match=MESSAGE):
            refused()
    ops.halves(torch.ones(2, device=device))
    assert stats()["fallbacktest::halves"].calls == 3


def test_modes_that_are_left_in_another_order(ops, device):
    error, silent = torchext.fallback.mode("error"), torchext.fallback.mode("silent")
    error.__enter__()
    silent.__enter__()
    error.__exit__()  # as a coroutine does while another one is in its block
    ops.rows(torch.ones(1, device=device))
    silent.__exit__()
    ops.rows(torch.ones(1, device=device))
    with pytest.raises(RuntimeError, match="is left on the thread that entered it"):
        silent.__exit__()
    refused = []

    def leave_elsewhere():
        try:
            error.__exit__()
        except RuntimeError as reason:
            refused.append(str(reason))

    with error:
        thread = threading.Thread(target=leave_elsewhere)
        thread.start()
        thread.join()
        assert refused == ["a mode of the fallback is left on the thread that entered it"]
        with pytest.raises(NotImplementedError, match="rows has no kernel for torchext"):
            ops.rows(torch.ones(1, device=device))


def test_where_warnings_are_errors_every_call_is_one(ops, stats, device):
    with warnings.catch_warnings(), torchext.fallback.mode("warn"):
        warnings.simplefilter("error")
        for _ in range(2):
            with pytest.raises(UserWarning, match=MESSAGE):
                ops.halves(torch.ones(2, device=device))
    assert stats() == {}


def test_a_mode_that_is_none(device):
    with pytest.raises(
        ValueError, match="'loud' is no mode of the fallback: silent, warn or error"
    ):
        torchext.fallback.mode("loud")


def test_a_mode_decorates_nothing_that_goes_on_after_its_call():
    def generator():
        yield

    async def coroutine():
        pass

    async def several():
        yield

    for function in (generator, coroutine, several):
        with pytest.raises(TypeError, match="decorates no generator or coroutine: write `with`"):
            torchext.fallback.mode("error")(function)


def test_the_thread_of_the_device_inherits_the_mode(ops, stats, device):
    x = torch.ones(3, device=device, requires_grad=True)
    y = ops.scaled(x, torch.ones(3, device=device)).sum()
    stats_before = stats()["fallbacktest::scaled"].calls
    with torchext.fallback.mode("error"):
        with pytest.raises(NotImplementedError, match="has no kernel for torchext:0"):
            y.backward(retain_graph=True)
    y.backward()
    assert stats()["fallbacktest::scaled"].calls == stats_before + 1


def test_another_thread_has_its_own_mode(ops, device):
    results = []
    with torchext.fallback.mode("error"):
        thread = threading.Thread(
            target=lambda: results.append(ops.rows(torch.ones(1, device=device)))
        )
        thread.start()
        thread.join()
    assert len(results) == 1


def test_statistics_count_calls_bytes_and_time(ops, stats, device):
    x = torch.ones(6, 2, device=device)
    for _ in range(3):
        ops.halves(x)
    ops.accumulate_(x[0], torch.ones(2, device=device))
    with pytest.raises(RuntimeError, match="this kernel fails"):
        ops.fail_halfway(x)
    found = stats()
    assert list(found) == ["fallbacktest::accumulate_", "fallbacktest::halves"]
    halves = found["fallbacktest::halves"]
    assert (halves.calls, halves.bytes_to_cpu, halves.bytes_to_device) == (3, 144, 144)
    assert 0 < halves.seconds < 10
    written = found["fallbacktest::accumulate_"]
    assert (written.calls, written.bytes_to_cpu, written.bytes_to_device) == (1, 16, 8)
    torchext.fallback.reset_stats()
    assert stats() == {}


def test_a_tensor_that_is_given_twice_is_copied_once(ops, stats, device):
    x = torch.ones(4, device=device)
    ops.total(x, x, [x], [x])
    assert stats()["fallbacktest::total"].bytes_to_cpu == 16


def test_threads_count_together(ops, stats, device):
    def work():
        for _ in range(50):
            ops.halves(torch.ones(2, device=device))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stats()["fallbacktest::halves"].calls == 400


def test_the_profiler_shows_it_under_the_operators_name(ops, device):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        ops.halves(torch.ones(2, device=device))
    events = {event.key: event for event in profile.key_averages()}
    assert events["cpu_fallback(fallbacktest::halves)"].count == 1
    assert events["fallbacktest::halves"].count >= 1


def test_random_numbers_of_the_device_are_no_fallback(device, stats):
    x = torch.ones(2, device=device)
    before = stats()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        x.normal_()
    assert "aten::normal_" in {event.key for event in profile.key_averages()}
    assert not any("cpu_fallback" in event.key for event in profile.key_averages())
    assert stats() == before


PROGRAM = """
import sys, warnings
sys.path[:0] = {path!r}
import torch, torchext.testing
device = torchext.testing.device()
torch.ones(2, device=device).exp()
print("ran")
"""


WARNS = "UserWarning: aten::exp.out has no kernel for torchext and runs on the CPU"


@pytest.mark.parametrize(
    ("mode", "returncode", "said"),
    [
        ("silent", 0, ""),
        pytest.param("warn", 0, WARNS, marks=pytest.mark.slow),
        pytest.param("", 0, WARNS, marks=pytest.mark.slow),
        (None, 0, WARNS),
        ("error", 1, "NotImplementedError: aten::exp.out has no kernel for torchext:0"),
        ("loud", 1, "ValueError: TORCHEXT_FALLBACK is 'loud', and not silent, warn or error"),
    ],
)
def test_the_environment_says_the_mode_of_the_process(mode, returncode, said, device):
    environment = {k: v for k, v in os.environ.items() if k != "TORCHEXT_FALLBACK"}
    environment |= {} if mode is None else {"TORCHEXT_FALLBACK": mode}
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(path=[path or "." for path in sys.path])],
        check=False, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert result.returncode == returncode, result.stderr
    assert said in result.stderr
    assert said or "runs on the CPU" not in result.stderr  # torch may warn that it finds no GPU
    assert result.stdout == ("ran\n" if returncode == 0 else "")
