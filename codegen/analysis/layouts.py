# SPDX-License-Identifier: BSD-3-Clause
"""`layout:`, what the kernels of an operator may rely on of its arguments' strides."""

from __future__ import annotations

from ..cpp import names as cpp_names
from ..cpp import types as cpp_types
from ..cpp.signatures import Signature
from ..errors import Errors, did_you_mean
from ..plan.calls import LaidOut, Returned, ReturnedValue
from ..schema.schema import Argument
from ..spec.dispatch_keys import COMPOSITE_KEYS, is_strided
from ..spec.model import Line, Operator

# The dispatcher does not look into these: lazily conjugated and negated tensors come as they are.
_UNSEEN = "Tensor[]?"
_VALUES = {"contiguous": "kContiguous", "last_dim_contiguous": "kLastDimContiguous"}
_TYPES = ("Tensor", "Tensor?", "Tensor[]", "Tensor?[]", _UNSEEN)
_STRIDE_TAGS = {
    "flexible_layout", "needs_contiguous_strides", "needs_exact_strides",
    "needs_fixed_stride_order",
}  # fmt: skip


def laid_out(source: Operator, key: str) -> tuple[LaidOut, ...]:
    """The arguments that the kernel of a dispatch key is given in a layout; source: the entry whose
    kernel it is."""
    if not is_strided(key) and key not in COMPOSITE_KEYS:
        return ()
    layouts = {line.text: _VALUES[layout] for layout, line in source.layout if layout != "any"}
    if key != "CompositeImplicitAutograd":  # whose parts the dispatcher sees
        unseen = (a.name for a in source.func.arguments if a.type.bare().plain == _UNSEEN)
        layouts = {name: "kAny" for name in unseen} | layouts
    return tuple(
        LaidOut(
            cpp_names.parameter_name(a.name),
            layouts[a.name],
            a.type.is_write,
            a.name,
            _apart(source, a),
            is_list=a.type.bare().plain not in ("Tensor", "Tensor?"),
        )
        for a in source.func.arguments
        if a.name in layouts
    )


def _apart(operator: Operator, argument: Argument) -> tuple[str, ...]:
    """The parameters that a copy of an argument would be told apart from, which it may be a part
    of. An in-place form reads what was there before it writes, as ATen's do."""
    if operator.name.is_inplace or operator.func.is_out:
        return ()
    others = [a for a in operator.func.arguments if a.type.is_tensor_like and a is not argument]
    return tuple(
        cpp_names.parameter_name(a.name)
        for a in others
        if a.type.is_write or argument.type.is_write
    )


def returned(operator: Operator, signature: Signature) -> Returned:
    """What a wrapper that writes copies back returns: the arguments, where the kernel returns the
    copies."""
    taken = {parameter.name for parameter in signature.parameters}
    values = tuple(
        ReturnedValue(
            cpp_names.parameter_name(argument.name) if argument else None,
            argument is not None and argument.type.name == "Optional",
        )
        for argument in operator.func.written_results
    )
    return Returned(values, "returned" if "result" in taken else "result")


def layout_tags(operator: Operator) -> tuple[str, ...]:
    """The tag by which Inductor lays out all arguments itself, where each must be contiguous."""
    layouts = {line.text: layout for layout, line in operator.layout}
    tensors = [a.name for a in operator.func.arguments if a.type.is_tensor_like]
    all_contiguous = all(layouts.get(name) == "contiguous" for name in tensors)
    if operator.func.mutated or not tensors or _STRIDE_TAGS & {*operator.tags}:
        return ()
    return ("needs_contiguous_strides",) if all_contiguous else ()


def check_layout(operator: Operator, errors: Errors) -> None:
    """Note what is wrong with an entry's `layout:`."""
    if not operator.layout:
        return
    message = hint = None
    if operator.structured_delegate is not None:
        message, hint = "the kernels are those of the out= form", "say it there"
    elif operator.structured_inherits:
        message = "a TensorIterator copes with all layouts"
    elif operator.manual_kernel_registration:
        message = "the kernels are registered by hand"
    elif not cpp_types.has_signature(operator.func):
        message = "an operator with 'layout' needs a C++ signature"
    if message:
        errors.add(operator.at("layout"), message, hint)
    for layout, line in operator.layout:
        _check_argument(operator, layout, line, errors)


def _check_argument(operator: Operator, layout: str, line: Line, errors: Errors) -> None:
    argument = operator.func.argument(line.text)
    if argument is None:
        hint = did_you_mean(line.text, [a.name for a in operator.func.arguments], "it has")
        errors.add(line.location, f"the operator has no argument '{line.text}'", hint)
        return
    is_returned = any(argument.is_returned_as(result) for result in operator.func.returns)
    message = hint = None
    if argument.type.bare().plain not in _TYPES:
        message = f"an argument of type '{argument.type.bare()}' has no layout"
        hint = f"it is for arguments of type {', '.join(_TYPES)}"
    elif layout == "any":
        return
    elif operator.structured and argument.type.is_write:
        message = f"the meta function decides on the layout of '{line.text}'"
        hint = "set_output_contiguous is what the kernel can rely on"
    elif is_returned and operator.meta is not None and argument.type.name == "Optional":
        message = f"the rule decides on the layout of '{line.text}'"
        hint = "'strides' says what the kernel can rely on"
    elif is_returned and not argument.type.is_write:
        message = f"the result would be a view of a copy of '{line.text}'"
    elif is_returned and argument.type.bare().plain not in ("Tensor", "Tensor?"):
        message = f"'{line.text}' is returned, and a list of copies would be in its place"
    if message:
        errors.add(line.location, message, hint)
