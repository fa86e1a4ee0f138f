# SPDX-License-Identifier: BSD-3-Clause
"""The C++ function type of an operator, and which of its parameters decide on the device."""

from __future__ import annotations

from ..cpp import defaults as cpp_defaults
from ..cpp import names as cpp_names
from ..cpp import types as cpp_types
from ..cpp.signatures import Parameter, Signature
from ..plan.autograd import Tensors
from ..spec.model import Operator


def signature_of(operator: Operator, symint: bool = True) -> Signature | None:
    """The C++ function type of an operator's calls; None where a type has no C++ spelling."""
    const_ref = operator.use_const_ref_for_mutable_tensors
    result = cpp_types.return_type(operator.func, const_ref=const_ref)
    if result is None or operator.func.is_vararg or operator.func.is_varret:
        return None
    parameters = []
    list_ref = operator.structured or operator.structured_delegate is not None
    for arg in operator.func.arguments:
        type_ = cpp_types.argument_type(arg, symint=symint, const_ref=const_ref, list_ref=list_ref)
        if type_ is None:
            return None
        default = cpp_defaults.default_value(arg, symint=symint)
        parameters.append(Parameter(type_, cpp_names.parameter_name(arg.name), default))
    return Signature(result, tuple(parameters))


def optional_tensors(operator: Operator) -> tuple[str, ...]:
    """The parameters in which tensors may be missing."""
    return tuple(
        cpp_names.parameter_name(a.name)
        for a in operator.func.arguments
        if a.type.plain in ("Tensor?", "Tensor?[]")
    )


def checked_tensors(operator: Operator, signature: Signature) -> tuple[Tensors, ...]:
    """The parameters that must be on one device."""
    if operator.device_check == "NoCheck":
        return ()
    return tuple(
        Tensors(arg.name, p.name)
        for p, arg in zip(signature.parameters, operator.func.arguments)
        if arg.type.is_tensor_like and (not arg.is_kwarg_only or arg.type.is_write)
    )


def guarded_parameters(operator: Operator, signature: Signature) -> tuple[str, ...]:
    """The parameter whose device the kernel runs on, as upstream chooses it; behind one that may be
    missing or empty, those of which the next is asked."""
    if not operator.device_guard:
        return ()
    arguments = list(zip(operator.func.arguments, signature.parameters))
    if {"dtype", "layout", "device", "pin_memory"} <= {
        arg.name for arg, _ in arguments if arg.is_kwarg_only
    }:
        return ("device",)
    own = [pair for pair in arguments if pair[0].name == "self"]
    out = [pair for pair in arguments if pair[0].is_out]
    found: dict[str, None] = {}
    for arg, parameter in [*own, *out, *arguments]:
        if arg.type.plain in ("Tensor", "Tensor?", "Tensor[]", "Tensor?[]"):
            found.setdefault(parameter.name)
            if arg.type.plain == "Tensor":
                break
    return tuple(found)
