# SPDX-License-Identifier: BSD-3-Clause
"""torch.compile against eager: a call, and several steps of a training on the same tensors.

Their messages are whole: PYTEST_DONT_REWRITE.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import torch
import torch._dynamo.config as dynamo_config
import torch._functorch.config as functorch_config
from torch._dynamo.testing import CompileCounterWithBackend
from torch._inductor import config as inductor_config
from torch._inductor.codegen.common import get_scheduling_for_device, init_backend_registration
from torch.utils import _pytree as pytree
from torch.utils._triton import has_triton

from ..calls import Call, cotangents, is_traceable, results_and_gradients, tensors_of
from ..samples import Sample, resized, sizes_in
from ..subject import NotApplicable, Subject, Unavailable

Tensors = tuple[torch.Tensor, ...]
Function = Callable[..., Tensors]
# Of a training: what the first one leaves behind is read by the second, and what that wrote over by
# the third.
_STEPS = 3


def compile_static(subject: Subject) -> None:
    """torch.compile(fullgraph=True) against eager, gradients included, and three steps of a
    training, which leave the same in what the operator writes to; there by aot_eager too."""
    _refuse_what_is_not_compiled(subject)
    calls = [call for call in subject.calls() if is_traceable(call)]
    if not calls:
        raise NotApplicable("torch.compile takes no generator")
    for call in calls:
        _check_compiled(subject, [call], dynamic=False)


def compile_dynamic(subject: Subject) -> None:
    """torch.compile(fullgraph=True, dynamic=True) against eager, on the sample and with every size
    in turn doubled where the operator takes it, without compiling again."""
    _refuse_what_is_not_compiled(subject)
    checked = 0
    for sample in subject.samples:
        call = subject.call(sample)
        if subject.fits(call) and is_traceable(call):
            _check_compiled(subject, [call, *_doubled(subject, sample)], dynamic=True)
            checked += 1
    if not checked:
        raise NotApplicable("torch.compile takes no generator")


def _refuse_what_is_not_compiled(subject: Subject) -> None:
    """Leave a check in torch.compile, which traces no operator that returns a number, and where
    Inductor has nothing for the device."""
    init_backend_registration()
    kind = subject.device.type
    if get_scheduling_for_device(kind) is None:
        raise Unavailable(f"Inductor compiles nothing for {kind}")
    if kind in ("cuda", "xpu") and not has_triton():
        raise Unavailable(f"Inductor needs Triton for {kind}")
    if any("Tensor" not in str(r.type) for r in subject.overload._schema.returns):
        raise NotApplicable("torch.compile takes no operator that returns other than tensors")


def _doubled(subject: Subject, sample: Sample) -> Iterator[Call]:
    """The calls of the sample with another size that the operator takes, and with as many results:
    how many there are is always a constant."""
    count = len(subject.run(subject.call(sample)))
    for size in sizes_in(sample):
        call = subject.call(resized(sample, size, 2 * size))
        if size > 1:
            try:
                has_as_many = len(subject.run(call)) == count
            except Exception:  # a size that the operator needs as it is
                continue
            if has_as_many:
                yield call


def _check_compiled(subject: Subject, calls: list[Call], dynamic: bool) -> None:
    """Compile what the first call does, and compare it with eager on the tensors of all: as a
    function that writes to nothing that it is given, and where the operator does, as it is."""
    torch._dynamo.reset()
    captured = {"capture_dynamic_output_shape_ops": subject.depends_on_values}
    # the numbers of eager, and one graph where values tell sizes
    with inductor_config.patch(fallback_random=True), dynamo_config.patch(captured):
        pure = _Compiled(subject, calls[0], subject.traceable(calls[0], True), "inductor", dynamic)
        for call in calls:
            _check_results(subject, call, pure)
            if not subject.writes:
                _check_training(subject, call, pure)
            pure.check_once()
        for backend in ("aot_eager", "inductor") if subject.writes else ():
            step = _Compiled(subject, calls[0], _step(subject, calls[0]), backend, dynamic)
            with _without_caches():
                for call in calls:
                    _check_training(subject, call, step)
                    step.check_once()


@contextlib.contextmanager
def _without_caches() -> Iterator[None]:
    """Compile everything: torch 2.13 takes a backward from its cache that writes over what was
    saved, where that belongs to the caller of another function with the same backward."""
    with inductor_config.patch(fx_graph_cache=False):
        with functorch_config.patch(enable_autograd_cache=False):
            yield


class _Compiled:
    """A function that calls the operator, compiled and as it is."""

    def __init__(
        self, subject: Subject, call: Call, function: Function, backend: str, dynamic: bool
    ) -> None:
        self.backend = backend
        self._counter = CompileCounterWithBackend(backend)
        self._of_first = 0
        # what the parts of a composite operator make constant is torch's
        self._may_be_again = subject.facts.composite
        compiled = torch.compile(function, fullgraph=True, dynamic=dynamic, backend=self._counter)
        self.compiled, self.eager = (subject.seeded(call, f) for f in (compiled, function))

    def check_once(self) -> None:
        """Check that nothing was compiled again since this was asked first."""
        self._of_first = self._of_first or self._counter.frame_count
        assert self._counter.frame_count == self._of_first or self._may_be_again, (
            "compiled again for other sizes: the Meta kernel or a formula makes sizes constants"
        )


def _tensors(subject: Subject, call: Call) -> list[torch.Tensor]:
    """Those of the call, and then the out= tensors."""
    given = subject.with_outs(call).named_tensors
    return [*call.tensors, *(t for name, t in given if name in subject.outs)]


def _check_results(subject: Subject, call: Call, both: _Compiled) -> None:
    tensors, flags = _tensors(subject, call), subject.differentiable(call)
    found = results_and_gradients(both.compiled, tensors, flags)
    wanted = results_and_gradients(both.eager, tensors, flags)
    torch.testing.assert_close(found, wanted, equal_nan=True)


def _step(subject: Subject, call: Call) -> Function:
    """The call itself, as a function of its tensors and the out= tensors, which writes to them."""
    given = subject.with_outs(call)
    leaves, spec = pytree.tree_flatten((given.args, given.kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    overload = subject.overload

    def step(*tensors: torch.Tensor) -> Tensors:
        filled = list(leaves)
        for place, tensor in zip(places, tensors):
            filled[place] = tensor
        args, kwargs = pytree.tree_unflatten(filled, spec)
        return tuple(tensors_of(overload(*args, **kwargs)))

    return step


def _check_training(subject: Subject, call: Call, both: _Compiled) -> None:
    """Results, gradients and arguments of several steps, with what the operator writes to as
    buffers, which no gradient flows to; and the gradients of two calls before any backward."""
    names = [name for name, _ in call.named_tensors]
    tensors, flags = _tensors(subject, call), subject.differentiable(call)
    flags = [flag and name not in subject.writes for flag, name in zip(flags, names)]
    flags += [False] * (len(tensors) - len(flags))
    if subject.writes:
        _compare_steps(both, tensors, [False] * len(flags))
    # torch.compile refuses to save what becomes part of the graph, of ATen's own operators too
    if any(flags) and not _writes_with_history(both.eager, tensors, flags):
        _compare_steps(both, tensors, flags)


def _writes_with_history(
    function: Function, tensors: list[torch.Tensor], flags: list[bool]
) -> bool:
    """Whether something that requires no grad does so after a call."""
    leaves, _ = _leaves(tensors, flags)
    function(*leaves)
    return any(t.requires_grad != flag for t, flag in zip(leaves, flags))


def _compare_steps(both: _Compiled, tensors: list[torch.Tensor], flags: list[bool]) -> None:
    wanted = _until_refused(_training(both.eager, tensors, flags))
    for (what, expected), (_, actual) in zip(wanted, _training(both.compiled, tensors, flags)):
        _assert_same(actual, expected, f"{both.backend}, {what}")
    if any(flags):
        for what, expected in _until_refused(_two_calls(both.eager, tensors, flags), least=0):
            ((_, actual),) = _two_calls(both.compiled, tensors, flags)
            _assert_same(actual, expected, f"{both.backend}, {what}")


def _assert_same(actual: list[torch.Tensor], expected: list[torch.Tensor], what: str) -> None:
    torch.testing.assert_close(actual, expected, equal_nan=True, msg=lambda text: f"{what}: {text}")


def _leaves(
    tensors: list[torch.Tensor], flags: list[bool]
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Copies of the tensors, and those among them that require grad, as the flags say."""
    leaves = [t.clone().requires_grad_(flag) for t, flag in zip(tensors, flags)]
    return leaves, [leaf for leaf, flag in zip(leaves, flags) if flag]


def _gradients(results: Tensors, wanted: list[torch.Tensor]) -> list[torch.Tensor]:
    outputs = [r for r in results if r.requires_grad]
    if not wanted or not outputs:
        return []
    given = torch.autograd.grad(outputs, wanted, cotangents(outputs), materialize_grads=True)
    return [gradient.clone() for gradient in given]


_Named = tuple[str, list[torch.Tensor]]


def _training(
    function: Function, tensors: list[torch.Tensor], flags: list[bool]
) -> Iterator[_Named]:
    """What each step gives, by name."""
    leaves, wanted = _leaves(tensors, flags)
    for step in range(1, _STEPS + 1):
        results = function(*leaves)
        yield f"results of step {step}", [r.detach().clone() for r in results]
        yield f"gradients of step {step}", _gradients(results, wanted)
        yield f"arguments after step {step}", [t.detach().clone() for t in leaves]
        for leaf, flag in zip(leaves, flags):
            if not flag:
                leaf.detach_()  # a buffer


def _two_calls(
    function: Function, tensors: list[torch.Tensor], flags: list[bool]
) -> Iterator[_Named]:
    """The gradients of two calls before any backward, which eager refuses where the second call
    writes to what the first one saved."""
    leaves, wanted = _leaves(tensors, flags)
    results = [r for _ in range(2) for r in function(*leaves)]
    yield "gradients of two calls before any backward", _gradients(tuple(results), wanted)


def _until_refused(found: Iterator[_Named], least: int = 3) -> list[_Named]:
    """What eager gives until it raises: a buffer may be full, and what was saved be written to. It
    may not before it has given `least`, those of the first step."""
    given: list[_Named] = []
    try:
        for one in found:
            given.append(one)
    except Exception:  # in the operator's own words, or torch's
        if len(given) < least:
            raise
    return given
