# SPDX-License-Identifier: BSD-3-Clause
"""Structured operators: which forms share one meta function and one kernel per device.

An out= form with `structured: True` has the classes; a functional and maybe an in-place form
delegate to it. The rules, and the names of the classes, are torchgen's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..cpp import names as cpp_names
from ..cpp import types as cpp_types
from ..cpp.signatures import Parameter, Signature
from ..errors import Errors, did_you_mean
from ..plan.kernels import StructuredKernel, StructuredPlan
from ..schema.forms import form_tag, functional_signature
from ..schema.schema import Argument, OperatorName
from ..spec.model import FALLBACK, DispatchEntry, Operator
from ..spec.values import ITERATOR_RULES
from .precomputed import Precomputed, parse_precomputed
from .ufuncs import ufunc_kernels, ufunc_plan

_KEYS = ("CPU", "CUDA", "MPS", "XPU", "MTIA")
COMPOSITE = "CompositeExplicitAutogradNonFunctional"
_GENERATED = ("Meta", COMPOSITE)
_ITERATOR = "TensorIteratorBase"


@dataclass(frozen=True)
class Group:
    """The forms of one structured operator."""

    out: Operator
    functional: Operator
    inplace: Operator | None
    plan: StructuredPlan
    precomputed: Precomputed

    @property
    def is_iterator(self) -> bool:
        """Whether the meta class is a TensorIterator, which checks overlap and types itself."""
        return self.out.structured_inherits == _ITERATOR


class StructuredAnalysis:
    """The structured operators of a library."""

    def __init__(self, namespace: str, operators: list[Operator], errors: Errors) -> None:
        self.namespace, self.errors = namespace, errors
        self.by_name = {op.name: op for op in operators}
        self.by_text = {str(name): op for name, op in self.by_name.items()}
        self.groups: dict[OperatorName, Group] = {}  # by the name of each form
        delegates: dict[str, list[Operator]] = {}
        for operator in operators:
            with errors.about(str(operator.name)):
                if operator.structured_delegate is not None and self._delegates(operator):
                    delegates.setdefault(operator.structured_delegate, []).append(operator)
                _check_keys(operator, errors)
        for operator in operators:
            with errors.about(str(operator.name)):
                if operator.structured and self._is_structured(operator):
                    self._take(operator, delegates.get(str(operator.name), []))
        self._check_kernel_names()

    def plan(self, operator: Operator) -> StructuredPlan | None:
        """The classes that stand with this operator: those of its group, if it is the out= form."""
        group = self.groups.get(operator.name)
        return group.plan if group and group.out is operator else None

    def group(self, operator: Operator) -> Group | None:
        """The forms of which the operator is one."""
        return self.groups.get(operator.name)

    def _delegates(self, operator: Operator) -> bool:
        """Whether the operator may delegate to the one that it names."""
        place, name = operator.at("structured_delegate"), operator.structured_delegate
        target = self.by_text.get(str(name))
        message = hint = None
        if operator.func.is_out:
            message, hint = "an out= form delegates to none", "did you mean 'structured: True'?"
        elif target is None:
            if self.errors.concern(str(name)):
                return False  # its entry could not be read
            structured = [str(op.name) for op in self.by_name.values() if op.structured]
            message, hint = f"there is no operator '{name}'", did_you_mean(str(name), structured)
        elif not target.structured:
            message, hint = f"'{name}' is not structured", "give it 'structured: True'"
        elif functional_signature(operator.func) != functional_signature(target.func):
            message = f"'{operator.name}' is no form of '{name}': its arguments or results differ"
            hint = f"its functional form is {functional_signature(target.func)}"
        elif len(operator.func.mutated) > 1 or (
            operator.func.mutated and not operator.func.name.is_inplace
        ):
            message = "what delegates is functional, or in-place with one argument that it writes"
        if message:
            self.errors.add(place, message, hint)
        return message is None

    def _is_structured(self, operator: Operator) -> bool:
        """Whether the entry can be a structured operator's own."""
        message = hint = None
        func = operator.func
        if not func.is_out:
            message = "'structured' stands on the out= form"
            hint = "the others have 'structured_delegate'"
        elif operator.structured_delegate is not None:
            message = "'structured' and 'structured_delegate' exclude each other"
        elif operator.manual_kernel_registration:
            message = "'structured' and 'manual_kernel_registration' exclude each other"
        elif any(e.key.startswith("CompositeImplicit") for e in operator.dispatch or ()):
            message = "a structured operator has no CompositeImplicitAutograd kernel"
        elif any(not a.is_kwarg_only or a.type.name != "Tensor" for a in func.mutated):
            message = "a structured operator writes to keyword arguments of type Tensor only"
        elif not func.returns or form_tag(func) != "out":
            message = "a structured operator returns what it writes to, in order"
        elif odd := [a for a in func.arguments if cpp_types.structured_type(a.type) is None]:
            message = f"a structured operator cannot take a '{odd[0].type}'"
        elif not cpp_types.has_signature(func):
            message = "a structured operator needs a C++ signature"
        if message:
            self.errors.add(operator.at("structured"), message, hint)
        return message is None

    def _take(self, out: Operator, delegates: list[Operator]) -> None:
        forms: dict[bool, Operator] = {}
        for form in delegates:
            first = forms.setdefault(bool(form.func.mutated), form)
            if first is not form:
                message = f"'{first.name}' delegates to '{out.name}' already"
                self.errors.add(form.at("structured_delegate"), message)
        functional = forms.get(False)
        if functional is None:
            message = f"no functional form delegates to '{out.name}'"
            hint = f"it is {functional_signature(out.func)}"
            self.errors.add(out.at("structured"), message, hint)
            return
        name = functional.name.identifier
        precomputed = parse_precomputed(out, self.errors)
        inputs = [a for a in out.func.arguments if a not in out.func.mutated]
        kernel_inputs = [_parameter(arg) for arg, _ in precomputed.kernel_arguments(inputs)]
        kernels = (*_kernels(self.namespace, out), *ufunc_kernels(self.namespace, out))
        plan = StructuredPlan(
            meta_class=cpp_names.meta_class(self.namespace, name),
            is_iterator=bool(out.structured_inherits),
            meta=Signature(
                "meta_return_ty" if precomputed.members else "void", tuple(map(_parameter, inputs))
            ),
            impl=Signature("void", (*kernel_inputs, *map(_output, out.func.mutated))),
            precomputed=precomputed.members,
            kernels=_merged(kernels),
            ufunc=ufunc_plan(out, self.errors),
            iterator=_iterator(out, self.errors),
        )
        group = Group(out, functional, forms.get(True), plan, precomputed)
        for form in (out, *forms.values()):
            self.groups.setdefault(form.name, group)

    def _check_kernel_names(self) -> None:
        """Two operators cannot have the same class."""
        seen: dict[str, Operator] = {}
        for group in {id(g): g for g in self.groups.values()}.values():
            for name in (group.plan.meta_class, *(k.name for k in group.plan.kernels)):
                first = seen.setdefault(name, group.out)
                if first is not group.out:
                    message = f"'{group.out.name}' has the class '{name}' of '{first.name}'"
                    hint = "structured kernels need names of their own"
                    with self.errors.about(str(group.out.name)):
                        self.errors.add(group.out.location, message, hint)


def _check_keys(operator: Operator, errors: Errors) -> None:
    """Refuse what makes no sense beside, or without, `structured`."""
    is_form = operator.structured or operator.structured_delegate is not None
    for key in ("structured_inherits", "precomputed", "ufunc_inner_loop"):
        if getattr(operator, key) and not operator.structured:
            errors.add(operator.at(key), f"'{key}' needs 'structured: True'")
    inherits = operator.structured_inherits
    if inherits and inherits != _ITERATOR:
        message = f"a meta class cannot inherit from '{inherits}'"
        errors.add(operator.at("structured_inherits"), message, f"it can from {_ITERATOR}")
    if is_form and not operator.device_guard:
        message = "the guard of a structured operator cannot be left out"
        errors.add(operator.at("device_guard"), message)
    for entry in operator.dispatch or ():
        if is_form and entry.key in _GENERATED:
            message = f"the {entry.key} kernel of a structured operator is generated"
            errors.add(entry.location, message)
        elif operator.structured_delegate is not None and entry.key in _KEYS:
            message = f"the {entry.key} kernel stands with '{operator.structured_delegate}'"
            errors.add(entry.location, message)


def _iterator(out: Operator, errors: Errors) -> tuple[str, tuple[str, ...]] | None:
    """The function of TensorIterator that `meta:` names, and the tensors that it is given."""
    if out.meta is None or out.meta.iterator is None:
        return None
    rule, count = out.meta.iterator, ITERATOR_RULES[out.meta.iterator]
    tensors = [a for a in out.func.arguments if a.type.is_tensor_like and not a.is_out]
    message = hint = None
    if out.structured_inherits != _ITERATOR:
        message, hint = (
            f"'{rule}' sets up a TensorIterator",
            f"say 'structured_inherits: {_ITERATOR}'",
        )
    elif len(tensors) != count or any(a.type.name != "Tensor" for a in tensors):
        message = f"'{rule}' is for {count} tensor{'s' if count > 1 else ''}"
        hint = f"'{out.name}' takes {len(tensors)}: write its meta function"
    elif len(out.func.mutated) != 1:
        message = f"'{rule}' sets up one result, and '{out.name}' has {len(out.func.mutated)}"
    elif out.precomputed:
        message = f"'{rule}' precomputes nothing"
    if message:
        errors.add(out.at("meta"), message, hint)
    return rule, tuple(cpp_names.parameter_name(a.name) for a in tensors)


def is_structured_kernel(operator: Operator, entry: DispatchEntry) -> bool:
    """Whether this key's kernel is the `impl` of a class, as torchgen decides it."""
    return operator.structured and entry.key in _KEYS and entry.kernel != FALLBACK


def _kernels(namespace: str, out: Operator) -> tuple[StructuredKernel, ...]:
    found = []
    for entry in out.dispatch or ():
        if is_structured_kernel(out, entry):
            name = cpp_names.structured_kernel(namespace, entry.kernel)
            found.append(StructuredKernel(name, (entry.key,)))
    return tuple(found)


def _merged(kernels: Iterable[StructuredKernel]) -> tuple[StructuredKernel, ...]:
    """One class for all keys that name it."""
    found: dict[str, StructuredKernel] = {}
    for kernel in kernels:
        before = found.get(kernel.name)
        keys = (*before.keys, *kernel.keys) if before else kernel.keys
        found[kernel.name] = StructuredKernel(kernel.name, keys, kernel.is_generated)
    return tuple(found.values())


def _parameter(arg: Argument) -> Parameter:
    type_ = cpp_types.structured_type(arg.type)
    assert type_ is not None  # _is_structured asked
    return Parameter(type_, cpp_names.parameter_name(arg.name))


def _output(arg: Argument) -> Parameter:
    return Parameter(cpp_types.OUTPUT, cpp_names.parameter_name(arg.name))
