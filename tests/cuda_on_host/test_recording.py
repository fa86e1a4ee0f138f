# SPDX-License-Identifier: BSD-3-Clause
"""What a launch moves is counted, and so is what the calls of a library move."""

import pytest
import torch
from library_build import build
from test_checking import HERE, command

import torchext
from torchext.testing import cuda_on_host
from torchext.testing.cuda_on_host.traffic import traffic


def test_each_byte_counts_as_often_as_a_thread_asks_for_it(run):
    with cuda_on_host.recorded() as launches:
        run("block_sum", torch.randn(1000))
    [launch] = launches
    assert launch.kernel == "block_sum"
    assert launch.grid == (1, 1, 1)
    assert launch.read_bytes == launch.written_bytes == 4 * 1000
    assert launch.shared_bytes == 0


def test_what_is_shared_does_not_count(run):
    with cuda_on_host.recorded() as launches:
        run("transposed", torch.randn(21, 21))
    assert sum(launch.read_bytes for launch in launches) == 4 * 21 * 21
    assert sum(launch.written_bytes for launch in launches) == 4 * 21 * 21
    assert all(launch.shared_bytes > 0 for launch in launches)


def test_an_atomic_operation_reads_and_writes(run):
    x = torch.full((64,), 1.0)
    with cuda_on_host.schedule(order=0), cuda_on_host.recorded() as launches:
        run("positive", x)
    # the first lane of each of two warps adds the number of those that are active
    assert sum(launch.written_bytes for launch in launches) == 2 * 4
    assert sum(launch.read_bytes for launch in launches) == 64 * 4 + 2 * 4


def test_one_that_records_within_another_hears_of_its_own(run):
    with cuda_on_host.recorded() as outer:
        run("block_sum", torch.randn(10))
        with cuda_on_host.recorded() as inner:
            run("block_sum", torch.randn(20))
        run("block_sum", torch.randn(30))
    run("block_sum", torch.randn(40))
    assert [launch.read_bytes for launch in inner] == [80]
    assert [launch.read_bytes for launch in outer] == [40, 80, 120]


def test_a_launch_that_fails_is_none(device):
    x = torch.randn(64).to(device)
    with (
        cuda_on_host.recorded() as launches,
        pytest.raises(RuntimeError, match="behind the end"),
    ):
        torch.ops.cuda_kernels.mistake("write_behind_the_end", x)
    assert launches == []


@pytest.fixture(scope="module")
def negation(project):
    built = build(HERE / "negation")
    torchext.load_library(built)
    return built


def test_the_calls_of_a_library_are_counted_beside_the_least(negation):
    found = traffic("negation", project=negation, operators=["negated", "doubled"])
    assert {(counted.operator, counted.call) for counted in found} == {
        (name, f"negation::{name}(x=float32[143360])") for name in ("negated", "doubled")
    }
    for counted in found:
        is_whole = counted.operator == "doubled"
        moved = 143360 if is_whole else 143359  # the last element is left out
        assert counted.written_bytes == 4 * moved
        assert counted.argument_bytes == counted.result_bytes == 4 * 143360
        assert (counted.ratio == 1) == is_whole
        assert len(counted.launches) == 1


def test_the_command_prints_what_is_moved(negation):
    library = str(negation / "negation_library.so")
    words = ["torchext.testing.cuda_on_host", library, "--traffic", "--operators", "doubled"]
    done = command(*words, folder=negation)
    assert done.returncode == 0, done.stdout
    assert "negation::doubled(x=float32[143360]): reads 573,440" in done.stdout
    assert "1.00 of the least" in done.stdout
    assert "negated" not in done.stdout
