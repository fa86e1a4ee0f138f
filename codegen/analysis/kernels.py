# SPDX-License-Identifier: BSD-3-Clause
"""Which kernels an operator has: those of its `dispatch:`, and those that are generated."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from ..cpp import names as cpp_names
from ..errors import Errors
from ..plan.kernels import AuthorKernel, Autocast, Boxed, KernelPlan, WrittenMeta
from ..spec.dispatch_keys import BACKENDS, COMPOSITE_KEYS, is_guarded, needs_cuda
from ..spec.model import FALLBACK, DispatchEntry, Operator
from .argument_checks import with_argument_checks
from .dtypes import check_dtypes, with_dtype_checks
from .forms import Forms
from .layouts import check_layout, laid_out, returned
from .rule_calls import expected, has_ruled_results, rule_kernels, takes_results
from .rules import allocates
from .signatures import checked_tensors, guarded_parameters, optional_tensors, signature_of
from .structured import Group, is_structured_kernel
from .structured_calls import structured_kernels

_BATCHED, _UNDER_VMAP = "FuncTorchBatchedDecomposition", "FuncTorchVmapMode"
_LEGACY_BATCHED = "Batched"
_MATH_BITS = ("Conjugate", "Negative")
# Dispatch keys of autocast, and the type of device whose settings they follow.
_AUTOCAST = {"AutocastCPU": "CPU", "AutocastCUDA": "CUDA", "AutocastPrivateUse1": "PrivateUse1"}


def falls_back(key: str, kernels: Iterable[KernelPlan], called: Iterable[Operator | None]) -> bool:
    """Whether a dispatch key ends in `cpu_fallback`: by an operator's own kernel, or where it has
    none for the key, by that of an operator that its generated kernel calls."""
    own = [kernel for kernel in kernels if kernel.key == key]
    if own:
        return any(kernel.falls_back for kernel in own)
    entries = [entry for op in called if op for entry in op.dispatch or ()]
    return any(entry.key == key and entry.kernel == FALLBACK for entry in entries)


def kernels_of(
    namespace: str, operator: Operator, group: Group | None, forms: Forms, errors: Errors
) -> tuple[KernelPlan, ...]:
    """The kernels of an operator; group: that of a structured one."""
    check_layout(operator, errors)
    check_dtypes(operator, errors)
    if operator.manual_kernel_registration:
        if operator.dispatch is not None:
            message = "'manual_kernel_registration' and 'dispatch' exclude each other"
            errors.add(operator.location, message)
        return ()
    entries = _entries(operator)
    generated: tuple[KernelPlan, ...] = ()
    source = _rule_source(operator)
    if source is not None:
        generated = rule_kernels(namespace, operator, source)
        if not allocates(source):
            entries = [e for e in entries if not takes_results(e)] + _fallbacks(operator, source)
        elif operator is not source and (form := forms.declared(operator)) is not None:
            generated += (KernelPlan("CompositeExplicitAutograd", form),)
    elif group is not None:
        signature = signature_of(operator)
        assert signature is not None  # StructuredAnalysis asked
        generated = structured_kernels(group, operator, signature)
        if operator is not group.out:
            entries += _fallbacks(operator, group.out)
    elif (form := forms.declared(operator)) is not None:
        generated = (KernelPlan("CompositeExplicitAutograd", form),)
    generated += _autocast(operator, errors)
    keys = {entry.key for entry in (*entries, *generated)}
    _check_dispatch(operator, entries, keys, errors)
    computing = (*generated, *(_kernel(namespace, operator, entry) for entry in entries))
    computing = with_dtype_checks(source or (group.out if group else operator), computing)
    kernels = tuple(with_argument_checks(operator, computing))
    kernels += _written_meta(namespace, operator, keys)
    is_traced = forms.traced(operator) is not None
    batched = _legacy_batched(operator, kernels)
    lazy = _math_bits(operator, kernels)
    return (*kernels, *_decompositions(operator, kernels, is_traced), *batched, *lazy)


def speaking(kernels: Iterable[KernelPlan]) -> tuple[KernelPlan, ...]:
    """The kernels of an operator that users call, whose composite ones speak for private operators
    of the library: these may be what they call."""
    return tuple(
        dataclasses.replace(kernel, speaks_for=True) if _may_call(kernel) else kernel
        for kernel in kernels
    )


def _may_call(kernel: KernelPlan) -> bool:
    """Whether an author's function runs that calls operators by the dispatcher."""
    call, author = kernel.structured, kernel.author
    is_own = author or (call and (call.kernel_function or call.runs_impl))
    is_composite = kernel.key in COMPOSITE_KEYS or (author and not author.is_declared)
    return bool(is_own and is_composite and kernel.signature)


def _math_bits(operator: Operator, kernels: tuple[KernelPlan, ...]) -> Iterator[KernelPlan]:
    """What stands on the keys of lazy conjugation and the like where torch's fallbacks do not do:
    they would write the values of a copy to what an operator makes a view of itself (for ATen's
    in-place views they are passed by too), take one tensor that is written to, which is the first
    result, and leave lists of tensors that may be missing as they are."""
    own = {kernel.key for kernel in kernels}
    passes, func = operator.is_inplace_view, operator.func
    written = func.written_results[:1] if len(func.mutated) == 1 else ()
    is_first = any(a is not None and a.type.name != "List" for a in written)
    has_gaps = any(a.type.bare().plain == "Tensor?[]" for a in func.arguments)
    writes = bool(func.mutated) and not func.is_view and not is_first and not func.is_vararg
    if passes or writes or (has_gaps and not func.is_view):
        for key in (*_MATH_BITS, "ZeroTensor") if passes else _MATH_BITS:
            if key not in own:
                yield KernelPlan(key, Boxed.FALLTHROUGH if passes else Boxed.WITHOUT_BIT)


def _written_meta(namespace: str, operator: Operator, keys: set[str]) -> tuple[KernelPlan, ...]:
    """The Meta kernel of an operator that only writes to what it is given, and leaves its shape as
    it is; an out= form may resize, and a result that may be missing is new then."""
    func = operator.func
    is_given = all(a and a.type.name != "Optional" for a in func.written_results)
    resizes = func.is_out or operator.is_inplace_view
    if not func.mutated or not is_given or resizes or keys & {"Meta", *COMPOSITE_KEYS}:
        return ()
    signature = signature_of(operator)
    if signature is None:
        return ()
    runs = WrittenMeta(returned(operator, signature), expected(namespace, operator))
    checks = checked_tensors(operator, signature)
    kernel = KernelPlan("Meta", runs, signature, device_checks=checks)
    return tuple(with_argument_checks(operator, (kernel,)))


def _legacy_batched(operator: Operator, kernels: tuple[KernelPlan, ...]) -> Iterator[KernelPlan]:
    """The composite kernel that makes a view of a batch of tangents, as torch.autograd batches them
    (`is_grads_batched`), whose fallback takes no views."""
    own = {kernel.key for kernel in kernels}
    if operator.func.is_view and not operator.func.mutated and _LEGACY_BATCHED not in own:
        for kernel in kernels:
            if kernel.key == "CompositeExplicitAutograd":
                yield _on(_LEGACY_BATCHED, kernel, view_function="batched_view")


def _on(key: str, kernel: KernelPlan, **changes: str) -> KernelPlan:
    """An author's kernel of one key on another one too."""
    if kernel.author is None:
        return dataclasses.replace(kernel, key=key)
    runs = dataclasses.replace(kernel.author, is_declared=False, **changes)
    return dataclasses.replace(kernel, key=key, runs=runs)


def _decompositions(
    operator: Operator, kernels: tuple[KernelPlan, ...], is_traced: bool
) -> Iterator[KernelPlan]:
    """The composite kernels that run under vmap and torch.func.functionalize, where torch does not
    look for them by itself; is_traced: another form stands in for calls of the latter."""
    own = {kernel.key for kernel in kernels}
    for kernel in kernels:
        if kernel.key != "CompositeImplicitAutograd":
            continue
        if operator.vmap is None and not own & {_BATCHED, "FuncTorchBatched"}:
            yield _on(_BATCHED, kernel)
            is_alone = own == {"CompositeImplicitAutograd"}  # no autocast, no formula is above it
            if is_alone and not operator.func.is_out:
                # Where no argument is batched its parts may draw random numbers all the same.
                yield _on(_UNDER_VMAP, kernel)
        has_aliases = operator.func.mutated or operator.func.is_view
        if has_aliases and not is_traced and "Functionalize" not in own:
            yield _on("Functionalize", kernel)


def named_kernels(namespace: str, operator: Operator, errors: Errors) -> tuple[KernelPlan, ...]:
    """The kernels that an entry names for an operator that PyTorch defines, and nothing else."""
    check_layout(operator, errors)
    entries = operator.dispatch or ()
    # A key may fall back to PyTorch's own CPU kernel.
    _check_dispatch(operator, list(entries), {"CPU"}, errors)
    return tuple(_kernel(namespace, operator, entry) for entry in entries)


def _autocast(operator: Operator, errors: Errors) -> tuple[KernelPlan, ...]:
    """The kernels that cast the arguments of an operator with `autocast:`."""
    if operator.autocast is None:
        return ()
    if operator.func.mutated:
        message = "'autocast' would cast what the operator writes to"
        errors.add(operator.at("autocast"), message, "give it to the functional form")
    for entry in operator.dispatch or ():
        if entry.key in _AUTOCAST or entry.key == "Autocast":
            errors.add(entry.location, f"'autocast' has a kernel for {entry.key}")
    return tuple(
        KernelPlan(key, Autocast(operator.autocast, device)) for key, device in _AUTOCAST.items()
    )


def _entries(operator: Operator) -> list[DispatchEntry]:
    """The entries of `dispatch:` that name plain kernels."""
    if operator.origin or operator.structured or operator.structured_delegate is not None:
        return [e for e in operator.dispatch or () if not is_structured_kernel(operator, e)]
    if operator.dispatch is None:
        name = _default_kernel_name(operator)
        return [DispatchEntry("CompositeImplicitAutograd", name, operator.location)]
    return list(operator.dispatch)


def _rule_source(operator: Operator) -> Operator | None:
    """The entry whose `meta:` rules the operator, and whose kernels are given its results."""
    if has_ruled_results(operator):
        return operator
    is_declared = operator.origin is not None and operator.func.is_out
    return operator.origin if is_declared and has_ruled_results(operator.origin) else None


def _fallbacks(operator: Operator, out: Operator) -> list[DispatchEntry]:
    """The keys on which the whole operator falls back, if the form does not say otherwise."""
    own = {e.key for e in operator.dispatch or () if operator is not out}
    return [e for e in out.dispatch or () if e.kernel == FALLBACK and e.key not in own]


def _default_kernel_name(operator: Operator) -> str:
    name = operator.func.name.base + ("_out" if operator.func.is_out else "")
    return cpp_names.identifier(name)


def _check_dispatch(
    operator: Operator, entries: list[DispatchEntry], keys: set[str], errors: Errors
) -> None:
    places = {entry.key: entry for entry in entries}
    for entry in entries:
        if entry.kernel == FALLBACK and "CPU" not in keys:
            message = f"'{FALLBACK}' for {entry.key} runs the CPU kernel, and there is none"
            errors.add(entry.location, message, "name a kernel for CPU")
        if not cpp_names.is_qualified(entry.kernel):
            errors.add(entry.location, f"a kernel cannot be called '{entry.kernel}' in C++")
        if entry.kernel == FALLBACK and (entry.key not in BACKENDS or entry.key in ("CPU", "Meta")):
            errors.add(entry.location, f"{entry.key} cannot fall back to the CPU")
        elif entry.kernel == FALLBACK and (why := _why_no_copies(operator)) is not None:
            message = f"'{operator.func.name}' cannot fall back to the CPU: {why}"
            errors.add(entry.location, message, f"name a kernel for {entry.key}")
    both = [k for k in ("CompositeImplicitAutograd", "CompositeExplicitAutograd") if k in places]
    if len(both) > 1:
        message = f"{both[0]} and {both[1]} exclude each other"
        hint = "an operator differentiates through its parts or by its own formula"
        errors.add(places[both[1]].location, message, hint)


def _why_no_copies(operator: Operator) -> str | None:
    """Why a call on copies of the arguments does not do what the operator does."""
    func = operator.func
    if func.is_view:
        return "it returns a view, and a copy's view shares no memory with it"
    if "inplace_view" in operator.tags:
        return "it changes sizes and strides of its argument in place"
    if not any(a.type.is_tensor_like for a in func.arguments):
        return "it makes tensors, and takes none that could be copied"
    if operator.draws_numbers:
        return "it draws random numbers, and the generator of the CPU is not that of the device"
    return None


def _kernel(namespace: str, operator: Operator, entry: DispatchEntry) -> KernelPlan:
    cuda = needs_cuda(entry.key)
    if entry.kernel == FALLBACK:
        is_free = operator.device_check == "NoCheck"
        return KernelPlan(entry.key, Boxed.CPU_FALLBACK_OF_ANY if is_free else Boxed.CPU_FALLBACK)
    function = cpp_names.kernel(namespace, entry.kernel)
    signature = signature_of(operator, symint=entry.takes_symint)
    if signature is None:
        return KernelPlan(entry.key, AuthorKernel(function), needs_cuda=cuda)
    guarded = is_guarded(entry.key)
    arguments = laid_out(operator, entry.key)
    runs = AuthorKernel(
        function,
        device_guard=guarded_parameters(operator, signature) if guarded else (),
        laid_out=arguments,
        returned=returned(operator, signature) if any(a.is_written for a in arguments) else None,
        optionals=optional_tensors(operator),
        expected=expected(namespace, operator),
        viewed=_viewed(operator) if entry.key != "CompositeImplicitAutograd" else (),
    )
    checks = checked_tensors(operator, signature) if guarded else ()
    return KernelPlan(entry.key, runs, signature, device_checks=checks, needs_cuda=cuda)


def _viewed(operator: Operator) -> tuple[str, ...]:
    """The parameters whose tensors the operator's only result is a view of."""
    func = operator.func
    if not func.is_view or len(func.returns) > 1:
        return ()
    sources = [a for a in func.arguments if a.is_returned_as(func.returns[0])]
    return tuple(cpp_names.parameter_name(a.name) for a in sources)
