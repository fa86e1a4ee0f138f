# SPDX-License-Identifier: BSD-3-Clause
"""The functions that are registered in the place of an author's kernels: what is checked before one
runs, what it is given and what becomes of its results.

Kernels of several keys that differ in nothing but the author's function share one, a template of it
and of where its tensors live.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ...cpp.template import fill
from ...plan.autograd import Tensors
from ...plan.library import KernelPlan, OperatorPlan, Signature
from .lists import given, list_lines
from .scope import Scope
from .structured import call_lines, layout_lines, write_back_lines

_WRAPPER = """
// $location: $schema
$parameters
$prototype $tries{
$checks
$statements
}$catches

"""

_CATCHES = """ catch (const c10::Error& error) {
  name_caller("$name", error);
  throw;
}"""

# sets of dtypes, each with the name of its constant
DtypeSets = dict[tuple[str, ...], str]


@dataclass(frozen=True)
class Wrapper:
    """A generated function, and the keys of the kernels whose places it takes."""

    name: str
    text: str
    arguments: dict[str, tuple[str, ...]]  # of its template, by key

    @property
    def is_shared(self) -> bool:
        return len(self.arguments) > 1

    def registered(self, key: str) -> str:
        """What is registered for a key."""
        arguments = self.arguments[key]
        if not arguments:
            return f"TORCH_FN({self.name})"
        return f"torch_fn<{self.name}<{', '.join(arguments)}>>"


@dataclass(frozen=True)
class _Varying:
    """What differs between kernels of several keys: its parameter in a template, and its value."""

    parameter: str
    value: str

    @property
    def name(self) -> str:
        return self.parameter.split()[-1]


def wrappers(namespace: str, op: OperatorPlan, sets: DtypeSets) -> list[Wrapper]:
    """The functions for all of an operator's kernels that need one."""
    own = [k for k in op.kernels if k.signature and (k.is_wrapped or k.structured)]
    alike: dict[str, list[tuple[KernelPlan, KernelPlan]]] = {}
    for kernel in own:
        as_others = _as_others(kernel, own)
        text = _text(namespace, op, as_others, sets, "", _varying(namespace, as_others))
        alike.setdefault(text, []).append((kernel, as_others))
    found = []
    for count, group in enumerate(alike.values()):
        keys = [kernel.key for kernel, _ in group]
        if len(group) == 1:
            kernel, name = group[0][0], f"{keys[0].lower()}_{op.handle}"
            differing: list[tuple[_Varying, ...]] = []
        else:
            kernel, name = group[0][1], f"wrapper_{op.handle}" + (f"_{count}" if count else "")
            columns = zip(*(_varying(namespace, as_others) for _, as_others in group))
            differing = [values for values in columns if len({v.value for v in values}) > 1]
        first = [values[0] for values in differing]
        text = _text(namespace, op, kernel, sets, name, first)
        arguments = {key: tuple(v[i].value for v in differing) for i, key in enumerate(keys)}
        found.append(Wrapper(name, text, arguments))
    return found


def _as_others(kernel: KernelPlan, kernels: Iterable[KernelPlan]) -> KernelPlan:
    """A CPU kernel with the checks of CUDA's, which do nothing there."""
    if kernel.key != "CPU":
        return kernel
    for other in kernels:
        if other.needs_cuda and (other.device_checks or other.device_guard):
            return dataclasses.replace(
                kernel, device_checks=other.device_checks, device_guard=other.device_guard
            )
    return kernel


def _varying(namespace: str, kernel: KernelPlan) -> list[_Varying]:
    """What the function of a kernel would be a template of."""
    call, found, scope = kernel.structured, [], Scope(namespace)
    function = call.kernel_function if call else kernel.function
    if function:
        value = scope.name(function)
        if kernel.is_overloaded and kernel.declared:
            value = f"static_cast<{kernel.declared.pointer}>(&{value})"
        found.append(_Varying("auto kKernel", value))
    elif call and call.runs_impl:
        found.append(_Varying("typename Kernel", scope.name(call.meta_class)))
    if (call and call.home) or kernel.device_checks or kernel.device_guard:
        found.append(_Varying("Home kHome", scope.home(kernel.home)))
    return found


def _text(
    namespace: str,
    op: OperatorPlan,
    kernel: KernelPlan,
    sets: DtypeSets,
    wrapper: str,
    varying: list[_Varying],
) -> str:
    """The function for one kernel, a template of what varies."""
    signature = kernel.signature
    assert signature is not None
    name = f"{op.operator.name}" if op.override else f"{namespace}::{op.operator.name}"
    catches = _CATCHES.replace("$name", name) if kernel.speaks_for else ""
    scope = Scope(namespace, {v.value: v.name for v in varying})
    if kernel.structured:
        base = f"{namespace}::{op.operator.name.base}"
        statements = call_lines(base, kernel.structured, signature, scope)
    else:
        statements = _call(name, op, kernel, signature, scope)
    return fill(
        _WRAPPER,
        location=op.spec_line,
        schema=op.schema,
        parameters=[f"template <{', '.join(v.parameter for v in varying)}>"] if varying else [],
        prototype=given(signature, kernel.lengths).prototype(wrapper),
        checks=list(_checks(name, kernel, signature, sets, scope)),
        statements=list(statements),
        tries="try " if catches else "",
        catches=catches,
    )


def _checks(
    name: str, kernel: KernelPlan, signature: Signature, sets: DtypeSets, scope: Scope
) -> Iterator[str]:
    """The statements that look at the arguments before anything is done with them."""
    yield from list_lines(signature, kernel.lengths)
    if kernel.required:
        yield f"  check_defined({_named(name, kernel.required)});"
    for check in kernel.lengths:
        lengths = _numbers(check.lengths)
        yield f'  check_length("{name}", "{check.argument}", {check.parameter}, {lengths});'
    if kernel.device_checks:
        home = scope.home(kernel.home)
        template = f"<{home}>" if home == "kHome" else ""
        yield f"  check_same_device{template}({_named(name, kernel.device_checks)});"
    by_dtypes: dict[tuple[str, ...], list[Tensors]] = {}
    for dtypes in kernel.dtype_checks:
        tensors = by_dtypes.setdefault(dtypes.dtypes, [])
        tensors.append(Tensors(dtypes.argument, dtypes.parameter))
    for taken, tensors in by_dtypes.items():
        yield f"  {sets[taken]}.check({_named(name, tensors)});"


def _named(op: str, tensors: Sequence[Tensors]) -> str:
    """The arguments of a check of several tensors, whose names are one text."""
    names = ", ".join(tensor.name for tensor in tensors)
    return ", ".join([f'"{op}"', f'"{names}"', *(tensor.parameter for tensor in tensors)])


def _numbers(values: Iterable[int]) -> str:
    return ", ".join(map(str, values))


def _call(
    name: str, op: OperatorPlan, kernel: KernelPlan, signature: Signature, scope: Scope
) -> Iterator[str]:
    """The statements that call a kernel which is not structured."""
    if rule := kernel.expected:
        results = "".join(f', "{result}"' for result in rule.results)
        count = "kAnyNumber" if rule.is_list else len(rule.results)
        expected = f"Expected<{scope.name(rule.rule)}, {count}> expected"
        yield f'  {expected}("{name}", "{op.spec_line}"{results});'
        yield f"  expected.meta({', '.join(rule.arguments)});"
    if kernel.device_guard:
        yield f"  const SelectedDevice<{scope.home(kernel.home)}> guard({kernel.device_guard});"
    yield from layout_lines(name, kernel.laid_out)
    names = {name: f"or_missing({name})" for name in kernel.optionals}
    names |= {arg.parameter: arg.name for arg in kernel.laid_out}
    arguments = ", ".join(names.get(p.name, p.name) for p in signature.parameters)
    is_varying = "kKernel" in scope.varying.values()
    function = "kKernel" if is_varying else scope.name(kernel.function)
    yield from _returned(kernel, signature, f"{function}({arguments})")


def _returned(kernel: KernelPlan, signature: Signature, call: str) -> Iterator[str]:
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
