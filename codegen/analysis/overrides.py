# SPDX-License-Identifier: BSD-3-Clause
"""Entries of PyTorch's namespace: kernels for operators that PyTorch defines, and nothing else.

Schema, tags, gradient, Meta and C++ API are PyTorch's own; what an entry says of them would change
nothing, and is refused.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..cpp import names as cpp_names
from ..errors import Errors
from ..plan.library import OperatorPlan, OverridePlan
from ..spec.dispatch_keys import BACKEND_KEYS, FUNCTIONALITIES
from ..spec.keys import spec_keys
from ..spec.model import OVERRIDABLE, Derivative, Operator
from .kernels import named_kernels

# What an entry may say, beside keys without effect: which kernels, and how they are called.
_KEYS = {
    "func", "dispatch", "doc", "device_check", "device_guard", "layout",
    "use_const_ref_for_mutable_tensors",
}  # fmt: skip
_EXPLICIT_KEYS = ("CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")


def plan_override(
    namespace: str, operator: Operator, group: str, shard: int, errors: Errors
) -> OperatorPlan:
    """The plan of an operator of which the library has kernels only."""
    _check_keys(operator, errors)
    identifier = f"{operator.name.namespace}_{operator.name.identifier}"
    return OperatorPlan(
        operator=operator,
        group=group,
        shard=shard,
        tags=(),
        handle=cpp_names.handle_name(identifier),
        signature=None,
        kernels=named_kernels(namespace, operator, errors),
        override=OverridePlan(operator.name.namespace, _covers(operator)),
    )


def own_derivatives(derivatives: Iterable[Derivative], errors: Errors) -> list[Derivative]:
    """The derivatives without those of PyTorch's operators, which are mistakes."""
    found = []
    for derivative in derivatives:
        name = derivative.name.name
        if name.namespace != OVERRIDABLE:
            found.append(derivative)
            continue
        with errors.about(str(name)):
            message = f"'{name}' has PyTorch's own gradient"
            hint = "for another one give the entry a kernel for Autograd"
            errors.add(derivative.location, message, hint)
    return found


def _check_keys(operator: Operator, errors: Errors) -> None:
    for name, field in spec_keys(Operator).items():
        if name in operator.locations and not (name in _KEYS or field.metadata["without_effect"]):
            message = f"'{name}' is PyTorch's to say of '{operator.name}'"
            hint = f"an entry of namespace '{OVERRIDABLE}' gives kernels only"
            errors.add(operator.at(name), message, hint)
    if not operator.dispatch:
        message = f"'{operator.name}' is PyTorch's operator, and the entry names no kernel for it"
        errors.add(operator.location, message, "name one in 'dispatch'")


def _covers(operator: Operator) -> tuple[str, ...]:
    """The keys below autograd for which the entry has no autograd kernel of its own."""
    keys = {entry.key for entry in operator.dispatch or ()}
    return tuple(
        entry.key
        for entry in operator.dispatch or ()
        if (entry.key in BACKEND_KEYS or entry.key in _EXPLICIT_KEYS)
        and not {"Autograd", _autograd_key(entry.key)} & keys
    )


def _autograd_key(key: str) -> str:
    """The dispatch key of autograd for kernels of a backend's key."""
    kinds = [kind for kind in FUNCTIONALITIES if kind and key.startswith(kind)]
    if not kinds:
        return f"Autograd{key}"
    return "AutogradNestedTensor" if "NestedTensor" in kinds else "AutogradOther"
