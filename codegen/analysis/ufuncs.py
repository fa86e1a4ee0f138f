# SPDX-License-Identifier: BSD-3-Clause
"""`ufunc_inner_loop:`, the scalar functions from which CPU and CUDA kernels are made.

`name (dtypes)` as torchgen reads it (UfuncInnerLoop): dtypes are names of ScalarType and of groups.
"""

from __future__ import annotations

import re

from ..cpp import names as cpp_names
from ..errors import Errors, did_you_mean
from ..plan.kernels import StructuredKernel, UfuncPlan
from ..spec.dtypes import GROUPS
from ..spec.model import Line, Operator

# dtypes that have a scalar type in C++ on which loops compute
_DTYPES = (
    *GROUPS["AllAndComplex"], "Half", "BFloat16", "ComplexHalf", "Bool",
)  # fmt: skip
_LOOP = re.compile(r"\s*([A-Za-z_]\w*)\s*\(([^()]*)\)\s*")
_KEYS = ("CPU", "CUDA")


def ufunc_kernels(namespace: str, operator: Operator) -> tuple[StructuredKernel, ...]:
    """The classes whose `impl` is generated."""
    if not operator.ufunc_inner_loop:
        return ()
    base = operator.func.name.base
    names = ((key, cpp_names.ufunc_kernel(namespace, base, key)) for key in _KEYS)
    return tuple(StructuredKernel(name, (key,), is_generated=True) for key, name in names)


def ufunc_plan(operator: Operator, errors: Errors) -> UfuncPlan | None:
    """The loops of an entry; mistakes are noted."""
    if not operator.ufunc_inner_loop:
        return None
    _check(operator, errors)
    cpu: dict[str, str] = {}
    cuda: dict[str, str] = {}
    for key, line in operator.ufunc_inner_loop:
        name, dtypes = _parse(line, errors)
        for dtype, offset in dtypes:
            if dtype in cpu:
                errors.add(line.at(offset), f"{dtype} has a loop already")
            cpu[dtype] = name
            if key != "CPUScalar":
                cuda[dtype] = name
    for device, loops in (("CPU", cpu), ("CUDA", cuda)):
        if not loops and all(_LOOP.fullmatch(line.text) for _, line in operator.ufunc_inner_loop):
            errors.add(operator.at("ufunc_inner_loop"), f"no loop is for {device}")
    inputs = [a for a in operator.func.arguments if not a.type.is_write]
    label = cpp_names.parameter_name
    return UfuncPlan(
        cpu=tuple(cpu.items()),
        cuda=tuple(cuda.items()),
        tensors=tuple(label(a.name) for a in inputs if a.type.is_tensor_like),
        scalars=tuple(
            (label(a.name), a.type.plain == "Scalar") for a in inputs if not a.type.is_tensor_like
        ),
    )


def _check(operator: Operator, errors: Errors) -> None:
    place = operator.at("ufunc_inner_loop")
    if not operator.structured_inherits:
        hint = "add 'structured_inherits: TensorIteratorBase'"
        errors.add(place, "the loops of 'ufunc_inner_loop' run over an iterator", hint)
    if len(operator.func.mutated) > 1:
        errors.add(place, "a ufunc has one result")
    tensors = [a for a in operator.func.arguments if a.type.is_tensor_like and not a.type.is_write]
    for arg in operator.func.arguments:
        plain = arg.type.bare().plain
        if not arg.type.is_write and plain not in ("Tensor", "Scalar", "int", "float", "bool"):
            errors.add(place, f"a ufunc cannot take the '{arg.type}' {arg.name}")
    if not 1 <= len(tensors) <= 3:
        errors.add(place, f"a ufunc takes one to three tensors, not {len(tensors)}")
    for entry in operator.dispatch or ():
        if entry.key in _KEYS:
            errors.add(entry.location, f"the {entry.key} kernel of a ufunc is generated")


def _parse(line: Line, errors: Errors) -> tuple[str, list[tuple[str, int]]]:
    """The scalar function, and each dtype once, with its offset in the line."""
    match = _LOOP.fullmatch(line.text)
    if match is None or cpp_names.identifier(match.group(1)) != match.group(1):
        errors.add(line.location, "expected a loop as 'function (dtype, dtype, ...)'")
        return "", []
    found: dict[str, int] = {}
    offset = match.start(2)
    for part in match.group(2).split(","):
        word, place = part.strip(), offset + len(part) - len(part.lstrip())
        offset += len(part) + 1
        if word not in GROUPS and word not in _DTYPES:
            hint = did_you_mean(word, [*GROUPS, *_DTYPES], "it can be")
            errors.add(line.at(place), f"'{word}' is no dtype that a loop takes", hint)
        for dtype in GROUPS.get(word, (word,) if word in _DTYPES else ()):
            found.setdefault(dtype, place)
    return match.group(1), list(found.items())
