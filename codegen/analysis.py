# SPDX-License-Identifier: BSD-3-Clause
"""Operators and derivatives to a Plan: which kernels, guards, names and shards there are.

Reads model records, notes in Errors what concerns several entries or the C++ they become, and
returns values. What a backward node saves and computes is decided in autograd_analysis.
"""

from __future__ import annotations

import dataclasses
import math
import zlib
from collections.abc import Iterable

from . import type_table
from .autograd_analysis import AutogradAnalysis
from .autograd_plan import Tensors
from .derivative_helpers import Topic, needed_topics
from .dispatch_keys import BACKENDS, is_guarded, needs_cuda
from .errors import Errors
from .formula import called_functions
from .model import Derivative, DispatchEntry, Operator
from .plan import KernelPlan, OperatorPlan, Parameter, Plan, Signature
from .variants import derive_schema

FALLBACK = "cpu_fallback"
_OPERATORS_PER_SHARD = 16
_MOST_SHARDS = 64
# Names that a library's namespace would hide or clash with in generated code.
RESERVED_NAMESPACES = ("at", "c10", "caffe2", "native", "prim", "prims", "std", "torch", "torchext")


def plan_library(
    namespace: str,
    specs: tuple[str, ...],
    operators: Iterable[Operator],
    derivatives: Iterable[Derivative],
    errors: Errors,
    topics: Iterable[Topic] = (),
) -> Plan:
    """The plan of a library; mistakes are noted and the entries that have them are left out."""
    everything = _with_variants(list(operators), errors)
    autograd = AutogradAnalysis(namespace, everything, derivatives, errors)
    shards = _shard_count(len(everything))
    plans = []
    for operator in everything:
        group = _group(operator)
        with errors.about(str(operator.name)):
            plans.append(
                OperatorPlan(
                    operator=operator,
                    group=group,
                    shard=zlib.crc32(group.encode()) % shards,
                    tags=_tags(operator),
                    handle=type_table.handle_name(operator.name.identifier),
                    signature=_signature(operator),
                    api_name=None,
                    api=None,
                    kernels=_kernels(namespace, operator, errors),
                    autograd=autograd.plan(operator),
                    autograd_by_key=autograd.by_key(operator),
                )
            )
    _check_namespace(namespace, everything, errors)
    _check_handles(plans, errors)
    _check_parameters(plans, errors)
    plan = Plan(namespace, specs, shards, tuple(_with_api(_with_casts(plans))))
    called = set().union(*map(called_functions, plan.formulas()))
    return dataclasses.replace(plan, helper_topics=needed_topics(topics, called))


def _with_variants(operators: list[Operator], errors: Errors) -> list[Operator]:
    """The operators, each followed by those that its `autogen:` declares."""
    schemas = {op.name: op.func for op in operators}
    found: list[Operator] = []
    for operator in operators:
        found.append(operator)
        for name in operator.autogen:
            with errors.about(str(operator.name)):
                schema = derive_schema(operator.func, name)
                if isinstance(schema, str):
                    errors.add(operator.location, f"'autogen' cannot declare it: {schema}")
                    continue
                # An in-place form and its functional one may both declare the same out= form.
                if schemas.setdefault(name, schema) is not schema:
                    if str(schemas[name]) != str(schema):
                        message = f"'autogen' declares '{name}', which has another schema"
                        errors.add(operator.location, message, f"it is {schemas[name]}")
                    continue
                kept = {"nondeterministic_seeded", "view_copy"} & set(operator.tags)
                variant = Operator(
                    location=operator.location,
                    func=schema,
                    tags=("generated", *sorted(kept)),
                    pt2_compliant=operator.pt2_compliant,
                    origin=operator,
                )
                found.append(variant)
    return found


def _shard_count(operators: int) -> int:
    """A power of two, so that few operators move to another shard when it grows."""
    wanted = max(1, math.ceil(operators / _OPERATORS_PER_SHARD))
    return min(_MOST_SHARDS, 1 << (wanted - 1).bit_length())


def _group(operator: Operator) -> str:
    """`mul` for mul, mul_ and mul.out: a lower-case file name."""
    base = operator.func.name.base
    return (base if base.startswith("__") else base.rstrip("_") or base).lower()


def _tags(operator: Operator) -> tuple[str, ...]:
    tags = dict.fromkeys(operator.tags)
    if operator.pt2_compliant:
        tags.setdefault("pt2_compliant_tag")
    return tuple(tags)


def _signature(operator: Operator, symint: bool = True) -> Signature | None:
    """The C++ function type of an operator's calls; None where a type has no C++ spelling."""
    const_ref = operator.use_const_ref_for_mutable_tensors
    result = type_table.return_type(operator.func.returns, const_ref=const_ref)
    if result is None or operator.func.is_vararg or operator.func.is_varret:
        return None
    parameters = []
    list_ref = operator.structured or operator.structured_delegate is not None
    for arg in operator.func.arguments:
        type_ = type_table.argument_type(arg, symint=symint, const_ref=const_ref, list_ref=list_ref)
        if type_ is None:
            return None
        default = type_table.default_value(arg, symint=symint)
        parameters.append(Parameter(type_, type_table.parameter_name(arg.name), default))
    return Signature(result, tuple(parameters))


def _kernels(namespace: str, operator: Operator, errors: Errors) -> tuple[KernelPlan, ...]:
    """The kernels of an operator; structured ones come with the generated variants."""
    if operator.origin or operator.structured or operator.structured_delegate:
        entries = [e for e in operator.dispatch or () if not _is_structured(operator, e)]
    elif operator.manual_kernel_registration:
        if operator.dispatch is not None:
            message = "'manual_kernel_registration' and 'dispatch' exclude each other"
            errors.add(operator.location, message)
        return ()
    elif operator.dispatch is None:
        name = _default_kernel_name(operator)
        entries = [DispatchEntry("CompositeImplicitAutograd", name, operator.location)]
    else:
        entries = list(operator.dispatch)
    _check_dispatch(operator, entries, errors)
    return tuple(_kernel(namespace, operator, entry) for entry in entries)


def _is_structured(operator: Operator, entry: DispatchEntry) -> bool:
    """Whether this key's kernel is an `impl` of a structured operator, as torchgen decides it."""
    keys = ("CPU", "CUDA", "MPS", "XPU", "MTIA")
    return not operator.structured_delegate and entry.key in keys


def _default_kernel_name(operator: Operator) -> str:
    name = operator.func.name.base + ("_out" if operator.func.is_out else "")
    return type_table.identifier(name)


def _check_dispatch(operator: Operator, entries: list[DispatchEntry], errors: Errors) -> None:
    keys = {entry.key: entry for entry in entries}
    for entry in entries:
        if entry.kernel == FALLBACK and "CPU" not in keys:
            message = f"'{FALLBACK}' for {entry.key} runs the CPU kernel, and there is none"
            errors.add(entry.location, message, "name a kernel for CPU")
        name = entry.kernel.rpartition("::")[2]
        if type_table.identifier(name) != name:
            errors.add(entry.location, f"a kernel cannot be called '{name}' in C++")
        if entry.kernel == FALLBACK and (entry.key not in BACKENDS or entry.key in ("CPU", "Meta")):
            errors.add(entry.location, f"{entry.key} cannot fall back to the CPU")
    both = [k for k in ("CompositeImplicitAutograd", "CompositeExplicitAutograd") if k in keys]
    if len(both) > 1:
        message = f"{both[0]} and {both[1]} exclude each other"
        hint = "an operator differentiates through its parts or by its own formula"
        errors.add(keys[both[1]].location, message, hint)


def _kernel(namespace: str, operator: Operator, entry: DispatchEntry) -> KernelPlan:
    cuda = needs_cuda(entry.key)
    if entry.kernel == FALLBACK:
        return KernelPlan(entry.key, "", None)
    space, _, name = entry.kernel.rpartition("::")
    function = f"{space or namespace}::native::{name}"
    signature = _signature(operator, symint="_symint" in name)
    if signature is None or not is_guarded(entry.key):
        return KernelPlan(entry.key, function, signature, needs_cuda=cuda)
    tensors = tuple(
        Tensors(arg.name, p.name)
        for p, arg in zip(signature.parameters, operator.func.arguments)
        if arg.type.is_tensor_like and (not arg.is_kwarg_only or arg.type.is_write)
    )
    return KernelPlan(
        entry.key,
        function,
        signature,
        device_checks=tensors if operator.device_check != "NoCheck" and len(tensors) else (),
        device_guard=_guard(operator, signature) if operator.device_guard else None,
        needs_cuda=cuda,
    )


def _guard(operator: Operator, signature: Signature) -> str | None:
    """The parameter whose device the kernel runs on, as upstream chooses it."""
    arguments = list(zip(operator.func.arguments, signature.parameters))
    if {"dtype", "layout", "device", "pin_memory"} <= {
        arg.name for arg, _ in arguments if arg.is_kwarg_only
    }:
        return "device"
    own = [pair for pair in arguments if pair[0].name == "self"]
    out = [pair for pair in arguments if pair[0].is_kwarg_only and pair[0].type.is_write]
    for arg, parameter in [*own, *out, *arguments]:
        if arg.type.plain in ("Tensor", "Tensor?", "Tensor[]", "Tensor?[]"):
            return parameter.name
    return None


def _check_namespace(namespace: str, operators: list[Operator], errors: Errors) -> None:
    for operator in operators:
        own = operator.func.name.namespace
        if own and own != namespace:
            message = f"operator of namespace '{own}' in a library for namespace '{namespace}'"
            with errors.about(str(operator.name)):
                errors.add(operator.location, message)
        if operator.func.name.base in ("native",) and not operator.origin:
            message = f"an operator cannot be called '{operator.func.name.base}'"
            with errors.about(str(operator.name)):
                errors.add(operator.location, message, "the kernels' C++ namespace has this name")


def _check_parameters(plans: list[OperatorPlan], errors: Errors) -> None:
    """`default` and `default_` would both be the C++ parameter `default_`."""
    for plan in plans:
        names = [p.name for p in plan.signature.parameters] if plan.signature else []
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice:
            with errors.about(str(plan.operator.name)):
                message = f"two arguments of '{plan.operator.name}' would be '{twice}' in C++"
                errors.add(plan.operator.location, message)


def _check_handles(plans: list[OperatorPlan], errors: Errors) -> None:
    """`a.b` and `a_b` would both be the C++ handle `a_b`."""
    seen: dict[str, OperatorPlan] = {}
    for plan in plans:
        first = seen.setdefault(plan.handle, plan)
        if first is not plan:
            message = f"'{plan.operator.name}' has the C++ name of '{first.operator.name}'"
            hint = (
                f"both are '{plan.handle}'; that one stands on line {first.operator.location.line}"
            )
            with errors.about(str(plan.operator.name)):
                errors.add(plan.operator.location, message, hint)


def _with_casts(plans: list[OperatorPlan]) -> list[OperatorPlan]:
    """Mark the kernels whose name alone does not tell which C++ overload is meant."""
    types: dict[str, set[str]] = {}
    for kernel in (k for plan in plans for k in plan.kernels if k.signature):
        types.setdefault(kernel.function, set()).add(kernel.signature.type)
    overloaded = {name for name, found in types.items() if len(found) > 1}

    def marked(kernel: KernelPlan) -> KernelPlan:
        if kernel.function not in overloaded:
            return kernel
        return dataclasses.replace(kernel, is_overloaded=True)

    return [dataclasses.replace(p, kernels=tuple(map(marked, p.kernels))) for p in plans]


def _with_api(plans: list[OperatorPlan]) -> list[OperatorPlan]:
    """Name the functions of the C++ API.

    Overloads share a name where C++ can tell them apart; otherwise, and where one only differs in
    which tensors it writes to (an lvalue would pick it silently), the overload joins the name.
    """
    taken: set[tuple[str, tuple[str, ...]]] = set()
    found = []
    for plan in plans:
        operator, signature = plan.operator, plan.signature
        if signature is None or operator.manual_cpp_binding:
            found.append(plan)
            continue
        schema = operator.func
        outs = {type_table.parameter_name(a.name) for a in schema.mutated if a.is_kwarg_only}
        first = [p for p in signature.parameters if p.name in outs]
        rest = [p for p in signature.parameters if p.name not in outs]
        no_default = {type_table.parameter_name(name) for name in operator.cpp_no_default_args}
        parameters = _with_defaults([*first, *rest], no_default)
        name = schema.name.base + ("_out" if schema.is_out else "")
        types = tuple(p.type.replace("const ", "") for p in parameters)
        if (name, types) in taken:
            name = plan.handle
        taken.add((name, types))
        api = Signature(signature.result, tuple(parameters))
        found.append(dataclasses.replace(plan, api_name=type_table.identifier(name), api=api))
    return found


def _with_defaults(parameters: list[Parameter], no_default: set[str]) -> list[Parameter]:
    """The parameters with defaults where C++ allows them: none before one that has none."""
    found: list[Parameter] = []
    for parameter in reversed(parameters):
        follows = found and found[-1].default is None
        if parameter.name in no_default or follows:
            parameter = dataclasses.replace(parameter, default=None)
        found.append(parameter)
    return found[::-1]
