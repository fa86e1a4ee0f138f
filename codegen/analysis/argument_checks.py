# SPDX-License-Identifier: BSD-3-Clause
"""What the dispatcher takes and a schema does not mean: undefined tensors for `Tensor`, lists of
another length than `int[2]` says. The kernels of an operator's own namespace never see them.

ATen asks for the former below its autograd kernels, for the latter in each kernel by itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from ..cpp import names as cpp_names
from ..plan.autograd import Tensors
from ..plan.calls import LengthCheck
from ..plan.kernels import KernelPlan
from ..schema.schema import Argument, Type
from ..spec.dispatch_keys import COMPUTING_KEYS
from ..spec.model import Operator

# Of a list of results some gradients may be missing, which reach an operator as a list.
_REQUIRED = "Tensor"
# Lists of which ATen's kernels take one of length one for all.
_REPEATED = ("int", "SymInt")
_NUMBERS = (*_REPEATED, "float")


def with_argument_checks(operator: Operator, kernels: Iterable[KernelPlan]) -> Iterator[KernelPlan]:
    """The kernels, those that are computed by C++ with the checks of the arguments."""
    required = tuple(
        Tensors(a.name, cpp_names.parameter_name(a.name))
        for a in operator.func.arguments
        if a.type.bare().plain == _REQUIRED
    )
    lengths = tuple(length_checks(operator))
    for kernel in kernels:
        computes = kernel.key in COMPUTING_KEYS
        if kernel.signature is None or not computes:
            yield kernel
        else:
            yield dataclasses.replace(kernel, required=required, lengths=lengths)


def length_checks(operator: Operator) -> Iterator[LengthCheck]:
    """The arguments that are lists of a fixed length, of which C++ does not know it already."""
    for argument in _fixed(operator):
        type_ = fixed_list(argument.type)
        assert type_ is not None and type_.size is not None
        yield LengthCheck(
            argument.name,
            cpp_names.parameter_name(argument.name),
            (type_.size, *_default_length(argument, type_)),
            type_.args[0].name in _REPEATED,
        )


def repeated_numbers(operator: Operator) -> Iterator[LengthCheck]:
    """The lists of numbers for which one number stands in C++; in Python torch repeats it."""
    for argument, check in zip(_fixed(operator), length_checks(operator)):
        type_ = fixed_list(argument.type)
        if type_ is not None and type_.args[0].name in _NUMBERS:
            yield check


def _fixed(operator: Operator) -> list[Argument]:
    return [a for a in operator.func.arguments if fixed_list(a.type) is not None]


def fixed_list(type_: Type) -> Type | None:
    """The list in a type such as `int[2]` or `int[2]?`; None for other types.

    `int[1]` is ATen's for a number or a list of any length; `bool[3]` is a std::array.
    """
    inner = type_.args[0] if type_.name == "Optional" else type_
    if inner.name != "List" or inner.size is None or inner.size < 2:
        return None
    return None if inner.args[0].name == "bool" else inner


def _default_length(argument: Argument, type_: Type) -> Iterator[int]:
    """The length of a default that is another list, such as `int[2] stride=[]`."""
    text = (argument.default or "").strip()
    if text.startswith("["):
        length = len([item for item in text[1:-1].split(",") if item.strip()])
        if length != type_.size:
            yield length
