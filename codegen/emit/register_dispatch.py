# SPDX-License-Identifier: BSD-3-Clause
"""dispatch_<shard>.cpp: the kernels of every dispatch key, device kernels in wrappers.

The blocks of CUDA keys are compiled where CUDA is; `cpu_fallback` is registered everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ..cpp.template import fill
from ..output import File, banner
from ..plan.library import KernelPlan, OperatorPlan, Plan, Signature
from .spelling.forms import form_text
from .spelling.lists import given, list_lines
from .spelling.structured import call_lines, layout_lines, write_back_lines

_SOURCE = """
$banner
#include <$namespace/library.h>
$runtime

$includes

namespace torchext::generated::$namespace {
namespace {

$dtypes
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

const bool registered_$key_$index = library().$add($arguments);
$end
"""

_WRAPPER = """
// $location: $schema
$prototype $tries{
$checks
$expected
$guard
$layouts
$call
}$catches

"""

_CATCHES = """ catch (const c10::Error& error) {
  name_caller("$name", error);
  throw;
}"""

_STRUCTURED = """
// $location: $schema
$prototype $tries{
$checks
$statements
}$catches

"""

_BOXED = "torch::CppFunction::makeFromBoxedFunction<&{}>()"

# the headers of torchext that a shard includes -> whether a kernel needs it
_RUNTIME: dict[str, Callable[[KernelPlan], object]] = {
    "argument_checks": lambda kernel: kernel.required or kernel.lengths,
    "autocast": lambda kernel: kernel.autocast,
    "cpu_fallback": lambda kernel: kernel.fallback,
    "device": lambda kernel: True,
    "expected_results": lambda kernel: kernel.expected,
    "dtypes": lambda kernel: kernel.dtype_checks,
    "fixed_list": lambda kernel: any(check.takes_one for check in kernel.lengths),
    "private_operators": lambda kernel: kernel.speaks_for,
    "math_bits": lambda kernel: kernel.is_without_bit,
    "layout": lambda k: k.laid_out or (k.structured and k.structured.laid_out),
    "structured_meta": lambda kernel: kernel.structured,
    "view_geometry": lambda kernel: kernel.viewed,
}


def _headers(shard: list[OperatorPlan]) -> list[str]:
    """The headers of torchext's that the kernels of a shard need."""
    kernels = [kernel for op in shard for kernel in op.kernels]
    found = {header for header, is_used in _RUNTIME.items() if any(map(is_used, kernels))}
    return sorted(found | {k.declared_form.header for k in kernels if k.declared_form})


def emit(plan: Plan) -> Iterator[File]:
    """One source for each shard, with one block for each dispatch key in it."""
    for index in range(plan.shards):
        shard = [op for op in plan.shard(index) if op.kernels]
        if not shard:
            continue
        groups = sorted({op.group for op in shard if any(map(_calls_kernel, op.kernels))})
        structured = [op for op in shard if any(k.structured for k in op.kernels)]
        called = sorted({op.group for op in structured if any(map(_calls_out, op.kernels))})
        ruled = sorted({op.group for op in shard if any(map(_has_rule, op.kernels))})
        sets = _dtype_sets(shard)
        blocks = [_block(plan.namespace, index, sets, *item) for item in _by_key(shard).items()]
        text = fill(
            _SOURCE,
            banner=banner(__name__, plan.specs),
            namespace=plan.namespace,
            runtime=[f"#include <torchext/{header}.h>" for header in _headers(shard)],
            includes=[
                *(f"#include <{plan.namespace}/kernels/{group}.h>" for group in groups),
                *(f"#include <{plan.namespace}/ops/{group}.h>" for group in called),
                *(f"#include <{plan.namespace}/rules/{group}.h>" for group in ruled),
            ],
            dtypes=[*(_dtype_set(name, taken) for taken, name in sets.items()), *[""][: len(sets)]],
            blocks="\n".join(blocks).rstrip(),
        )
        yield File(f"src/dispatch_{index}.cpp", text, "part")


# sets of dtypes, each with the name of its constant
_DtypeSets = dict[tuple[str, ...], str]


def _dtype_sets(shard: list[OperatorPlan]) -> _DtypeSets:
    checks = (check for op in shard for kernel in op.kernels for check in kernel.dtype_checks)
    found = dict.fromkeys(check.dtypes for check in checks)
    return {taken: f"dtypes_{index}" for index, taken in enumerate(found)}


def _dtype_set(name: str, taken: tuple[str, ...]) -> str:
    dtypes = ", ".join(f"at::ScalarType::{dtype}" for dtype in taken)
    return f"constexpr Dtypes {name}{{{dtypes}}};"


def _calls_kernel(kernel: KernelPlan) -> bool:
    return bool(kernel.function or kernel.structured)


def _calls_out(kernel: KernelPlan) -> bool:
    return bool(kernel.structured and kernel.structured.out_handle)


def _has_rule(kernel: KernelPlan) -> bool:
    return bool(kernel.expected or (kernel.structured and kernel.structured.has_rule))


# a dispatch key, whether the block is compiled only where CUDA is, and whose operators they are
_Key = tuple[str, bool, str | None]
_Kernels = list[tuple[OperatorPlan, KernelPlan]]


def _by_key(shard: list[OperatorPlan]) -> dict[_Key, _Kernels]:
    found: dict[_Key, _Kernels] = {}
    for op in shard:
        for kernel in op.kernels:
            owner = op.override.namespace if op.override else None
            found.setdefault((kernel.key, kernel.needs_cuda, owner), []).append((op, kernel))
    return found


def _block(namespace: str, index: int, sets: _DtypeSets, key: _Key, kernels: _Kernels) -> str:
    enum, cuda, owner = key
    name = enum.lower() if cuda or not enum.endswith("CUDA") else f"{enum.lower()}_fallback"
    name = f"{owner}_{name}" if owner else name
    wrappers = [
        _wrapper(namespace, op, kernel, kernel.signature, sets)
        for op, kernel in kernels
        if kernel.signature and (kernel.is_wrapped or kernel.structured)
    ]
    return fill(
        _BLOCK.replace("$key", name),
        begin=["#ifdef TORCHEXT_WITH_CUDA"] if cuda else [],
        wrappers="\n".join(wrappers).rstrip("\n") + "\n" if wrappers else [],
        impls=[_impl(namespace, op, kernel) for op, kernel in kernels],
        add="override_kernels" if owner else "add",
        arguments=[
            f'"{owner}"' if owner else "torch::Library::IMPL",
            f"c10::DispatchKey::{enum}",
            f"&register_{name}_{index}",
        ],
        index=str(index),
        end=["#endif // TORCHEXT_WITH_CUDA"] if cuda else [],
    )


def _wrapper_name(op: OperatorPlan, kernel: KernelPlan) -> str:
    return f"{kernel.key.lower()}_{op.handle}"


def _wrapper(
    namespace: str,
    op: OperatorPlan,
    kernel: KernelPlan,
    signature: Signature,
    sets: _DtypeSets,
) -> str:
    name = f"{op.operator.name}" if op.override else f"{namespace}::{op.operator.name}"
    checks = _checks(name, kernel, signature, sets)
    catches = _CATCHES.replace("$name", name) if kernel.speaks_for else ""
    handler = {"tries": "try " if catches else "", "catches": catches}
    if kernel.structured:
        name = f"{namespace}::{op.operator.name.base}"
        return fill(
            _STRUCTURED,
            location=op.spec_line,
            schema=op.schema,
            prototype=given(signature, kernel.lengths).prototype(_wrapper_name(op, kernel)),
            checks=checks,
            statements=list(call_lines(name, kernel.structured, signature)),
            **handler,
        )
    guard = f"  const c10::OptionalDeviceGuard guard(device_of({kernel.device_guard}));"
    names = {name: f"or_missing({name})" for name in kernel.optionals}
    names |= {arg.parameter: arg.name for arg in kernel.laid_out}
    arguments = ", ".join(names.get(p.name, p.name) for p in signature.parameters)
    return fill(
        _WRAPPER,
        location=op.spec_line,
        schema=op.schema,
        prototype=given(signature, kernel.lengths).prototype(_wrapper_name(op, kernel)),
        checks=checks,
        expected=_expected(name, op, kernel),
        guard=[guard] if kernel.device_guard else [],
        layouts=list(layout_lines(name, kernel.laid_out)),
        call=list(_call(kernel, signature, f"::{kernel.function}({arguments})")),
        **handler,
    )


def _checks(name: str, kernel: KernelPlan, signature: Signature, sets: _DtypeSets) -> list[str]:
    """The statements that look at the arguments before anything is done with them."""
    checks = list(list_lines(signature, kernel.lengths))
    checks += [f'  check_defined("{name}", "{t.name}", {t.parameter});' for t in kernel.required]
    checks += [
        f'  check_length("{name}", "{c.argument}", {c.parameter}, {_numbers(c.lengths)});'
        for c in kernel.lengths
    ]
    checks += [f'  SameDevice same_device("{name}");'] if kernel.device_checks else []
    checks += [f'  same_device.check("{t.name}", {t.parameter});' for t in kernel.device_checks]
    checks += [
        f'  {sets[c.dtypes]}.check("{name}", "{c.argument}", {c.parameter});'
        for c in kernel.dtype_checks
    ]
    return checks


def _numbers(values: Iterable[int]) -> str:
    return ", ".join(map(str, values))


def _expected(name: str, op: OperatorPlan, kernel: KernelPlan) -> list[str]:
    """The statements that run the rule of a kernel that is not given its results."""
    rule = kernel.expected
    if rule is None:
        return []
    results = "".join(f', "{result}"' for result in rule.results)
    count = "kAnyNumber" if rule.is_list else len(rule.results)
    return [
        f'  Expected<::{rule.rule}, {count}> expected("{name}", "{op.spec_line}"{results});',
        f"  expected.meta({', '.join(rule.arguments)});",
    ]


def _call(kernel: KernelPlan, signature: Signature, call: str) -> Iterator[str]:
    """The statements that call the kernel, write copies back and return the results."""
    written_back = list(write_back_lines(kernel.laid_out))
    if not kernel.function:  # the Meta kernel of an operator that only writes
        if signature.result != "void":
            yield f"  return {kernel.returned.expression};"
        return
    if kernel.expected and kernel.expected.results:
        positions = _numbers(kernel.expected.positions)
        call = f"expected.checked<{positions}>({call})"
    for name in kernel.viewed:
        call = f"::torchext::{kernel.view_function}({call}, {name})"
    if not written_back:
        yield f"  return {call};"
    elif signature.result == "void":
        yield f"  {call};"
        yield from written_back
    else:
        own = kernel.returned.result
        yield f"  {f'decltype(auto) {own} = ' if own else ''}{call};"
        yield from written_back
        yield f"  return {kernel.returned.expression};"


def _impl(namespace: str, op: OperatorPlan, kernel: KernelPlan) -> str:
    name = op.operator.name
    if kernel.is_fallthrough:
        function = "torch::CppFunction::makeFallthrough()"
    elif kernel.is_without_bit:
        function = f"without_bit(c10::DispatchKey::{kernel.key})"
    elif kernel.fallback:
        function = _BOXED.format(f"::torchext::{kernel.fallback}")
    elif kernel.autocast:
        function = f"autocast_kernel({kernel.autocast})"
    elif kernel.declared_form:
        function = form_text(namespace, kernel.declared_form)
    elif kernel.signature is None:
        function = _BOXED.format(f"::{kernel.function}")
    elif kernel.is_wrapped or kernel.structured:
        function = f"TORCH_FN({_wrapper_name(op, kernel)})"
    elif kernel.is_overloaded:
        pointer = kernel.signature.type.replace("(", " (*)(", 1)
        function = f"TORCH_FN(static_cast<{pointer}>(&::{kernel.function}))"
    else:
        function = f"TORCH_FN(::{kernel.function})"
    return f'  m.impl("{name}", {function});'
