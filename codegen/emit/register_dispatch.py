# SPDX-License-Identifier: BSD-3-Clause
"""dispatch_<shard>.cpp: the kernels of every dispatch key, device kernels in wrappers.

The blocks of CUDA keys are compiled where CUDA is; `cpu_fallback` is registered everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..output import File, banner
from ..plan import KernelPlan, OperatorPlan, Plan, Signature
from ..template import fill

_SOURCE = """
$banner
#include <$namespace/library.h>
#include <torchext/cpu_fallback.h>
#include <torchext/device.h>

$includes

namespace torchext::generated::$namespace {
namespace {

$blocks

} // namespace
} // namespace torchext::generated::$namespace
"""

_BLOCK = """
$begin
$wrappers
void register_$key_$index(torch::Library& m) {
$impls
}

const bool $key_registered_$index = library().add($arguments);
$end
"""

_WRAPPER = """
// $location: $schema
$prototype {
$checks
$guard
  return ::$function($arguments);
}

"""

_BOXED = "torch::CppFunction::makeFromBoxedFunction<&{}>()"


def emit(plan: Plan) -> Iterator[File]:
    """One source for each shard, with one block for each dispatch key in it."""
    for index in range(plan.shards):
        shard = [op for op in plan.shard(index) if op.kernels]
        if not shard:
            continue
        groups = sorted({op.group for op in shard if any(k.function for k in op.kernels)})
        blocks = [_block(plan.namespace, index, *item) for item in _by_key(shard).items()]
        text = fill(
            _SOURCE,
            banner=banner(__name__, plan.specs),
            namespace=plan.namespace,
            includes=[f"#include <{plan.namespace}/kernels/{group}.h>" for group in groups],
            blocks="\n".join(blocks).rstrip(),
        )
        yield File(f"src/dispatch_{index}.cpp", text, "source")


_Key = tuple[str, bool]  # a dispatch key, and whether the block is compiled only where CUDA is
_Kernels = list[tuple[OperatorPlan, KernelPlan]]


def _by_key(shard: list[OperatorPlan]) -> dict[_Key, _Kernels]:
    found: dict[_Key, _Kernels] = {}
    for op in shard:
        for kernel in op.kernels:
            found.setdefault((kernel.key, kernel.needs_cuda), []).append((op, kernel))
    return found


def _block(namespace: str, index: int, key: _Key, kernels: _Kernels) -> str:
    enum, cuda = key
    name = enum.lower() if cuda or not enum.endswith("CUDA") else f"{enum.lower()}_fallback"
    wrappers = [
        _wrapper(namespace, op, kernel, kernel.signature)
        for op, kernel in kernels
        if kernel.is_wrapped and kernel.signature
    ]
    return fill(
        _BLOCK.replace("$key", name),
        begin=["#ifdef TORCHEXT_WITH_CUDA"] if cuda else [],
        wrappers="\n".join(wrappers).rstrip("\n") + "\n" if wrappers else [],
        impls=[_impl(op, kernel) for op, kernel in kernels],
        arguments=[
            "torch::Library::IMPL",
            f"c10::DispatchKey::{enum}",
            f"&register_{name}_{index}",
        ],
        index=str(index),
        end=["#endif // TORCHEXT_WITH_CUDA"] if cuda else [],
    )


def _wrapper_name(op: OperatorPlan, kernel: KernelPlan) -> str:
    return f"{kernel.key.lower()}_{op.handle}"


def _wrapper(namespace: str, op: OperatorPlan, kernel: KernelPlan, signature: Signature) -> str:
    checks = [f'  same_device.check("{t.name}", {t.parameter});' for t in kernel.device_checks]
    if checks:
        checks = [f'  SameDevice same_device("{namespace}::{op.operator.name}");', *checks]
    guard = f"  const c10::OptionalDeviceGuard guard(device_of({kernel.device_guard}));"
    return fill(
        _WRAPPER,
        location=op.spec_line,
        schema=op.schema,
        prototype=signature.prototype(_wrapper_name(op, kernel)),
        checks=checks,
        guard=[guard] if kernel.device_guard else [],
        function=kernel.function,
        arguments=signature.names,
    )


def _impl(op: OperatorPlan, kernel: KernelPlan) -> str:
    name = op.operator.name
    if kernel.is_fallback:
        function = _BOXED.format("cpu_fallback")
    elif kernel.signature is None:
        function = _BOXED.format(f"::{kernel.function}")
    elif kernel.is_wrapped:
        function = f"TORCH_FN({_wrapper_name(op, kernel)})"
    elif kernel.is_overloaded:
        pointer = kernel.signature.type.replace("(", " (*)(", 1)
        function = f"TORCH_FN(static_cast<{pointer}>(&::{kernel.function}))"
    else:
        function = f"TORCH_FN(::{kernel.function})"
    return f'  m.impl("{name}", {function});'
