# SPDX-License-Identifier: BSD-3-Clause
"""The functions that are registered in the place of an author's kernels: what is checked before one
runs, what it is given and what becomes of its results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ...cpp.signatures import Signature
from ...cpp.template import fill
from ...plan.autograd import Tensors
from ...plan.calls import GivenArgument, Passed, Returned
from ...plan.kernels import AuthorKernel, KernelPlan, WrapperPlan, WrittenMeta
from ...plan.library import OperatorPlan
from .lists import given, list_lines
from .scope import Scope
from .structured import all_of, call_lines, layout_lines, passed, write_back_lines

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
class _Varying:
    """What differs between kernels of several keys: its parameter in a template, and its value."""

    parameter: str
    value: str

    @property
    def name(self) -> str:
        return self.parameter.split()[-1]


def registered(namespace: str, wrapper: WrapperPlan, key: str) -> str:
    """What is registered for a key in the place of one of a function's kernels."""
    kernel = next(kernel for kernel in wrapper.kernels if kernel.key == key)
    values = [varying.value for varying in _varying(namespace, wrapper, kernel)]
    return f"&{wrapper.name}<{', '.join(values)}>" if values else f"&{wrapper.name}"


def _varying(namespace: str, wrapper: WrapperPlan, kernel: KernelPlan) -> Iterator[_Varying]:
    """What the function is a template of, with the values for one of its kernels."""
    scope = Scope(namespace)
    if wrapper.differs_in_kernel:
        is_class = kernel.structured and not kernel.structured.has_rule
        value = scope.name(kernel.own) if kernel.own else "nullptr"
        if kernel.own and kernel.is_overloaded and kernel.declared and not is_class:
            value = f"static_cast<{kernel.declared.pointer}>(&{value})"
        yield _Varying("typename Kernel" if is_class else "auto kKernel", value)
    if wrapper.differs_in_home:
        yield _Varying("Home kHome", scope.home(kernel.home))


def wrapper_text(namespace: str, op: OperatorPlan, wrapper: WrapperPlan, sets: DtypeSets) -> str:
    """The function, a template where it stands in the places of several kernels."""
    kernel = wrapper.kernel
    signature = kernel.signature
    assert signature is not None
    name = f"{op.operator.name}" if op.override else f"{namespace}::{op.operator.name}"
    catches = _CATCHES.replace("$name", name) if kernel.speaks_for else ""
    varying = list(_varying(namespace, wrapper, kernel))
    scope = Scope(namespace, {v.value: v.name for v in varying})
    if kernel.structured:
        base = f"{namespace}::{op.operator.name.base}"
        lines = call_lines(base, kernel.structured, signature, scope, wrapper.serves_meta)
    else:
        lines = _call(name, op, kernel, signature, scope)
    return fill(
        _WRAPPER,
        location=op.spec_line,
        schema=op.schema,
        parameters=[f"template <{', '.join(v.parameter for v in varying)}>"] if varying else [],
        prototype=given(signature, kernel.lengths).prototype(wrapper.name),
        checks=list(_checks(name, kernel, signature, sets, scope)),
        statements=list(lines),
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
    author = kernel.author
    if author is None:  # the Meta kernel of an operator that only writes
        assert isinstance(kernel.runs, WrittenMeta)
        if signature.result != "void":
            yield f"  return {_results(kernel.runs.returned, signature)};"
        return
    if author.device_guard:
        home, tensors = scope.home(kernel.home), ", ".join(author.device_guard)
        yield f"  const SelectedDevice<{home}> guard({tensors});"
    yield from layout_lines(name, author.laid_out)
    names = {n: passed(GivenArgument(n, Passed.OR_MISSING)) for n in author.optionals}
    names |= {arg.parameter: arg.name for arg in author.laid_out}
    arguments = ", ".join(names.get(p.name, p.name) for p in signature.parameters)
    is_varying = "kKernel" in scope.varying.values()
    function = "kKernel" if is_varying else scope.name(author.function)
    yield from _returned(author, signature, f"{function}({arguments})")


def _returned(kernel: AuthorKernel, signature: Signature, call: str) -> Iterator[str]:
    """The statements that call the kernel, write copies back and return the results."""
    if kernel.expected and kernel.expected.results:
        positions = _numbers(kernel.expected.positions)
        call = f"expected.checked<{positions}>({call})"
    for name in kernel.viewed:
        call = f"::torchext::{kernel.view_function}({call}, {name})"
    written_back = list(write_back_lines(kernel.laid_out))
    if not written_back:
        yield f"  return {call};"
    elif signature.result == "void":
        yield f"  {call};"
        yield from written_back
    else:
        assert kernel.returned is not None
        reads = any(value.is_kernels for value in kernel.returned.values)
        yield f"  {f'decltype(auto) {kernel.returned.result} = ' if reads else ''}{call};"
        yield from written_back
        yield f"  return {_results(kernel.returned, signature)};"


def _results(returned: Returned, signature: Signature) -> str:
    """The arguments that are results, and what the kernel returns."""
    values, results = returned.values, []
    for index, value in enumerate(values):
        own = returned.result
        own = own if len(values) == 1 else f"::std::get<{index}>({own})"
        parameter = value.parameter or own
        results.append(f"given_or({parameter}, {own})" if value.may_be_missing else parameter)
    return all_of(results, signature)
