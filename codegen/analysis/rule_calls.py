# SPDX-License-Identifier: BSD-3-Clause
"""Operators with `meta:`: the class of their rule, and the functions that run it and the kernels.

The kernels are plain functions that are given their results last.
"""

from __future__ import annotations

import dataclasses
import itertools

from ..cpp import names as cpp_names
from ..cpp import types as cpp_types
from ..cpp.signatures import Parameter, Signature
from ..errors import Errors
from ..plan.calls import Expected, GivenArgument, Passed, StructuredCall, home_of
from ..plan.kernels import KernelPlan, RulePlan
from ..schema.schema import Argument
from ..spec.dispatch_keys import BACKENDS, is_guarded, needs_cuda
from ..spec.model import FALLBACK, DispatchEntry, Operator
from .layouts import laid_out
from .rules import (
    allocates,
    checks_and_results,
    has_dynamic_sizes,
    result_names,
    ruled_results,
    rules_list,
)
from .signatures import checked_tensors, optional_tensors, signature_of

_COMPOSITE = ("CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")


def takes_results(entry: DispatchEntry) -> bool:
    """Whether the kernel of an operator with a rule is given its results on this key."""
    return entry.key in BACKENDS or entry.key in _COMPOSITE


def rule_plan(namespace: str, operator: Operator, errors: Errors) -> RulePlan | None:
    """The class of an entry's rule; mistakes are noted."""
    if operator.meta is None or (operator.structured and operator.meta.iterator):
        return None
    if not _can_have_rule(operator, errors):
        return None
    signature = signature_of(operator)
    assert signature is not None  # _can_have_rule asked
    checks, results = checks_and_results(operator, errors)
    return RulePlan(
        name=_class_name(namespace, operator),
        meta=Signature("void", signature.parameters),
        operator=f"{namespace}::{operator.name.base}",
        checks=checks,
        results=results,
        is_dynamic=has_dynamic_sizes(operator),
    )


def _class_name(namespace: str, operator: Operator) -> str:
    return cpp_names.rule_class(namespace, operator.name.identifier)


def _can_have_rule(operator: Operator, errors: Errors) -> bool:
    place, func = operator.at("meta"), operator.func
    message = hint = None
    if operator.structured or operator.structured_delegate is not None:
        message, hint = "a structured operator has a meta function", "leave 'meta' out"
    elif operator.meta and operator.meta.iterator:
        message = f"'{operator.meta.iterator}' sets up the TensorIterator of a structured operator"
        hint = "name its forms in 'forms:' beside 'structured_inherits: TensorIteratorBase'"
    elif not cpp_types.has_signature(func):
        message = "an operator with 'meta' needs a C++ signature"
    elif not has_ruled_results(operator):
        if operator.allocates:
            message = "'allocates' is for kernels whose results 'meta' rules"
    elif func.is_out or func.is_view or (func.mutated and not ruled_results(operator)):
        message = "'meta' is for results that are new, or arguments that may be missing"
    elif rules_list(operator):
        message, hint = _list_mistake(operator)
    elif not func.returns or any(
        str(r.type.bare()) != "Tensor" for r, _ in ruled_results(operator)
    ):
        message = "'meta' is for results of type Tensor"
        if [str(r.type.bare()) for r in func.returns] == ["Tensor[]"]:
            hint = "say 'for x in inputs:' of what each tensor of a list is"
    elif odd := [a for a in func.arguments if cpp_types.structured_type(a.type) is None]:
        message = f"an operator with 'meta' cannot take a '{odd[0].type}'"
    elif not any(map(takes_results, operator.dispatch or ())):
        message, hint = "no kernel is given the results", "name one in 'dispatch'"
    elif allocates(operator):
        message = None
    elif twice := _repeated([*(a.name for a in _inputs(operator)), *result_names(operator)]):
        message = f"a kernel would have '{twice}' twice"
        hint = "the results are its last arguments"
    elif operator.autogen and operator.meta and any(r.when for r in operator.meta.results):
        message = "results that are not always there have no out= form"
    elif func.mutated and (out := _declared_out(operator)):
        message = f"'{out}' would have to be given what the operator writes to beside its results"
        hint = "leave it out of 'autogen'"
    if message:
        errors.add(place, message, hint)
    for entry in operator.dispatch or () if has_ruled_results(operator) else ():
        if entry.key == "Meta":
            errors.add(entry.location, "the Meta kernel of an operator with 'meta' is generated")
        elif entry.key.startswith("CompositeImplicit"):
            errors.add(entry.location, "a kernel that is given its results does not differentiate")
    return message is None


def _list_mistake(operator: Operator) -> tuple[str | None, str | None]:
    """What keeps an operator from a rule of each tensor of a list, and what to do."""
    if [str(r.type.bare()) for r in operator.func.returns] != ["Tensor[]"]:
        message = "'for' is for an operator whose result is a Tensor[]"
        return message, "say 'like', or 'size' and 'dtype', of the result itself"
    if not operator.allocates:
        return "the kernel of an operator that returns a list makes it", "say 'allocates: True'"
    if operator.autogen:
        return "results of a list by a rule have no out= form", "leave 'autogen' out"
    if operator.meta and any(rule.when for rule in operator.meta.results):
        return "a tensor of a list is always there", "leave 'when' out"
    return None, None


def has_ruled_results(operator: Operator) -> bool:
    """Whether an operator's `meta:` says what results are, and does not only check."""
    return operator.meta is not None and bool(operator.meta.results)


def expected(namespace: str, operator: Operator) -> Expected | None:
    """What the rule of an operator whose kernels are given no results says of a call; None where
    it has none, or the kernels are given them."""
    is_asked = operator.meta is not None and cpp_types.has_signature(operator.func)
    if (
        not is_asked
        or operator.structured
        or (has_ruled_results(operator) and not allocates(operator))
    ):
        return None
    ruled = ruled_results(operator) if has_ruled_results(operator) else []
    both = list(zip(operator.func.returns, operator.func.written_results))
    return Expected(
        _class_name(namespace, operator),
        tuple(cpp_names.parameter_name(a.name) for a in operator.func.arguments),
        tuple(result_names(operator)) if ruled else (),
        tuple(index for index, pair in enumerate(both) if pair in ruled),
        rules_list(operator),
    )


def _inputs(operator: Operator) -> list[Argument]:
    """What a kernel is given before its results."""
    results = [argument for _, argument in ruled_results(operator)]
    return [a for a in operator.func.arguments if a not in results]


def _declared_out(operator: Operator) -> str | None:
    """A name in `autogen:` of an out= form."""
    return next((str(n) for n in operator.autogen if n.overload.endswith("out")), None)


def _repeated(names: list[str]) -> str | None:
    labels = [cpp_names.parameter_name(name) for name in names]
    return next((n for n, label in zip(names, labels) if labels.count(label) > 1), None)


def rule_kernels(namespace: str, operator: Operator, source: Operator) -> tuple[KernelPlan, ...]:
    """The kernels of an operator whose rule is that of `source`: itself, or the entry whose
    `autogen:` declares it."""
    signature = signature_of(operator)
    if signature is None:
        return ()
    rule = _class_name(namespace, source)
    found = []
    for entry in () if allocates(source) else source.dispatch or ():
        if takes_results(entry) and entry.kernel != FALLBACK and entry.key != "Meta":
            found.append(_kernel(namespace, operator, source, signature, entry))
    call = _call(operator, source, "Meta", rule)
    checks = checked_tensors(operator, signature)
    return (*found, KernelPlan("Meta", call, signature, device_checks=checks))


def _kernel(
    namespace: str, operator: Operator, source: Operator, signature: Signature, entry: DispatchEntry
) -> KernelPlan:
    function = cpp_names.kernel(namespace, entry.kernel)
    own = signature_of(source, symint=entry.takes_symint)
    assert own is not None  # the dispatcher's is there
    outputs = (
        Parameter(cpp_types.OUTPUT, cpp_names.parameter_name(n)) for n in result_names(source)
    )
    labels = {cpp_names.parameter_name(a.name) for a in _inputs(source)}
    inputs = (Parameter(p.type, p.name) for p in own.parameters if p.name in labels)
    rule, key = _class_name(namespace, source), entry.key
    call = _call(operator, source, key, rule, function, entry.takes_symint)
    return KernelPlan(
        key,
        dataclasses.replace(call, kernel_type=Signature("void", (*inputs, *outputs))),
        signature,
        device_checks=checked_tensors(operator, signature) if is_guarded(key) else (),
        needs_cuda=needs_cuda(key),
    )


def _call(
    operator: Operator,
    source: Operator,
    key: str,
    rule: str,
    function: str | None = None,
    takes_symint: bool = False,
) -> StructuredCall:
    is_out = operator.func.is_out
    inputs = _inputs(source)
    labels = [cpp_names.parameter_name(a.name) for a in inputs]
    all_labels = [cpp_names.parameter_name(a.name) for a in source.func.arguments]
    given = [cpp_names.parameter_name(a.name) if a else "" for _, a in ruled_results(source)]
    is_given = any(given) and not is_out
    in_layout = laid_out(source, key) if function else ()
    names = {arg.parameter: arg.name for arg in in_layout}
    optional = set(optional_tensors(source)) - names.keys()

    def argument(label: str, a: Argument) -> GivenArgument:
        if not takes_symint and any(t.name == "SymInt" for t in a.type.walk()):
            return GivenArgument(label, Passed.CONVERTED)
        passed = Passed.OR_MISSING if label in optional else Passed.AS_IT_IS
        return GivenArgument(names.get(label, label), passed)

    tensors = [label for label, a in zip(labels, inputs) if a.type.is_tensor_like]
    return StructuredCall(
        form="Out" if is_out or is_given else "Functional",
        home=home_of(key),
        meta_class=rule,
        has_rule=True,
        written=tuple(cpp_names.parameter_name(a.name) for a in operator.func.mutated if is_out),
        results=len(given),
        is_list=rules_list(source),
        meta_arguments=tuple(map(GivenArgument, all_labels)),
        impl_arguments=tuple(map(argument, labels, inputs)) if function else (),
        runs_impl=function is not None,
        kernel_function=function,
        separated=(None, *tensors) if function and (is_out or is_given) else (),
        laid_out=in_layout,
        given=tuple(given) if is_given else (),
        returned=() if is_out or not source.func.mutated else _returned(source),
    )


def _returned(operator: Operator) -> tuple[str | int, ...]:
    """The results in the order of the schema: arguments, and numbers of those that are set."""
    indices = itertools.count()
    return tuple(
        next(indices)
        if argument is None or argument.type.name == "Optional"
        else cpp_names.parameter_name(argument.name)
        for argument in operator.func.written_results
    )
