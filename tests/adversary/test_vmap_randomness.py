# SPDX-License-Identifier: BSD-3-Clause
"""`randomness` of torch.vmap: operators that draw random numbers beside ATen's own that do."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from library_build import ROOT, build_and_load
from torch import vmap
from torch.fx.experimental.proxy_tensor import make_fx

N, SIZE = 3, 20
RANDOMNESS = ["error", "same", "different"]
MODES = [(r, b) for r in RANDOMNESS for b in (True, False)]
NO_SAME = "Vmap does not currently support same randomness with a batched tensor input"

pytestmark = pytest.mark.usefixtures("without_vmap_warnings")


@pytest.fixture(scope="session")
def ops():
    """The operators of vmaptest/."""
    return build_and_load(Path(__file__).parent / "vmaptest", "vmaptest_library.so")


@dataclass(frozen=True)
class Situation:
    """A call that draws numbers for an example `x`, and ATen's own that draws as it does."""

    name: str
    call: Callable  # of the operators and an example
    aten: Callable  # of an example
    at_once: bool = False  # one call serves a batch
    writes: bool = False
    composite: bool = False  # parts of ATen's draw

    def __str__(self) -> str:
        return self.name


def aside(x, last):
    last.normal_()
    return x + last


def mask(x):
    return torch.native_dropout(x, 0.5, True)[1]


SITUATIONS = [
    Situation("noise", lambda o, x: o.noise([SIZE]), lambda x: torch.randn(SIZE)),
    Situation("noise_like", lambda o, x: o.noise_like(x), torch.randn_like),
    Situation("noise_like_at_once", lambda o, x: o.noise_like_at_once(x), torch.randn_like, True),
    Situation("flip", lambda o, x: o.flip(x), torch.bernoulli),
    Situation("flip_at_once", lambda o, x: o.flip_at_once(x), torch.bernoulli, True),
    Situation("fill", lambda o, x: o.fill(x), torch.randn_like),
    Situation("fill_", lambda o, x: o.fill_(x), lambda x: x.normal_(), writes=True),
    Situation("fill_at_once_", lambda o, x: o.fill_at_once_(x), lambda x: x.normal_(), True, True),
    Situation("stir", lambda o, x: o.stir(x), lambda x: x + torch.randn_like(x)),
    Situation("stir_", lambda o, x: o.stir_(x), lambda x: x.normal_(), writes=True),
    Situation("drop", lambda o, x: o.drop(x, 0.5)[1], mask),
    Situation("drop_at_once", lambda o, x: o.drop_at_once(x, 0.5)[1], mask, True),
    Situation(
        "noise_of_rows",
        lambda o, x: o.noise_of_rows(x.unsqueeze(-1)).squeeze(-1),
        torch.randn_like,
        True,
    ),
    Situation(
        "noise_aside_functional",
        lambda o, x: o.noise_aside_functional(x, torch.zeros(SIZE))[0],
        torch.randn_like,
    ),
    Situation("noise_by_own_rule", lambda o, x: o.noise_by_own_rule(x), torch.randn_like),
    Situation(
        "composed_noise",
        lambda o, x: o.composed_noise(x),
        lambda x: x + torch.randn(SIZE),
        composite=True,
    ),
    Situation(
        "composed_noise_",
        lambda o, x: o.composed_noise_(x),
        lambda x: x.normal_(),
        writes=True,
        composite=True,
    ),
    Situation(
        "composed_without_tag",
        lambda o, x: o.composed_without_tag(x),
        torch.bernoulli,
        composite=True,
    ),
]  # fmt: skip
OWN = [s for s in SITUATIONS if not s.composite]
# ATen refuses the same numbers for a batch where they are compared with it.
SERVED_HERE = ("flip", "flip_at_once")


def ours(situation: Situation, ops) -> Callable:
    return lambda x: situation.call(ops, x)


def example(batched: bool = True) -> torch.Tensor:
    """Half everywhere, so that what is drawn for one example can be compared with another's."""
    return torch.full((N, SIZE) if batched else (SIZE,), 0.5)


def rows(result: torch.Tensor) -> str:
    """Whether the same numbers were drawn for all examples."""
    pairs = list(itertools.combinations(result, 2))
    alike = [torch.equal(a, b) for a, b in pairs]
    assert all(alike) or not any(alike), result
    return "same" if all(alike) else "different"


def outcome(f: Callable, randomness: str, batched: bool) -> tuple:
    """What a call under vmap draws, or the first sentence of its error."""
    captured = example(batched=False)
    call = f if batched else lambda _: f(captured)
    try:
        result = vmap(call, randomness=randomness)(example())
    except RuntimeError as error:
        return ("error", re.split(r"[.(]", str(error))[0])
    return rows(result), tuple(result.shape), result.is_floating_point()


@pytest.mark.parametrize("situation", SITUATIONS, ids=str)
@pytest.mark.parametrize(("randomness", "batched"), MODES)
def test_the_outcome_is_that_of_aten(situation, randomness, batched, ops) -> None:
    actual = outcome(ours(situation, ops), randomness, batched)
    expected = outcome(situation.aten, randomness, batched)
    if situation.name in SERVED_HERE and (randomness, batched) == ("same", True):
        assert expected == ("error", NO_SAME)
        expected = ("same", (N, SIZE), True)
    assert actual[:2] == expected[:2]


@pytest.mark.parametrize("situation", OWN, ids=str)
@pytest.mark.parametrize("batched", [True, False])
def test_the_same_numbers_are_those_of_one_call(situation, batched, ops) -> None:
    f, x = ours(situation, ops), torch.rand(N, SIZE)
    captured = x[0].clone()
    torch.manual_seed(7)
    result = vmap(f if batched else lambda _: f(captured.clone()), randomness="same")(x.clone())
    after = torch.get_rng_state()
    for index in range(N):
        torch.manual_seed(7)
        torch.testing.assert_close(result[index], f((x[index] if batched else captured).clone()))
    assert torch.equal(torch.get_rng_state(), after)


@pytest.mark.parametrize("situation", OWN, ids=str)
def test_different_numbers_are_those_of_a_loop_or_of_one_call_for_all(situation, ops) -> None:
    f, x = ours(situation, ops), torch.rand(N, SIZE)
    torch.manual_seed(7)
    result = vmap(f, randomness="different")(x.clone())
    torch.manual_seed(7)
    at_once = situation.at_once or situation.name == "noise_by_own_rule"
    expected = f(x.clone()) if at_once else torch.stack([f(t.clone()) for t in x])
    torch.testing.assert_close(result, expected)


@pytest.mark.parametrize("name", ["add_noise", "add_noise_at_once"])
@pytest.mark.parametrize("batched", [(0, None), (None, 0), (0, 0)])
def test_numbers_for_an_unbatched_argument_differ_too(name, batched, ops) -> None:
    """`x` alone says how many numbers are drawn."""
    x, y = (torch.rand(SIZE) if d is None else torch.rand(N, SIZE) for d in batched)
    f = getattr(ops, name)
    assert rows(vmap(f, batched, randomness="different")(x, y)) == "different"
    assert rows(vmap(f, batched, randomness="same")(x, y)) == "same"


@pytest.mark.parametrize(("randomness", "count"), [("different", 1), ("same", N)])
@pytest.mark.parametrize("name", ["flip_at_once", "fill_at_once_", "drop_at_once"])
def test_a_rule_makes_one_call_unless_numbers_are_the_same(name, randomness, count, ops) -> None:
    from torch.utils._python_dispatch import TorchDispatchMode

    overload = getattr(ops, name).default

    class Calls(TorchDispatchMode):
        count = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.count += func is overload
            return func(*args, **(kwargs or {}))

    situation = next(s for s in SITUATIONS if s.name == name)
    with Calls() as calls:
        vmap(ours(situation, ops), randomness=randomness)(torch.rand(N, SIZE))
    assert calls.count == count


# -- generators that are given

WITH_GENERATOR = {
    "noise": (
        lambda o, x, g: o.noise([SIZE], generator=g),
        lambda x, g: torch.randn(SIZE, generator=g),
    ),
    "flip": (lambda o, x, g: o.flip(x, generator=g), lambda x, g: torch.bernoulli(x, generator=g)),
    "flip_at_once": (
        lambda o, x, g: o.flip_at_once(x, generator=g),
        lambda x, g: torch.bernoulli(x, generator=g),
    ),
    "fill_": (lambda o, x, g: o.fill_(x, generator=g), lambda x, g: x.normal_(generator=g)),
    "fill_at_once_": (
        lambda o, x, g: o.fill_at_once_(x, generator=g),
        lambda x, g: x.normal_(generator=g),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WITH_GENERATOR)
@pytest.mark.parametrize("randomness", ["same", "different"])
def test_a_generator_that_is_given_is_drawn_from_alone(name, randomness, ops) -> None:
    call, aten = WITH_GENERATOR[name]
    x = torch.rand(N, SIZE)
    default = torch.get_rng_state()
    generator = torch.Generator().manual_seed(3)
    result = vmap(lambda x: call(ops, x, generator), randomness=randomness)(x.clone())
    assert torch.equal(torch.get_rng_state(), default)
    after = generator.get_state()
    generator.manual_seed(3)
    if randomness == "same":
        for index in range(N):
            generator.manual_seed(3)
            torch.testing.assert_close(result[index], aten(x[index].clone(), generator))
        assert torch.equal(generator.get_state(), after)
    else:
        loop = [aten(t.clone(), generator) for t in x]
        is_one_call = name.rstrip("_").endswith("at_once")
        expected = aten(x.clone(), generator.manual_seed(3)) if is_one_call else torch.stack(loop)
        torch.testing.assert_close(result, expected)


# -- what torch refuses


@pytest.mark.parametrize("randomness", RANDOMNESS)
@pytest.mark.parametrize("name", ["flip", "flip_at_once", "fill"])
def test_out_forms_are_refused_as_those_of_aten(name, randomness, ops) -> None:
    x, out = example(), torch.zeros(N, SIZE)
    for batched in (True, False):
        for f in (getattr(ops, name), torch.bernoulli):

            def call(x, o, f=f, batched=batched):
                return f(x, out=o) if batched else f(x[0] * 0 + example(False), out=out[0])

            with pytest.raises(RuntimeError, match="do not support calling out variants of random"):
                vmap(call, randomness=randomness)(x, out.clone())


def test_what_is_written_aside_takes_the_batch_of_the_numbers(ops) -> None:
    x, last = torch.rand(N, SIZE), torch.zeros(N, SIZE)
    result = vmap(ops.noise_aside, randomness="different")(x, last)
    torch.testing.assert_close(result, x + last)
    assert rows(last) == "different"
    vmap(ops.noise_aside, randomness="same")(x, last)
    assert rows(last) == "same"
    for f, in_dims in itertools.product((ops.noise_aside, aside), ((0, None), (None, None))):
        given = (x if in_dims[0] == 0 else x[0], torch.zeros(SIZE))
        call = lambda _, a, b, f=f: f(a, b)  # noqa: E731
        with pytest.raises(RuntimeError, match="Cannot ask for different inplace randomness on an"):
            vmap(call, (0, *in_dims), randomness="different")(x, *given)
    with pytest.raises(RuntimeError, match="noise_aside writes to 'last', which is not batched"):
        vmap(ops.noise_aside, (0, None), randomness="same")(x, torch.zeros(SIZE))


# -- with other transforms


def pattern(result: torch.Tensor) -> tuple[bool, bool]:
    """Whether numbers of two nested batches are the same along the outer and along the inner."""
    outer = all(torch.equal(result[0], r) for r in result)
    inner = all(torch.equal(result[:, 0], result[:, i]) for i in range(result.shape[1]))
    return outer, inner


# which of the outer and the inner batch the tensor has
NESTED_DIMS = {"both": (0, 0), "outer": (0, None), "inner": (None, 0), "none": (None, None)}


@pytest.mark.parametrize(
    "name", ["noise", "noise_like", "noise_like_at_once", "fill_", "fill_at_once_"]
)
@pytest.mark.parametrize("outer", RANDOMNESS)
@pytest.mark.parametrize("inner", RANDOMNESS)
@pytest.mark.parametrize("batches", NESTED_DIMS)
def test_nested_batches_draw_as_aten_draws(name, outer, inner, batches, ops) -> None:
    situation = next(s for s in SITUATIONS if s.name == name)
    of_outer, of_inner = NESTED_DIMS[batches]

    def run(f):
        x = torch.full((2,) * (of_outer == 0) + (N,) * (of_inner == 0) + (SIZE,), 0.5)
        # each vmap has a batch of its own, which the call may not use
        inside = vmap(lambda _, x: f(x), (0, of_inner), randomness=inner)
        around = vmap(lambda _, x: inside(torch.zeros(N), x), (0, of_outer), randomness=outer)
        try:
            return pattern(around(torch.zeros(2), x))
        except RuntimeError as error:
            return re.split(r"[.(]", str(error))[0]

    expected = run(situation.aten)
    if situation.writes and (outer, inner, batches) == ("different", "same", "both"):
        assert expected.startswith("vmap: Cannot ask for different inplace randomness")
        expected = (False, True)  # which ATen's tensor in between has no room for
    assert run(ours(situation, ops)) == expected


@pytest.mark.parametrize("name", ["drop", "drop_at_once"])
@pytest.mark.parametrize("randomness", ["same", "different"])
def test_gradients_are_of_the_numbers_that_were_drawn(name, randomness, ops) -> None:
    x = torch.rand(N, SIZE) + 1

    def run(drop):
        def total(x):
            result = drop(x)
            return result.sum(), result.detach()

        gradient, result = vmap(torch.func.grad(total, has_aux=True), randomness=randomness)(x)
        torch.testing.assert_close(gradient * x, result)
        leaf = x.clone().requires_grad_()
        result = vmap(drop, randomness=randomness)(leaf)
        (of_batch,) = torch.autograd.grad(result.sum(), leaf)
        torch.testing.assert_close(of_batch * x, result.detach())
        outer = torch.func.grad(lambda x: vmap(drop, randomness=randomness)(x).sum())(x)
        tangent = torch.func.jvp(vmap(drop, randomness=randomness), (x,), (x,))
        torch.testing.assert_close(*tangent)
        return [rows(g) for g in (gradient, of_batch, outer)]

    f = getattr(ops, name)
    assert run(lambda x: f(x, 0.5)[0]) == run(lambda x: F.dropout(x, 0.5)) == [randomness] * 3


@pytest.mark.parametrize("randomness", ["same", "different"])
@pytest.mark.parametrize("situation", [s for s in OWN if not s.writes], ids=str)
def test_chunks_draw_as_the_whole(situation, randomness, ops) -> None:
    f = ours(situation, ops)
    x = torch.full((5, SIZE), 0.5)
    assert rows(vmap(f, randomness=randomness, chunk_size=2)(x)) == randomness


@pytest.mark.parametrize("randomness", RANDOMNESS)
@pytest.mark.parametrize("situation", OWN, ids=str)
def test_a_batch_of_nothing_draws_nothing(situation, randomness, ops) -> None:
    f, x = ours(situation, ops), torch.zeros(0, SIZE)
    state = torch.get_rng_state()
    if randomness == "error":
        with pytest.raises(RuntimeError, match="called random operation while in randomness error"):
            vmap(f, randomness=randomness)(x)
    else:
        result = vmap(f, randomness=randomness)(x)
        assert result.shape == vmap(situation.aten, randomness="different")(x).shape == (0, SIZE)
        is_one_call = situation.name == "noise" and randomness == "same"  # as of ATen's
        assert torch.equal(torch.get_rng_state(), state) != is_one_call


# -- compiled

COMPILED = [s for s in SITUATIONS if s.name not in ("drop", "noise_by_own_rule")]  # no Meta kernel


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize(("randomness", "batched"), MODES)
def test_compiled_calls_draw_as_eager_ones(backend, randomness, batched, ops) -> None:
    for situation in COMPILED:
        torch._dynamo.reset()
        f, captured = ours(situation, ops), example(batched=False)

        def function(x, captured, f=f):
            call = f if batched else lambda _: f(captured)
            return vmap(call, randomness=randomness)(x)

        compiled = torch.compile(function, backend=backend, fullgraph=True)
        eager = outcome(f, randomness, batched)
        try:
            found = [compiled(example(), captured.clone()) for _ in range(2)]
        except Exception as error:  # each backend raises its own
            if (randomness, batched) == ("same", True) and eager[0] != "error":
                assert backend != "eager" and not situation.composite
                assert re.search(f"{NO_SAME} where calls are traced: vmaptest::", str(error))
            else:
                assert eager[0] == "error", (situation.name, str(error))
                assert eager[1] in str(error)
            continue
        assert [rows(f) for f in found] == [eager[0]] * 2, situation.name
        assert not torch.equal(*found), situation.name  # each call draws anew


@pytest.mark.parametrize("situation", [s for s in OWN if s.name != "noise"], ids=str)
def test_a_trace_with_the_same_numbers_for_a_batch_is_refused(situation, ops) -> None:
    batched = vmap(ours(situation, ops), randomness="same")
    for trace in (make_fx(batched), lambda x: torch.jit.trace(batched, (x,), check_trace=False)):
        with pytest.raises(RuntimeError, match=f"{NO_SAME} where calls are traced"):
            trace(example())


def test_a_trace_with_other_numbers_for_each_example_draws_them(ops) -> None:
    for name in ("noise", "noise_like", "noise_like_at_once", "fill_"):
        situation = next(s for s in SITUATIONS if s.name == name)
        batched = vmap(ours(situation, ops), randomness="different")
        trace = make_fx(batched)(example())
        assert rows(trace(example())) == "different"


# -- devices, in a process of its own: the test device comes before the first backward

ON_DEVICE = """
import sys
sys.path[:0] = {path!r}
import torch, torchext, torchext.testing
device = torchext.testing.device()
torchext.load_library({library!r})
ops = torch.ops.vmaptest
x = torch.full((3, 20), 0.5, device=device)

def rows(f, randomness):
    result = torch.vmap(f, randomness=randomness)(x.clone())
    assert result.device.type == device.type, result.device
    return "same" if all(torch.equal(result[0].cpu(), r.cpu()) for r in result) else "different"

def factory(_):
    return ops.noise([20], dtype=torch.double, device=device)

for f in (ops.noise_like, ops.noise_like_at_once, ops.flip, ops.fill_, ops.stir, factory):
    print(rows(f, "same"), rows(f, "different"))
generator = torch.Generator(device=device)
for f in (ops.flip, ops.flip_at_once, ops.fill_):
    def given(x):
        return f(x, generator=generator)
    print(rows(given, "same"), rows(given, "different"))
"""


def test_the_generators_of_a_device_are_set_back(ops) -> None:
    library = ROOT / "build" / "tests" / "vmaptest" / "vmaptest_library.so"
    program = ON_DEVICE.format(path=[path or "." for path in sys.path], library=str(library))
    environment = {**os.environ, "TORCHEXT_FALLBACK": "silent"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["same different"] * 9, done.stdout
