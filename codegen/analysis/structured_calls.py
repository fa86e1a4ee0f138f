# SPDX-License-Identifier: BSD-3-Clause
"""The kernels that are generated for each form of a structured operator.

For every device with an `impl` of its own, for Meta, and, for the functional and in-place forms,
one for all other devices, which fills its results through the out= form.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..cpp import names as cpp_names
from ..cpp import types as cpp_types
from ..cpp.signatures import Signature
from ..plan.calls import GivenArgument, Passed, StructuredCall, home_of
from ..plan.kernels import KernelPlan
from ..schema.schema import Argument
from ..spec.dispatch_keys import is_guarded, needs_cuda
from ..spec.model import Operator
from .layouts import laid_out
from .signatures import checked_tensors
from .structured import COMPOSITE, Group


def structured_kernels(
    group: Group, operator: Operator, signature: Signature
) -> tuple[KernelPlan, ...]:
    """The kernels of one form."""
    found = []
    checks = checked_tensors(operator, signature)
    for kernel in group.plan.kernels:
        for key in kernel.keys:
            call = _call(group, operator, key, kernel.name)
            own, cuda = checks if is_guarded(key) else (), needs_cuda(key)
            found.append(KernelPlan(key, call, signature, device_checks=own, needs_cuda=cuda))
    keys = ("Meta",) if operator is group.out else ("Meta", COMPOSITE)
    for key in keys:
        call = _call(group, operator, key, group.plan.meta_class)
        own = checks if key == "Meta" else ()
        found.append(KernelPlan(key, call, signature, device_checks=own))
    return tuple(found)


def _call(group: Group, operator: Operator, key: str, class_: str) -> StructuredCall:
    """What the form's function for one key does, in terms of its own parameters."""
    func = operator.func
    inputs = [a for a in func.arguments if not (a.is_kwarg_only and a.type.is_write)]
    runs_impl = key not in ("Meta", COMPOSITE)
    # Where an in-place form exists, its kernels cope with a result that is this argument.
    own = group.inplace.func.mutated[0] if group.inplace else None
    others = [a for a in inputs if a.type.is_tensor_like and (not own or a.name != own.name)]
    checks_overlap = runs_impl and not group.is_iterator and bool(func.mutated)
    kernel_arguments = group.precomputed.kernel_arguments(inputs)
    in_layout = laid_out(group.out, key) if runs_impl else ()
    names = {arg.parameter: arg.name for arg in in_layout}
    return StructuredCall(
        form=_form(operator),
        home=home_of(key),
        meta_class=class_,
        written=tuple(_label(a) for a in func.mutated),
        results=len(func.returns),
        meta_arguments=tuple(map(_argument, inputs)),
        impl_arguments=tuple(
            GivenArgument(_label(a), Passed.PRECOMPUTED)
            if is_precomputed
            else _argument(a, names=names)
            for a, is_precomputed in kernel_arguments
            if runs_impl
        ),
        runs_impl=runs_impl,
        keeps_precomputed=bool(group.plan.precomputed) and runs_impl,
        out_handle=(cpp_names.handle_name(group.out.name.identifier) if key == COMPOSITE else None),
        out_arguments=tuple(map(_label, inputs)) if key == COMPOSITE else (),
        separated=((_label(own) if own else None, *map(_label, others)) if checks_overlap else ()),
        laid_out=in_layout,
    )


def _form(operator: Operator) -> str:
    if operator.func.is_out:
        return "Out"
    return "InPlace" if operator.func.mutated else "Functional"


def _label(arg: Argument) -> str:
    return cpp_names.parameter_name(arg.name)


def _argument(arg: Argument, names: Mapping[str, str] = MappingProxyType({})) -> GivenArgument:
    """A parameter as the meta function and the kernels take it; names: of what replaces some."""
    label = _label(arg)
    passed = Passed.CONVERTED if cpp_types.is_converted(arg.type) else Passed.AS_IT_IS
    return GivenArgument(names.get(label, label), passed)
