# SPDX-License-Identifier: BSD-3-Clause
"""`dtypes:`, which dtypes the kernels of an operator take of each tensor."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from ..cpp import names as cpp_names
from ..cpp import types as cpp_types
from ..errors import Errors, did_you_mean
from ..plan.calls import DtypeCheck
from ..plan.kernels import KernelPlan
from ..schema.schema import Argument
from ..spec.dispatch_keys import BACKEND_KEYS, COMPUTING_KEYS
from ..spec.model import FALLBACK, DtypeRule, Operator


def allowed_dtypes(source: Operator, key: str, argument: Argument) -> tuple[str, ...]:
    """The dtypes that a tensor may have on a dispatch key, as c10 names them; () for any. source:
    the entry whose kernels run.

    Where a key has rules of its own, they replace those for all keys; an argument's name goes
    before none. Meta, which stands for every device, takes what any of them takes.
    """
    if not _is_checked(argument):
        return ()
    if key == "Meta" and not any(rule.key == key for rule in source.dtypes):
        found = [
            _of_key(source.dtypes, k, argument.name) for k in sorted(_devices(source)) or [key]
        ]
        return tuple(dict.fromkeys(d for dtypes in found for d in dtypes)) if all(found) else ()
    return _of_key(source.dtypes, key, argument.name)


def _devices(source: Operator) -> set[str]:
    """The keys of devices that have a kernel of their own."""
    found = {e.key for e in source.dispatch or () if e.kernel != FALLBACK}
    found |= {"CPU", "CUDA"} if source.ufunc_inner_loop else set()
    return {key for key in found if key in BACKEND_KEYS and not key.endswith("Meta")}


def _of_key(rules: tuple[DtypeRule, ...], key: str, name: str) -> tuple[str, ...]:
    own = [rule for rule in rules if rule.key == key]
    for rules_ in (own, [rule for rule in rules if rule.key is None]):
        for argument in (name, None):
            for rule in rules_:
                if rule.argument == argument:
                    return rule.dtypes
    return ()


def _is_checked(argument: Argument) -> bool:
    """Every tensor that is read; out= tensors have the dtypes of results."""
    return argument.type.is_tensor_like and not (argument.is_kwarg_only and argument.type.is_write)


def with_dtype_checks(source: Operator, kernels: Iterable[KernelPlan]) -> Iterator[KernelPlan]:
    """The kernels, those that compute with the checks of `dtypes:`; source: as above."""
    for kernel in kernels:
        computes = kernel.key in COMPUTING_KEYS
        calls_another = kernel.structured is not None and kernel.structured.out_handle is not None
        if not source.dtypes or kernel.signature is None or not computes or calls_another:
            yield kernel
            continue
        checks = tuple(
            DtypeCheck(argument.name, cpp_names.parameter_name(argument.name), dtypes)
            for argument in source.func.arguments
            if (dtypes := allowed_dtypes(source, kernel.key, argument))
        )
        yield dataclasses.replace(kernel, dtype_checks=checks)


def check_dtypes(operator: Operator, errors: Errors) -> None:
    """Note what is wrong with an entry's `dtypes:`."""
    if not operator.dtypes:
        return
    message = hint = None
    if operator.structured_delegate is not None:
        message, hint = "the kernels are those of the out= form", "say it there"
    elif operator.manual_kernel_registration:
        message = "the kernels are registered by hand"
    elif not cpp_types.has_signature(operator.func):
        message = "an operator with 'dtypes' needs a C++ signature"
    elif not any(map(_is_checked, operator.func.arguments)):
        message = "'dtypes' is for operators that take tensors"
    if message:
        errors.add(operator.at("dtypes"), message, hint)
    seen: set[tuple[str | None, str | None]] = set()
    for rule in operator.dtypes:
        if (rule.key, rule.argument) in seen:
            errors.add(rule.location, f"the dtypes of '{rule.argument}' stand twice")
        seen.add((rule.key, rule.argument))
        _check_rule(operator, rule, errors)


def _check_rule(operator: Operator, rule: DtypeRule, errors: Errors) -> None:
    keys = {e.key for e in operator.dispatch or () if e.key in COMPUTING_KEYS} | _devices(operator)
    keys -= {e.key for e in operator.dispatch or () if e.kernel == FALLBACK}
    if rule.key is not None and rule.key not in keys:
        hint = did_you_mean(rule.key, sorted(keys), "it has kernels for")
        errors.add(rule.location, f"'dtypes' checks no kernel for {rule.key}", hint)
    if rule.argument is None:
        return
    argument = operator.func.argument(rule.argument)
    if argument is None:
        names = [a.name for a in operator.func.arguments if _is_checked(a)]
        hint = did_you_mean(rule.argument, names, "the tensors are")
        message = f"'{rule.argument}' is no argument and no dispatch key"
        errors.add(rule.location, message, hint)
    elif not argument.type.is_tensor_like:
        errors.add(rule.location, f"'{rule.argument}' is no tensor")
    elif not _is_checked(argument):
        errors.add(rule.location, f"'{rule.argument}' has the dtype of a result")
