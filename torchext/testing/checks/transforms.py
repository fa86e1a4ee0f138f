# SPDX-License-Identifier: BSD-3-Clause
"""Transforms of torch against plain calls: vmap, autocast, devices, pickle.

Their messages are whole: PYTEST_DONT_REWRITE.
"""

from __future__ import annotations

import copy
import functools
import pickle
import re

import torch
from torch.testing._internal.optests.generate_tests import safe_aot_autograd_check

from .. import device as test_devices
from ..calls import Call, assert_same_others, is_traceable, results_and_gradients, tensors_of
from ..samples import Sample
from ..subject import (
    DTYPES,
    WIDE_DTYPES,
    NotApplicable,
    Refused,
    Subject,
    Unavailable,
    fork_rng,
    has_gradient,
)
from .aliases import check_aliases

# What opcheck's tests of AOTDispatcher compare are results of two calls.
_OPCHECK_TWO_CALLS = ("test_aot_dispatch_static", "test_aot_dispatch_dynamic")
_OPCHECK_FAKE = ("test_faketensor", *_OPCHECK_TWO_CALLS)
_EXAMPLES = 3  # that vmap is given
# What torch and generated code say of an operator that vmap cannot run.
_REFUSES_BATCHES = re.compile(
    "Batching rule not implemented|Vmap does not currently support same randomness|vmap: "
    "(we do not|it looks like you're|.* is not supported|.* for one example of the batch"
    "|.* views each example of the batch in another way|.* resizes what it writes to)",
    re.IGNORECASE,
)
# The devices that its test of the registration knows
_OPCHECK_DEVICES = ("cpu", "cuda", "xpu")

Tensors = tuple[torch.Tensor, ...]


def opcheck(subject: Subject) -> None:
    """torch.library.opcheck, all of its tests that know the device, with and without gradients;
    results are arguments where the schema says so, and new where it does not, of composite
    operators too, which torch's tests look through."""
    left_out = [*(_OPCHECK_TWO_CALLS if subject.is_random else ())]
    if torch.Tag.data_dependent_output in subject.overload.tags:
        left_out += _OPCHECK_FAKE  # which has no numbers to return
    if subject.device.type not in _OPCHECK_DEVICES:
        left_out.append("test_autograd_registration")
    tests = [test for test in torch.library._OPCHECK_DEFAULT_UTILS if test not in left_out]
    for call in subject.calls():
        check_aliases(subject, call)
        _opcheck(subject.with_outs(call), tests)
        flags = subject.differentiable(call)
        # A leaf that requires grad cannot be written to.
        names = [name for name, _ in call.named_tensors]
        flags = [flag and name not in subject.writes for flag, name in zip(flags, names)]
        if any(flags):
            pairs = zip(call.tensors, flags)
            given = call.with_tensors([t.clone().requires_grad_(flag) for t, flag in pairs])
            _opcheck(given, tests)


def _opcheck(call: Call, tests: list[str]) -> None:
    """opcheck's tests of a call. Those of AOTDispatcher add a sum of each result to that of the
    first, which cannot hold it where integers come before others: they are given these first."""
    kinds = [has_gradient(tensor) for tensor in tensors_of(call.map_tensors(torch.clone).run())]
    overload = call.overload
    if kinds != sorted(kinds, reverse=True):

        def reordered(*args, **kwargs):
            return sorted(tensors_of(overload(*args, **kwargs)), key=has_gradient, reverse=True)

        for test in [test for test in tests if test in _OPCHECK_TWO_CALLS]:
            is_dynamic = test.endswith("dynamic")
            safe_aot_autograd_check(reordered, call.args, call.kwargs, dynamic=is_dynamic)
        tests = [test for test in tests if test not in _OPCHECK_TWO_CALLS]
    torch.library.opcheck(overload, call.args, call.kwargs, test_utils=tests)


def vmap(subject: Subject) -> None:
    """torch.vmap against a loop: every tensor batched, in the first dimension, in the last or in
    the one and the other in turn, and each one alone; random numbers are the same for all."""
    compared = 0
    left_out: list[Exception] = []
    for seed, sample in enumerate(subject.samples):
        call = subject.call(sample, subject.wide_dtype, seed)
        if not subject.fits(call):
            continue
        examples = _examples(subject, sample, seed)
        writes = [name in subject.writes for name, _ in call.named_tensors]
        count = len(writes)
        for in_dims in _batches(count):
            is_lost = [w and d is None for d, w in zip(in_dims, writes)]
            if any(is_lost) and any(d is not None for d in in_dims):
                continue  # what is written to has no room for the batch
            try:
                _check_vmap(subject, call, in_dims, examples)
                compared += 1
            except (NotApplicable, Refused) as reason:
                left_out.append(reason)
    refusals = [reason for reason in left_out if isinstance(reason, Refused)]
    if refusals or not compared:
        raise [*refusals, *left_out, NotApplicable("it takes no tensors")][0]


def _batches(count: int) -> list[tuple[int | None, ...]]:
    """The dimensions that hold the batch of so many tensors."""
    together = [(0,) * count, (-1,) * count, tuple(-(i % 2) for i in range(count))]
    alone = [
        tuple(place if i == j else None for j in range(count))
        for i in range(count)
        for place in (0, -1)
    ]
    return list(dict.fromkeys([*together, *alone])) if count else []


def _check_vmap(
    subject: Subject,
    call: Call,
    in_dims: tuple[int | None, ...],
    examples: list[list[torch.Tensor]],
) -> None:
    outs = [t for name, t in subject.with_outs(call).named_tensors if name in subject.outs]
    function = subject.function(call, takes_outs=True)
    batched = [
        torch.stack(several, d) if d is not None else t
        for t, several, d in zip(call.tensors, examples, in_dims)
    ]
    batched_outs = [torch.stack([t] * _EXAMPLES) for t in outs]
    loop = []
    for i in range(_EXAMPLES):
        given = [t if d is None else e[i] for t, e, d in zip(call.tensors, examples, in_dims)]
        loop.append(function(*given, *map(torch.clone, outs)))
    if len({tuple(t.shape for t in results) for results in loop}) > 1:
        raise NotApplicable("the sizes of its results depend on values")
    try:
        run = torch.func.vmap(
            function,
            (*in_dims, *[0] * len(outs)),
            randomness="same" if subject.is_random else "error",
        )
        found = run(*batched, *batched_outs)
    except RuntimeError as error:
        if not _REFUSES_BATCHES.match(str(error)):
            raise
        raise Refused(str(error).splitlines()[0]) from error
    wanted = tuple(torch.stack(parts) for parts in zip(*loop))
    torch.testing.assert_close(
        found, wanted, equal_nan=True, msg=lambda text: f"in_dims={in_dims}: {text}"
    )


def _examples(subject: Subject, sample: Sample, seed: int) -> list[list[torch.Tensor]]:
    """For each tensor of a call the tensors of the examples: of as many draws of its sample. Those
    that a sample gives by value are in another order, unless they are integers, which may be places
    or offsets."""
    draws = [
        subject.call(sample, subject.wide_dtype, seed + i * len(subject.samples)).tensors
        for i in range(_EXAMPLES)
    ]
    examples = [list(several) for several in zip(*draws)]
    for several in examples:
        first = several[0]
        if has_gradient(first) and all(torch.equal(first, other) for other in several):
            several[:] = [first.flatten().roll(i).view_as(first) for i in range(_EXAMPLES)]
    return examples


def autocast(subject: Subject) -> None:
    """In torch.autocast the operator's `autocast:` casts its arguments; without the key nothing
    changes."""
    policy = subject.facts.autocast
    if subject.facts.composite and policy is None:
        raise NotApplicable("made of other operators, which autocast casts")
    if policy is not None and not subject.is_autocast:
        raise NotApplicable(f"`autocast:` casts nothing on {subject.device.type}")
    dtypes = [d for d in (torch.float32, torch.bfloat16) if d in subject.taken]
    if not dtypes:
        raise NotApplicable("it takes neither float32 nor bfloat16")
    for dtype in dtypes:
        for call in subject.calls(dtype):
            function = subject.function(call)
            with torch.autocast(subject.device.type, dtype=torch.bfloat16):
                found = function(*call.tensors)
            wanted = subject.run(_cast(call, policy))  # drawn in the same dtype
            torch.testing.assert_close(found, wanted, equal_nan=True)


def _cast(call: Call, policy: str | None) -> Call:
    """The call that autocast makes of this one."""
    if policy is None:
        return call
    eligible = [t.dtype for t in call.tensors if _is_cast(t)]
    to = torch.bfloat16 if policy == "lower_precision_fp" else torch.float32
    if policy == "promote" and torch.float32 not in eligible:
        to = torch.bfloat16
    return call.map_tensors(lambda t: t.to(to) if _is_cast(t) else t)


def _is_cast(t: torch.Tensor) -> bool:
    return t.is_floating_point() and t.dtype != torch.float64


def on_device(subject: Subject) -> None:
    """Results and gradients on the device are those of the CPU: on the one that the checks run on,
    and where that is the CPU on torchext.testing.device()."""
    device, cpu = subject.device, torch.device("cpu")
    if device.type == "cpu":
        device = comparison_device()
    elif not subject.runs_on(cpu):
        raise NotApplicable("there is no kernel for the CPU to compare with")
    on_cpu, there = Subject(subject.facts, cpu), Subject(subject.facts, device)
    # The test device mostly runs the CPU's kernels; another one computes in another order.
    common = [d for d in subject.taken if d in (on_cpu.taken if subject.device != cpu else DTYPES)]
    if not common:
        raise NotApplicable("the CPU takes none of the dtypes that the device takes")
    wide = [] if subject.device == cpu else [d for d in common if d in WIDE_DTYPES]
    dtype = [*wide, *common][0]
    checked = 0
    for seed, sample in enumerate(subject.samples):
        call = on_cpu.call(sample, dtype, seed)
        if not call.tensors or not on_cpu.fits(call):
            continue
        checked += 1
        given = there.call(sample, dtype, seed)
        flags = subject.differentiable(call)
        with subject.refusing_fallback(), fork_rng(device):
            found = results_and_gradients(there.function(given), given.tensors, flags)
        assert all(t.device == device for t in found), "a result is on another device"
        if not subject.is_random:
            wanted = results_and_gradients(on_cpu.function(call), call.tensors, flags)
            torch.testing.assert_close([t.cpu() for t in found], list(wanted), equal_nan=True)
            if not subject.writes:
                assert_same_others(given.run(), call.run(), "against the CPU")
    if not checked:
        raise NotApplicable("it takes no tensors")


def comparison_device() -> torch.device:
    """The test device; Unavailable where it cannot be built, or cannot be used any more."""
    device, reason = _comparison_device()
    if device is None:
        raise Unavailable(f"the test device cannot be used: {reason}")
    return device


def forgo_test_device(reason: str) -> None:
    """Leave the test device alone in this process, in which it cannot be used."""
    global _forgone
    _forgone = reason


_forgone = ""


@functools.cache  # a compiler that fails once fails again
def _comparison_device() -> tuple[torch.device | None, str]:
    if _forgone:
        return None, _forgone
    try:
        return test_devices.device(), ""
    except (ImportError, OSError, RuntimeError) as error:
        return None, str(error)


def pickled(subject: Subject) -> None:
    """A torch.fx graph that calls the operator survives pickle and copy.deepcopy."""
    checked = 0
    for call in subject.calls():
        if not call.tensors or not is_traceable(call):
            continue  # the one is a constant of the graph, and pickle takes no generator
        checked += 1
        given = subject.with_outs(call)
        module = _module(subject, given)
        for copied in (pickle.loads(pickle.dumps(module)), copy.deepcopy(module)):
            targets = [node.target for node in copied.graph.nodes]
            assert subject.overload in targets, "the copy calls something else"
            found, wanted = (
                subject.seeded(call, function)(*(t.clone() for t in given.tensors))
                for function in (copied, module)
            )
            torch.testing.assert_close(found, wanted, equal_nan=True)
    if not checked:
        raise NotApplicable("it takes no tensors, or a generator")


def _module(subject: Subject, call: Call) -> torch.fx.GraphModule:
    """One call of the operator, as a graph whose inputs are its tensors."""
    graph = torch.fx.Graph()
    given = call.with_tensors(graph.placeholder(f"t{i}") for i, _ in enumerate(call.tensors))
    graph.output(graph.call_function(subject.overload, given.args, given.kwargs))
    return torch.fx.GraphModule(torch.nn.Module(), graph)
