# SPDX-License-Identifier: BSD-3-Clause
"""What libraries give the authors of kernels does on the host what it does on a GPU."""

import pytest
import torch

DTYPES = [
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
    torch.float32, torch.float64,
]  # fmt: skip
NUMBER_OF = {torch.uint8: 0, torch.int8: 1, torch.int16: 2, torch.int32: 3, torch.int64: 4}
NUMBER_OF |= {torch.float16: 5, torch.float32: 6, torch.float64: 7, torch.bfloat16: 15}


@pytest.fixture
def run(device, order):
    """Launches a kernel of libraries.cu."""

    def run_on_device(kernel, x, n=0):
        return torch.ops.cuda_kernels.libraries(kernel, x.to(device), n).cpu()

    return run_on_device


@pytest.mark.parametrize("count", [8, 100, 300])
def test_tiles_of_cooperative_groups(run, count):
    x = torch.randn(count)
    padded = torch.nn.functional.pad(x, (0, -count % 8)).view(-1, 8)
    expected = padded.sum(1, keepdim=True).expand(-1, 8).flatten()[:count]
    torch.testing.assert_close(run("tiles", x), expected)


def test_coalesced_groups_have_the_lanes_that_came(run):
    x = torch.randn(32)
    positive = x > 0
    assert torch.equal(run("coalesced", x), positive.cumsum(0) * positive.float())


@pytest.mark.parametrize("count", [5, 128, 1000])
def test_a_cooperative_launch_waits_for_its_grid(run, count):
    x = torch.randn(count)
    expected = x.sum().expand(count)
    torch.testing.assert_close(run("grid_sum", x), expected, rtol=1e-4, atol=1e-4)


def test_a_plain_launch_has_no_grid_to_wait_for(run):
    with pytest.raises(RuntimeError, match="waits for the grid, and the launch is not a cooper"):
        run("grid_sum of a plain launch", torch.randn(300))


def test_reductions_and_scans_of_cub(run):
    x = torch.randn(100)
    torch.testing.assert_close(run("cub_sum", x), x.cumsum(0) + x.sum())


def test_philox_has_the_words_that_it_is_known_by(run):
    assert run("known_words", torch.randn(4))[0] == 1


def test_random_numbers_follow_their_seed(run):
    x = torch.zeros(4000)
    first, again, other = run("philox", x, 1), run("philox", x, 1), run("philox", x, 2)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert 0 < first.min() and first.max() <= 1
    assert abs(first.mean() - 0.5) < 0.02
    assert len(first.unique()) > 3900


def test_kernels_draw_from_the_generator_of_the_device(run):
    x = torch.zeros(4000)
    torch.manual_seed(3)
    first, second = run("dropout", x), run("dropout", x)
    torch.manual_seed(3)
    assert torch.equal(run("dropout", x), first)
    assert not torch.equal(first, second)
    assert abs(first.mean() - 0.75) < 0.03


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_atomics_of_every_type_add_up(run, dtype):
    x = torch.randint(0, 3, (60,)).float()
    expected = torch.stack([x[k::3].sum() for k in range(3)])
    assert torch.equal(run("atomics", x, NUMBER_OF[dtype])[:3], expected)


def test_a_block_reduction_of_aten(run):
    x = torch.randn(200)
    torch.testing.assert_close(run("aten_block_sum", x)[0], x.sum(), rtol=1e-4, atol=1e-4)


def test_numbers_of_16_and_8_bits_are_torchs(run):
    edges = [0.0, -0.0, 1.0, 65504.0, 65519.0, 65520.0, 1e-8, 6e-8, 6.1e-5, 5.96e-8, 448.0, 0.1]
    x = torch.tensor([*edges, *(-e for e in edges), float("inf"), *torch.randn(60).tolist()])
    found = run("narrow", x)
    assert torch.equal(found, torch.ones_like(x)), x[found == 0]


@pytest.mark.parametrize("shape", [(7,), (2000,), (30, 5)], ids=str)
def test_loops_of_aten(run, shape):
    x = torch.randn(shape)
    assert torch.equal(run("gpu_kernel", x, 3), x * 3)
    assert torch.equal(run("gpu_kernel", x.t() if x.dim() == 2 else x[::2], 3), run_of(x) * 3)


def run_of(x):
    return x.t() if x.dim() == 2 else x[::2]


@pytest.mark.parametrize("shape", [(3, 7), (2, 1500), (200, 40)], ids=str)
def test_reductions_of_aten(run, shape):
    x = torch.randn(shape)
    found = run("gpu_reduce_kernel", x)
    torch.testing.assert_close(found, x.sum(1), rtol=1e-4, atol=1e-4)


def test_memory_of_the_caching_allocator(run):
    x = torch.randn(100)
    assert torch.equal(run("memory of its own", x), x)
