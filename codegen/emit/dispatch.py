# SPDX-License-Identifier: BSD-3-Clause
"""dispatch_<shard>.cpp: the kernels of every dispatch key, device kernels in wrappers.

The blocks of CUDA keys are compiled where CUDA is; `cpu_fallback` is registered everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..cpp.folding import packed
from ..cpp.template import fill
from ..output import File, banner
from ..plan.calls import DeclaredForm
from ..plan.kernels import Autocast, Boxed, KernelPlan
from ..plan.library import OperatorPlan, Plan
from .spelling.forms import form_text
from .spelling.headers import kernels_includes, ops_includes
from .spelling.wrappers import DtypeSets, registered, wrapper_text

_SOURCE = """
$banner
#include <$namespace/library.h>
$runtime

$includes

namespace torchext::generated::$namespace {
namespace {

$namespaces
$dtypes
$blocks

} // namespace
} // namespace torchext::generated::$namespace
"""

_BLOCK = """
$begin
$wrappers
$macro($arguments) {
$impls
}
$end
"""

_BOXED = "torch::CppFunction::makeFromBoxedFunction<&{}>()"
_POLICIES = {
    "lower_precision_fp": "kLowerPrecisionFp", "fp32": "kFp32", "promote": "kPromote",
}  # fmt: skip
_FALLBACKS = {
    Boxed.CPU_FALLBACK: "",
    Boxed.CPU_FALLBACK_OF_ANY: "RandomNumbers::kRefused, DeviceCheck::kNone",
}

# the headers of torchext that a shard includes -> whether a kernel needs it
_RUNTIME: dict[str, Callable[[KernelPlan], object]] = {
    "generated/argument_checks": lambda kernel: kernel.required or kernel.lengths,
    "generated/autocast": lambda kernel: isinstance(kernel.runs, Autocast),
    "cpu_fallback": lambda kernel: kernel.falls_back,
    "generated/device": lambda kernel: True,
    "generated/expected_results": lambda kernel: kernel.expected,
    "generated/dtypes": lambda kernel: kernel.dtype_checks,
    "generated/fixed_list": lambda kernel: any(check.takes_one for check in kernel.lengths),
    "generated/private_operators": lambda kernel: kernel.speaks_for,
    "generated/math_bits": lambda kernel: kernel.runs is Boxed.WITHOUT_BIT,
    "generated/layout": lambda kernel: kernel.laid_out,
    "generated/structured": lambda kernel: kernel.structured,
    "generated/view_geometry": lambda kernel: kernel.author and kernel.author.viewed,
}


def _headers(shard: list[OperatorPlan]) -> list[str]:
    """The headers of torchext's that the kernels of a shard need."""
    kernels = [kernel for op in shard for kernel in op.kernels]
    found = {header for header, is_used in _RUNTIME.items() if any(map(is_used, kernels))}
    forms = (k.declared_form for k in kernels if k.declared_form)
    return sorted(found | {f"generated/{form.header}" for form in forms})


def emit(plan: Plan) -> Iterator[File]:
    """One source for each shard, with one block for each dispatch key in it."""
    for index in range(plan.shards):
        shard = [op for op in plan.shard(index) if op.kernels]
        if not shard:
            continue
        groups = {op.group for op in shard if any(map(_calls_kernel, op.kernels))}
        structured = [op for op in shard if any(k.structured for k in op.kernels)]
        called = {op.group for op in structured if any(map(_calls_out, op.kernels))}
        has_rules = any(_has_rule(kernel) for op in shard for kernel in op.kernels)
        sets = _dtype_sets(shard)
        shared = [
            wrapper_text(plan.namespace, op, wrapper, sets)
            for op in shard
            for wrapper in op.wrappers
            if wrapper.is_shared
        ]
        blocks = [_block(*item) for item in _blocks(plan.namespace, shard, sets).items()]
        text = fill(
            _SOURCE,
            banner=banner(__name__, plan.specs),
            namespace=plan.namespace,
            runtime=[f"#include <torchext/{header}.h>" for header in _headers(shard)],
            includes=[
                *kernels_includes(plan, groups),
                *ops_includes(plan, called),
                *([f"#include <{plan.namespace}/rules_{index}.h>"] if has_rules else []),
            ],
            dtypes=[*(_dtype_set(name, taken) for taken, name in sets.items()), *[""][: len(sets)]],
            namespaces=_own_namespaces(plan.namespace, shard),
            blocks="\n".join([*shared, *blocks]).rstrip(),
        )
        yield File(f"src/dispatch_{index}.cpp", text, "part")


def _own_namespaces(namespace: str, shard: list[OperatorPlan]) -> list[str]:
    """What wrappers call an author's kernels and meta functions by, where they stand in the
    library's namespace."""
    kernels = [kernel for op in shard for kernel in op.kernels]
    calls = [kernel.structured for kernel in kernels if kernel.structured]
    names = [kernel.author.function for kernel in kernels if kernel.author]
    names += [call.kernel_function or call.meta_class for call in calls]
    lines = [
        f"namespace {part} = ::{namespace}::{part};"
        for part in ("native", "meta")
        if any(name.startswith(f"{namespace}::{part}::") for name in names)
    ]
    return [*lines, ""] if lines else []


def _dtype_sets(shard: list[OperatorPlan]) -> DtypeSets:
    checks = (check for op in shard for kernel in op.kernels for check in kernel.dtype_checks)
    found = dict.fromkeys(check.dtypes for check in checks)
    return {taken: f"dtypes_{index}" for index, taken in enumerate(found)}


def _dtype_set(name: str, taken: tuple[str, ...]) -> str:
    return f"constexpr Dtypes {name}{{{packed(f'at::k{dtype}' for dtype in taken)}}};"


def _calls_kernel(kernel: KernelPlan) -> bool:
    return bool(kernel.author or kernel.structured)


def _calls_out(kernel: KernelPlan) -> bool:
    return bool(kernel.structured and kernel.structured.out_handle)


def _has_rule(kernel: KernelPlan) -> bool:
    return bool(kernel.expected or (kernel.structured and kernel.structured.has_rule))


@dataclass(frozen=True)
class _Block:
    """Kernels that are registered for some dispatch keys."""

    impls: tuple[str, ...]
    wrappers: tuple[str, ...]  # the functions in their places that serve no other key
    needs_cuda: bool  # compiled only where CUDA is
    owner: str | None  # whose operators they are, where another namespace defines them


def _blocks(namespace: str, shard: list[OperatorPlan], sets: DtypeSets) -> dict[_Block, list[str]]:
    """What is registered, and for which keys: one block where several have the same."""
    by_key: dict[tuple[str, bool, str | None], list[tuple[OperatorPlan, KernelPlan]]] = {}
    for op in shard:
        for kernel in op.kernels:
            owner = op.override.namespace if op.override else None
            by_key.setdefault((kernel.key, kernel.needs_cuda, owner), []).append((op, kernel))
    found: dict[_Block, list[str]] = {}
    for (key, needs_cuda, owner), kernels in by_key.items():
        impls = tuple(_impl(namespace, op, kernel) for op, kernel in kernels)
        wrappers = tuple(
            wrapper_text(namespace, op, wrapper, sets)
            for op, kernel in kernels
            if (wrapper := op.wrapper_of(kernel)) and not wrapper.is_shared
        )
        found.setdefault(_Block(impls, wrappers, needs_cuda, owner), []).append(key)
    return found


def _block(block: _Block, keys: list[str]) -> str:
    return fill(
        _BLOCK,
        begin=["#ifdef TORCHEXT_WITH_CUDA"] if block.needs_cuda else [],
        wrappers="\n".join(block.wrappers).rstrip("\n") + "\n" if block.wrappers else [],
        macro="TORCHEXT_OVERRIDE_IMPL" if block.owner else "TORCHEXT_LIBRARY_IMPL",
        arguments=[
            "m",
            *([f'"{block.owner}"'] if block.owner else []),
            *(f"DispatchKey::{key}" for key in keys),
        ],
        impls=list(block.impls),
        end=["#endif // TORCHEXT_WITH_CUDA"] if block.needs_cuda else [],
    )


def _impl(namespace: str, op: OperatorPlan, kernel: KernelPlan) -> str:
    name = op.operator.name
    match kernel.runs:
        case Boxed.FALLTHROUGH:
            function = "torch::CppFunction::makeFallthrough()"
        case Boxed.WITHOUT_BIT:
            function = f"without_bit(c10::DispatchKey::{kernel.key})"
        case Boxed() as fallback:
            function = _BOXED.format(f"::torchext::cpu_fallback<{_FALLBACKS[fallback]}>")
        case Autocast(policy, device):
            function = f"autocast_kernel(AutocastPolicy::{_POLICIES[policy]}, at::k{device})"
        case DeclaredForm() as form:
            function = form_text(namespace, form)
        case _:
            function = _function(namespace, op, kernel)
    return f'  m.impl("{name}", {function});'


def _function(namespace: str, op: OperatorPlan, kernel: KernelPlan) -> str:
    """An author's function, or the generated one in its place."""
    if kernel.signature is None:
        return _BOXED.format(f"::{kernel.own}")
    if (wrapper := op.wrapper_of(kernel)) is not None:
        return registered(namespace, wrapper, kernel.key)
    if kernel.is_overloaded:
        return f"static_cast<{kernel.signature.pointer}>(&::{kernel.own})"
    return f"&::{kernel.own}"
