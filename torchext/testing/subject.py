# SPDX-License-Identifier: BSD-3-Clause
"""One operator under test: its calls, and what it does as a function of tensors."""

from __future__ import annotations

import contextlib
import copy
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch.utils import _pytree as pytree

from . import cuda_on_host
from .calls import Call, out_arguments, tensors_of, written_arguments
from .facts import Facts, overload_of
from .samples import Origin, Sample, call_of, samples_of
from .variations import Variations, variations_of

# Every dtype that is tried, in the order in which a check that needs one takes it.
DTYPES = (
    torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.complex64, torch.complex128,
    torch.int64, torch.int32, torch.uint8, torch.bool, torch.int8, torch.int16, torch.uint16,
    torch.uint32, torch.uint64, torch.complex32, torch.float8_e4m3fn, torch.float8_e5m2,
)  # fmt: skip
WIDE_DTYPES = (torch.float64, torch.complex128)
_COARSE_DTYPES = (torch.float32, torch.complex64)
# The combinations of them that are tried for what an operator writes to.
_MOST_DTYPES = 500
# Where a kernel of an operator's own stands for every device; that of a structured operator
# computes sizes and calls the out= form.
_COMPOSITE_KEYS = ("CompositeExplicitAutograd", "CompositeImplicitAutograd")
_STRUCTURED_KEY = "CompositeExplicitAutogradNonFunctional"

_TAGS_OF_VALUES = {torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output}


class NotApplicable(Exception):
    """Raised by a check that has nothing to check of an operator; says why."""


class Unavailable(NotApplicable):
    """Raised by a check that this machine, or another check that failed, keeps from running."""


class Refused(Exception):
    """Raised by a check where the operator itself refuses, by name, what is checked."""


@dataclass
class Subject:
    """An operator, what its spec says of it, the samples that its checks run on, and the device."""

    facts: Facts
    device: torch.device = torch.device("cpu")  # noqa: RUF009  # a value
    is_varied: bool = True  # whether samples that differ in one argument are looked for
    recorded: Callable[[str], list[Sample]] = lambda _: []  # what others call the operator with

    @cached_property
    def _samples(self) -> tuple[list[Sample], Origin]:
        return samples_of(self.facts, self.recorded(self.facts.name))

    @cached_property
    def samples(self) -> list[Sample]:
        """What the checks run on."""
        return self._samples[0]

    @property
    def origin(self) -> Origin:
        """Where the operator's samples are from."""
        return self._samples[1]

    def with_samples(self, samples: list[Sample]) -> Subject:
        """The same subject, with what has been found out of it, on other samples."""
        self.taken  # noqa: B018  which is of the operator, and not of these samples
        other = copy.copy(self)
        other.samples = samples
        return other

    @cached_property
    def overload(self) -> torch._ops.OpOverload:
        """The operator."""
        return self.facts.overload

    @cached_property
    def functional(self) -> torch._ops.OpOverload | None:
        """The functional form of an in-place or out= form."""
        name = self.facts.functional
        if name is None:
            return None
        overload = overload_of(self.facts.namespace, name)
        return overload if _has_kernel(overload, self.device) else None  # `autogen:` may have none

    @cached_property
    def writes(self) -> list[str]:
        """The names of the arguments that the operator writes to."""
        return [a.name for a in written_arguments(self.overload)]

    @cached_property
    def returns_views(self) -> bool:
        """Whether its results are views, which not every layout of its arguments has."""
        returned = self.overload._schema.returns
        return any(r.alias_info is not None and not r.alias_info.is_write for r in returned)

    def refuses(self, call: Call) -> bool:
        """Whether a call is one for a view that there is not, as Tensor.view says it."""
        if not self.returns_views:
            return False
        try:
            self.run(call)
        except RuntimeError:
            return True
        return False

    @cached_property
    def outs(self) -> list[str]:
        """The names of the arguments of an out= form that results are written to."""
        return [a.name for a in out_arguments(self.overload)]

    @cached_property
    def is_random(self) -> bool:
        """Whether a call draws random numbers, so that two calls differ."""
        return torch.Tag.nondeterministic_seeded in self.overload.tags

    @cached_property
    def depends_on_values(self) -> bool:
        """Whether sizes or numbers that it returns depend on values, which Meta does not have."""
        return self.facts.dynamic_sizes or bool(_TAGS_OF_VALUES & set(self.overload.tags))

    @cached_property
    def variations(self) -> Variations:
        """Samples that differ from the operator's in one argument."""
        return variations_of(self) if self.is_varied else Variations()

    def runs_on(self, device: torch.device) -> bool:
        """Whether there is a kernel that the device can run, its own or a fallback."""
        return _has_kernel(self.overload, device)

    @cached_property
    def runs_on_meta(self) -> bool:
        """Whether there is a Meta kernel, of its own or a composite one: where there is none torch
        has one that refuses."""
        has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
        keys = ("Meta", *_COMPOSITE_KEYS, _STRUCTURED_KEY)
        return any(has_kernel(self.overload.name(), key) for key in keys)

    @cached_property
    def claims(self) -> dict[str, list[str]]:
        """What `dtypes:` says for the device: names of dtypes by argument."""
        own = self.own_kernel
        if self.runs_cuda_on_host:
            own = "CUDA"  # whose kernels these are
        return self.facts.claims(*([own] if own else [_STRUCTURED_KEY, "CPU"]))

    @property
    def runs_cuda_on_host(self) -> bool:
        """Whether the kernel that runs on the device is that for CUDA, on the host."""
        stands_for_cuda = cuda_on_host.stands_for_cuda(self.facts.namespace)
        return stands_for_cuda and self.own_kernel == "PrivateUse1"

    @cached_property
    def own_kernel(self) -> str | None:
        """The dispatch key of the kernel that runs on the device; None where it is the CPU's."""
        key = _key_of(self.device)
        keys = [k for k in (key, *_COMPOSITE_KEYS) if k not in self.facts.cpu_fallback]
        has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
        own = (k for k in keys if has_kernel(self.overload.name(), k))
        return next(own, key if key == "CPU" else None)

    @cached_property
    def held(self) -> list[torch.dtype]:
        """The dtypes that the device has tensors of."""
        return [dtype for dtype in DTYPES if _holds(self.device, dtype)]

    @cached_property
    def is_autocast(self) -> bool:
        """Whether there is a kernel that casts the arguments on the device."""
        has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
        return has_kernel(self.overload.name(), f"Autocast{_key_of(self.device)}")

    def is_claimed(self, call: Call, claims: dict[str, list[str]]) -> bool:
        """Whether every tensor of a call has a dtype that is claimed for it."""
        return all(
            str(t.dtype).removeprefix("torch.") in claims[name]
            for name, t in call.named_tensors
            if name in claims
        )

    @cached_property
    def taken(self) -> list[torch.dtype]:
        """The dtypes that the operator takes: those of `dtypes:`, or, without, those it runs in."""
        return [dtype for dtype in self.held if any(map(self._takes, self.in_dtype(dtype)))]

    def _takes(self, call: Call) -> bool:
        if not self.is_claimed(call, self.claims):
            return False
        is_known = self.claims and all(name in self.claims for name, _ in call.named_tensors)
        return is_known or self._runs(call)

    def _runs(self, call: Call) -> bool:
        try:
            self.run(call)
        except Exception:  # in its own words
            return False
        return True

    @property
    def dtype(self) -> torch.dtype:
        """The dtype that checks run in where any will do."""
        return self.taken[0] if self.taken else torch.float32

    @property
    def wide_dtype(self) -> torch.dtype:
        """The dtype of checks that compare values computed in another order."""
        return next((dtype for dtype in WIDE_DTYPES if dtype in self.taken), self.dtype)

    @property
    def differentiated(self) -> list[torch.dtype]:
        """The dtypes of finite differences: the wide ones that the operator takes, or those of half
        the width where it takes none."""
        wide = [dtype for dtype in WIDE_DTYPES if dtype in self.taken]
        return wide or [dtype for dtype in _COARSE_DTYPES if dtype in self.taken]

    def in_dtype(self, dtype: torch.dtype) -> list[Call]:
        """The calls of all samples that have a tensor without a dtype of its own, in a dtype; an
        in-place form may have no room for its result there."""
        calls = [self.call(sample, dtype, seed) for seed, sample in enumerate(self.samples)]
        free = [any(n not in c.fixed_dtypes for n, _ in c.named_tensors) for c in calls]
        if not any(free):
            return calls  # every dtype is as good
        return [call for call, is_free in zip(calls, free) if is_free]

    def calls(self, dtype: torch.dtype | None = None) -> list[Call]:
        """The calls of all samples that the operator takes; without out= tensors."""
        dtype = self.dtype if dtype is None else dtype
        calls = [self.call(sample, dtype, seed) for seed, sample in enumerate(self.samples)]
        return [call for call in calls if self.fits(call)]

    def call(self, sample: Sample, dtype: torch.dtype | None = None, seed: int = 0) -> Call:
        """The call of one sample."""
        dtype = self.dtype if dtype is None else dtype
        return call_of(self.facts, sample, dtype, seed, self.device)

    def fits(self, call: Call) -> bool:
        """Whether what is written in place has the size of the functional result, and its dtype or
        one that the operator casts it to."""
        in_place = [name for name in self.writes if name not in self.outs]
        changes_sizes = torch.Tag.inplace_view in self.overload.tags
        if not in_place or self.functional is None or changes_sizes:
            return True
        own = [t for name, t in call.named_tensors if name in in_place]
        results = tensors_of(call.on(self.functional).run())[: len(own)]
        if [t.shape for t in own] != [r.shape for r in results]:
            return False
        if [t.dtype for t in own] == [r.dtype for r in results]:
            return True
        return all(torch.can_cast(r.dtype, t.dtype) for t, r in zip(own, results)) and (
            self._runs(call)
        )

    def with_outs(
        self, call: Call, make: Callable[[torch.Tensor], torch.Tensor] = torch.ones_like
    ) -> Call:
        """The call with out= tensors, made from the functional results; by default they hold
        something else."""
        if not self.outs:
            return call
        if self.functional is None:
            results = self._written_outs(call)
        else:
            returned = call.on(self.functional).run()
            results = [returned] if len(self.outs) == 1 else list(returned)
        made = pytree.tree_map_only(torch.Tensor, make, results)
        return call.with_arguments({**call.arguments, **dict(zip(self.outs, made))})

    def _written_outs(self, call: Call) -> list[torch.Tensor]:
        """What the operator writes to out= tensors without elements, of the first dtypes that it
        takes: there is no functional form that says which."""
        types = [str(a.type) for a in out_arguments(self.overload)]
        assert not any("List" in t for t in types), (
            "an out= form without a functional form that writes to a list: nothing says how long"
        )
        first = [*call.tensors, torch.empty(0, device=self.device)][0]
        own = [dtype for t in call.tensors for dtype in (t.dtype, t.dtype.to_real())]
        dtypes = list(dict.fromkeys([*own, *self.held]))
        refusal = None
        several_dtypes = itertools.product(dtypes, repeat=len(self.outs))
        for several in itertools.islice(several_dtypes, _MOST_DTYPES):
            outs = [first.new_empty(0, dtype=dtype) for dtype in several]
            given = call.map_tensors(torch.clone)  # it may write to more than the out= tensors
            try:
                given.with_arguments({**given.arguments, **dict(zip(self.outs, outs))}).run()
            except (RuntimeError, TypeError, ValueError) as error:
                refusal = refusal or error  # that of its own dtype says most
                continue
            return outs
        raise refusal

    def function(
        self,
        call: Call,
        takes_outs: bool = False,
        copy: Callable[[torch.Tensor], torch.Tensor] = torch.clone,
    ) -> Callable[..., tuple[torch.Tensor, ...]]:
        """What the call does, as a function of `call.tensors` that leaves its arguments alone and
        draws the same random numbers each time.

        It returns the tensors that the operator returns, and then those that it writes to, which
        are copies. With takes_outs it is given the out= tensors last; otherwise it makes them.
        """
        return self.seeded(call, self.traceable(call, takes_outs, copy))

    def seeded(self, call: Call, function: Callable) -> Callable:
        """A function that calls the operator, with the generators that it draws from in the same
        state each time."""
        if not self.is_random:
            return function
        leaves = pytree.tree_leaves(call.arguments)
        generators = [leaf for leaf in leaves if isinstance(leaf, torch.Generator)]

        def seeded(*arguments):
            seed_generators(self.device)
            for generator in generators:
                generator.manual_seed(generator.initial_seed())
            return function(*arguments)

        return seeded

    def returned(self, call: Call) -> list[torch.Tensor]:
        """The tensors that the call itself returns, which writes to its own arguments."""
        return self.seeded(call, lambda: tensors_of(call.run()))()

    def traceable(
        self,
        call: Call,
        takes_outs: bool = False,
        copy: Callable[[torch.Tensor], torch.Tensor] = torch.clone,
    ) -> Callable[..., tuple[torch.Tensor, ...]]:
        """`function` for torch.compile: random numbers are those of the generators' states."""
        call.announce()
        # Values of which torch.compile knows everything: it traces `pure`.
        given = self.with_outs(call)
        leaves, spec = pytree.tree_flatten((given.args, given.kwargs))
        places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        names = [name for name, _ in given.named_tensors]
        is_out = [name in self.outs for name in names]
        is_written = [name in self.writes for name in names]
        sizes = [(t.shape, t.dtype) for t in given.tensors]
        overload, own_device = self.overload, self.device

        def pure(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
            inputs, filled, written = list(tensors), list(leaves), []
            for index, place in enumerate(places):
                if is_out[index] and not takes_outs:
                    shape, dtype = sizes[index]
                    device = tensors[0].device if tensors else own_device
                    filled[place] = torch.ones(shape, dtype=dtype, device=device)
                else:
                    tensor = inputs.pop(0)
                    filled[place] = copy(tensor) if is_written[index] else tensor
                if is_written[index]:
                    written.append(filled[place])
            args, kwargs = pytree.tree_unflatten(filled, spec)
            returned = tensors_of(overload(*args, **kwargs))
            return tuple([*returned, *(t for t in written if not _is_among(t, returned))])

        return pure

    def run(self, call: Call) -> tuple[torch.Tensor, ...]:
        """What `function` returns on the call's own tensors."""
        return self.function(call)(*call.tensors)

    @contextlib.contextmanager
    def refusing_fallback(self) -> Iterator[None]:
        """Raise Refused where the CPU fallback says why it cannot run the operator."""
        try:
            yield
        except NotImplementedError as error:
            if "cannot fall back to the CPU" not in str(error):
                raise
            raise Refused(str(error).splitlines()[0]) from error

    def refuse_random(self) -> None:
        """Leave a check of which the two sides draw in another order."""
        if self.is_random:
            raise NotApplicable("it draws random numbers, in an order of its own")

    @property
    def may_have_gradients(self) -> bool:
        """Whether formulas, parts or kernels of its own say how it differentiates."""
        facts = self.facts
        return bool(facts.gradients or facts.composite or facts.own_autograd)

    def differentiable(self, call: Call) -> list[bool]:
        """For each of the call's tensors whether gradients flow to it; to none where a result is
        given by a keyword."""
        names = set(self.facts.gradients) or set(call.arguments)
        written = [a.name for a in written_arguments(self.overload) if a.kwarg_only]
        gives_out = any(call.arguments.get(name) is not None for name in written)
        if self.outs or gives_out or not self.may_have_gradients:
            names = set()
        return [
            name in names and name not in call.without_gradient and has_gradient(tensor)
            for name, tensor in call.named_tensors
        ]

    def calls_with_gradient(self, dtype: torch.dtype) -> Iterator[Call]:
        """The calls whose differentiable tensors of the wide dtypes require grad, and where there
        are some of half the width, with those too: finite differences are coarse in these, and say
        nothing in the others. A tensor with a dtype of its own is given a wide one where the
        operator takes it."""
        for call in self.calls(dtype):
            flags = self.differentiable(call)
            pairs = list(zip(call.tensors, flags))
            widened = call.with_tensors(_wide(t) if flag else t for t, flag in pairs)
            if self._takes(widened):
                call = widened
            chosen = [
                tuple(flag and t.dtype in dtypes for t, flag in zip(call.tensors, flags))
                for dtypes in (WIDE_DTYPES, (*WIDE_DTYPES, *_COARSE_DTYPES))
            ]
            for several in filter(any, dict.fromkeys(chosen)):
                pairs = zip(call.tensors, several)
                yield call.with_tensors(t.detach().requires_grad_(flag) for t, flag in pairs)


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


def fork_rng(device: torch.device) -> contextlib.AbstractContextManager[None]:
    """Keep the state of the CPU's generator, and of the device's."""
    if device.type == "cpu":
        return torch.random.fork_rng(devices=[])
    return torch.random.fork_rng(devices=[device], device_type=device.type)


def seed_generators(device: torch.device) -> None:
    """Seed the default generators of the CPU and of the device."""
    torch.default_generator.manual_seed(0)
    if device.type != "cpu":
        module = torch.get_device_module(device)
        with getattr(module, "device", contextlib.nullcontext)(device):
            module.manual_seed(0)


def _has_kernel(overload: torch._ops.OpOverload, device: torch.device) -> bool:
    has_kernel = torch._C._dispatch_has_computed_kernel_for_dispatch_key
    return has_kernel(overload.name(), _key_of(device))


def _holds(device: torch.device, dtype: torch.dtype) -> bool:
    try:
        torch.empty(0, dtype=dtype, device=device)
    except (RuntimeError, TypeError):
        return False
    return True


def _key_of(device: torch.device) -> str:
    """The dispatch key of kernels for a device."""
    return torch._C._dispatch_key_for_device(device.type)


def _is_among(tensor: torch.Tensor, tensors: list[torch.Tensor]) -> bool:
    return any(tensor is other for other in tensors)


def has_gradient(tensor: torch.Tensor) -> bool:
    """Whether a tensor's dtype allows a gradient."""
    return tensor.is_floating_point() or tensor.is_complex()
