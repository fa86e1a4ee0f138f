# SPDX-License-Identifier: BSD-3-Clause
"""Random numbers of the test device: a generator for each index, apart from the CPU's."""

import copy
import pickle
import threading

import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

import torchext.fallback

DRAWS = {
    "rand": lambda device, **k: torch.rand(8, device=device, **k),
    "randn": lambda device, **k: torch.randn(8, device=device, **k),
    "randint": lambda device, **k: torch.randint(0, 100, (8,), device=device, **k),
    "randperm": lambda device, **k: torch.randperm(8, device=device, **k),
    "bernoulli": lambda device, **k: torch.full((64,), 0.5, device=device).bernoulli_(**k),
    "multinomial": lambda device, **k: torch.ones(9, device=device).multinomial(3, **k),
    "exponential_": lambda device, **k: torch.empty(8, device=device).exponential_(**k),
    "normal": lambda device, **k: torch.normal(torch.zeros(8, device=device), 1.0, **k),
}

NO_INDEX = "no test device has index 9; there are 2"


@pytest.mark.parametrize("name", DRAWS)
def test_a_seed_gives_the_same_numbers_again_on_both_devices(name, device, second_device):
    draw, drawn = DRAWS[name], []
    for where in (device, second_device, device):
        torch.manual_seed(5)
        drawn.append([draw(where).tolist(), draw(where).tolist()])
    assert drawn[0] == drawn[1] == drawn[2]
    assert drawn[0][0] != drawn[0][1]


@pytest.mark.parametrize("name", DRAWS)
def test_a_generator_of_the_device(name, device, second_device):
    draw = DRAWS[name]
    generator = torch.Generator(device).manual_seed(7)
    assert generator.device == device
    state, default = generator.get_state(), torch.torchext.get_rng_state(device)
    first, second = (draw(device, generator=generator).tolist() for _ in range(2))
    assert first != second
    generator.set_state(state)
    assert draw(device, generator=generator).tolist() == first
    assert torch.equal(torch.torchext.get_rng_state(device), default)  # was not drawn from


@pytest.mark.parametrize("name", DRAWS)
def test_the_generator_of_the_cpu_is_refused(name, device):
    with pytest.raises(RuntimeError, match="Expected a 'torchext' device type for generator"):
        DRAWS[name](device, generator=torch.Generator())


def test_the_generator_of_the_other_device_is_refused(device, second_device):
    with pytest.raises(RuntimeError, match="Expected a generator of device 1"):
        torch.rand(2, device=second_device, generator=torch.Generator(device))


def test_threads_draw_from_their_own_device(device, second_device):
    torch.manual_seed(3)
    cpu = torch.get_rng_state()

    def work(where):
        for _ in range(15):
            F.dropout(torch.ones(20_000, device=where), 0.5)

    threads = [threading.Thread(target=work, args=(where,)) for where in (device, second_device)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    states = [torch.torchext.get_rng_state(where) for where in (device, second_device)]
    assert torch.equal(*states) and torch.equal(torch.get_rng_state(), cpu)


def test_draws_of_one_leave_the_others_alone(device, second_device):
    torch.manual_seed(0)
    cpu, second = torch.get_rng_state(), torch.torchext.get_rng_state(second_device)
    torch.rand(3, device=device)
    F.dropout(torch.ones(30, device=device), 0.5)  # takes no generator
    F.rrelu(torch.ones(3, device=device), training=True)
    assert torch.equal(torch.get_rng_state(), cpu)
    assert torch.equal(torch.torchext.get_rng_state(second_device), second)
    before = torch.torchext.get_rng_state(device)
    torch.rand(3)
    assert torch.equal(torch.torchext.get_rng_state(device), before)


def test_dropout_beside_another_thread_that_draws_on_the_cpu(device):
    generator = torch.Generator().manual_seed(9)
    expected = torch.cat([torch.rand(1, generator=generator) for _ in range(20_000)])
    done = threading.Event()

    def work():
        while not done.is_set():
            F.dropout(torch.ones(100, device=device), 0.5)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(9)
            drawn = torch.cat([torch.rand(1) for _ in range(20_000)])
    finally:
        done.set()
        thread.join()
    torch.testing.assert_close(drawn, expected, rtol=0, atol=0)


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_dropout(p, device):
    x = torch.full((10_000,), 2.0, device=device, requires_grad=True)
    y, mask = torch.native_dropout(x, p, True)
    assert mask.dtype == torch.bool
    assert abs(mask.float().mean().item() - (1 - p)) < 0.03
    scale = 0.0 if p == 1 else 1 / (1 - p)
    torch.testing.assert_close(y.cpu(), 2 * scale * mask.cpu())
    y.sum().backward()
    torch.testing.assert_close(x.grad.cpu(), scale * mask.cpu().float())
    same, mask = torch.native_dropout(x, p, False)
    assert same is not x and torch.equal(same.cpu(), x.cpu()) and mask.cpu().all()


def test_a_state_is_saved_and_restored(device):
    state = torch.torchext.get_rng_state(device)
    first = F.dropout(torch.ones(100, device=device), 0.5).tolist()
    assert F.dropout(torch.ones(100, device=device), 0.5).tolist() != first
    torch.torchext.set_rng_state(state, device)
    assert F.dropout(torch.ones(100, device=device), 0.5).tolist() == first
    with torch.random.fork_rng(devices=[device], device_type=device.type):
        forked = torch.rand(4, device=device).tolist()
    assert torch.rand(4, device=device).tolist() == forked


def test_what_is_no_state_or_device_is_refused(device):
    with pytest.raises(RuntimeError, match="is what get_rng_state returns"):
        torch.torchext.set_rng_state(torch.zeros(3, dtype=torch.uint8))
    with pytest.raises(RuntimeError, match="no state of its generator"):
        torch.torchext.set_rng_state(torch.zeros_like(torch.torchext.get_rng_state()))
    with pytest.raises(RuntimeError, match="no test device is 4"):
        torch.torchext.manual_seed(0, 4)


def test_a_checkpoint_draws_the_same_numbers_again(device):
    x = torch.ones(50, device=device, requires_grad=True)
    seen = []

    def block(x):
        y = F.dropout(x, 0.5)
        seen.append(y.detach().cpu())
        return y * y

    checkpoint(block, x, use_reentrant=False).sum().backward()
    assert len(seen) == 2 and torch.equal(*seen)
    assert torch.equal(x.grad.cpu(), 4 * seen[0])  # where it was kept, the input counts twice


def test_a_generator_is_copied_and_pickled_with_its_state(device):
    generator = torch.Generator(device).manual_seed(3)
    torch.rand(5, generator=generator, device=device)
    copies = copy.deepcopy(generator), pickle.loads(pickle.dumps(generator))
    wanted = torch.rand(5, generator=generator, device=device).tolist()
    for copied in copies:
        assert copied.device == device
        assert torch.rand(5, generator=copied, device=device).tolist() == wanted


def test_the_state_is_of_the_cpu_whatever_the_default_device_is(device):
    with device:
        state = torch.torchext.get_rng_state()
        drawn = torch.rand(4).tolist()
        torch.torchext.set_rng_state(state)
        assert torch.rand(4).tolist() == drawn
    assert state.device.type == "cpu"


def test_random_numbers_are_no_fallback(device):
    with torchext.fallback.mode("error"):
        torch.rand(3, device=device)
        torch.empty(3, device=device).exponential_()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: torch.Generator("torchext:9"), RuntimeError, NO_INDEX),
        (lambda: torch.accelerator.synchronize(9), RuntimeError, NO_INDEX),
        (lambda: torch.torchext.synchronize("torchext:9"), RuntimeError, NO_INDEX),
        (lambda: torch.torchext.set_device("cuda:1"), ValueError, "not 'cuda:1'"),
        (lambda: torch.torchext.current_stream("cpu"), ValueError, "not 'cpu'"),
    ],
)
def test_a_device_that_there_is_not_is_refused(call, error, message, device):
    torch.empty(0, device=device)  # for a device that nobody has used torch synchronizes nothing
    with pytest.raises(error, match=message):
        call()
    assert torch.torchext.current_device() == 0


def test_a_draw_within_a_draw_is_an_error(device):
    """They would wait for each other: a generator is one draw's at a time."""

    def drawn_twice(self, mean=0.0, std=1.0, *, generator=None):
        return self.fill_(torch.rand((), device=device).item())

    with torchext.override("aten::normal_", drawn_twice):
        with pytest.raises(RuntimeError, match="draws some of the device itself"):
            torch.empty(2, device=device).normal_()
    assert torch.empty(2, device=device).normal_().isfinite().all()
