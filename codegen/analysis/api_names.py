# SPDX-License-Identifier: BSD-3-Clause
"""The functions of a library's C++ API: their names, types and defaults."""

from __future__ import annotations

import dataclasses
from collections import Counter

from ..cpp import names as cpp_names
from ..cpp import types as cpp_types
from ..cpp.signatures import Parameter, Signature
from ..plan.library import ApiPlan, OperatorPlan
from .signatures import signature_of


def with_api(plans: list[OperatorPlan]) -> list[OperatorPlan]:
    """Name the functions of the C++ API.

    Overloads share a name where C++ can tell them apart; otherwise, and where one only differs in
    which tensors it writes to or in integers that are a SymInt (an lvalue or a literal would pick
    it silently), each has its overload in its name, so that no name means one of several.
    """
    apis = {plan.handle: api for plan in plans if (api := _api(plan)) is not None}
    types = {p.handle: _told_apart(p, apis[p.handle]) for p in plans if p.handle in apis}
    schemas = {plan.handle: plan.operator.func for plan in plans}
    names = {h: schemas[h].name.base + ("_out" if schemas[h].is_out else "") for h in apis}
    while clashing := _clashing(names, types):
        names |= {handle: handle for handle in clashing}
    return [_with_name(p, names, apis[p.handle]) if p.handle in apis else p for p in plans]


def _with_name(plan: OperatorPlan, names: dict[str, str], signature: Signature) -> OperatorPlan:
    """The plan with its function's name, and that which ATen gives to one that takes SymInt."""
    name = names[plan.handle]
    types = {type_.name for a in plan.operator.func.arguments for type_ in a.type.walk()}
    twin = f"{name}_symint"
    has_twin = "SymInt" in types and twin not in names.values()
    return dataclasses.replace(
        plan,
        api=ApiPlan(cpp_names.identifier(name), twin if has_twin else None, signature),
    )


def _api(plan: OperatorPlan) -> Signature | None:
    """The type of an operator's function: what an out= form writes to stands first. What no
    entry declares has none."""
    operator, signature = plan.operator, plan.signature
    if signature is None or operator.manual_cpp_binding or operator.beside is not None:
        return None
    outs = {cpp_names.parameter_name(a.name) for a in operator.func.arguments if a.is_out}
    first = [p for p in signature.parameters if p.name in outs]
    rest = [p for p in signature.parameters if p.name not in outs]
    no_default = {cpp_names.parameter_name(name) for name in operator.cpp_no_default_args}
    return Signature(signature.result, tuple(_with_defaults([*first, *rest], no_default)))


def _told_apart(plan: OperatorPlan, api: Signature) -> tuple[str, ...]:
    """What tells a call of an operator's function from that of one of the same name."""
    without_symint = signature_of(plan.operator, symint=False)
    types = {p.name: p.type for p in without_symint.parameters} if without_symint else {}
    return tuple(cpp_types.by_value(types.get(p.name, p.type)) for p in api.parameters)


def _clashing(names: dict[str, str], types: dict[str, tuple[str, ...]]) -> list[str]:
    """The handles of functions that share name and types with another one, and could have their
    handle's name, which no other has."""
    counts = Counter((name, types[handle]) for handle, name in names.items())
    return [h for h, name in names.items() if counts[name, types[h]] > 1 and h != name]


def _with_defaults(parameters: list[Parameter], no_default: set[str]) -> list[Parameter]:
    """The parameters with defaults where C++ allows them: none before one that has none."""
    found: list[Parameter] = []
    for parameter in reversed(parameters):
        follows = found and found[-1].default is None
        if parameter.name in no_default or follows:
            parameter = dataclasses.replace(parameter, default=None)
        found.append(parameter)
    return found[::-1]
