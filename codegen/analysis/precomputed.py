# SPDX-License-Identifier: BSD-3-Clause
"""`precomputed:`, what a structured operator's meta function hands to its kernels.

Lines `argument -> type name, ...`, and at last maybe a line `type name, ...`, as torchgen reads
them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..cpp import names as cpp_names
from ..cpp import types as cpp_types
from ..cpp.signatures import Parameter
from ..errors import Errors, did_you_mean
from ..schema.parser import SchemaError, parse_declarations
from ..schema.schema import Argument
from ..spec.model import Line, Operator

_ARROW = "->"


@dataclass(frozen=True)
class Precomputed:
    """What stands in the place of arguments, and what comes after them."""

    replaced: dict[str, tuple[Argument, ...]]
    added: tuple[Argument, ...]

    @property
    def members(self) -> tuple[Parameter, ...]:
        """The members of the struct that the meta function returns."""
        everything = [arg for args in (*self.replaced.values(), self.added) for arg in args]
        return tuple(Parameter(_member_type(arg), _name(arg)) for arg in everything)

    def kernel_arguments(self, inputs: Iterable[Argument]) -> list[tuple[Argument, bool]]:
        """The arguments of a kernel before the results, and whether each is precomputed."""
        found: list[tuple[Argument, bool]] = []
        for arg in inputs:
            if arg.name in self.replaced:
                found += [(a, True) for a in self.replaced[arg.name]]
            else:
                found.append((arg, False))
        return found + [(a, True) for a in self.added]


def _member_type(arg: Argument) -> str:
    type_ = cpp_types.precomputed_type(arg.type)
    assert type_ is not None  # parse_precomputed asked
    return type_


def _name(arg: Argument) -> str:
    return cpp_names.parameter_name(arg.name)


def parse_precomputed(operator: Operator, errors: Errors) -> Precomputed:
    """What the entry's `precomputed:` says; mistakes are noted and left out."""
    replaced: dict[str, tuple[Argument, ...]] = {}
    added: tuple[Argument, ...] = ()
    inputs = [a.name for a in operator.func.arguments if not a.type.is_write]
    for line in operator.precomputed:
        before, arrow, after = line.text.partition(_ARROW)
        if not arrow:
            if line is not operator.precomputed[-1]:
                message = "what replaces no argument stands on the last line"
                errors.add(line.location, message, f"otherwise: argument {_ARROW} type name")
            added = _declarations(line, 0, errors)
            continue
        name = before.strip()
        if name not in inputs:
            hint = did_you_mean(name, inputs, "the arguments are")
            errors.add(line.location, f"'{name}' is no argument that a kernel takes", hint)
        elif name in replaced:
            errors.add(line.location, f"'{name}' is replaced twice")
        else:
            replaced[name] = _declarations(line, len(before) + len(arrow), errors)
    found = Precomputed(replaced, added)
    _check_names(operator, found, errors)
    return found


def _declarations(line: Line, start: int, errors: Errors) -> tuple[Argument, ...]:
    text = line.text[start:]
    try:
        found = parse_declarations(text)
    except SchemaError as error:
        errors.add(line.at(start + error.offset), error.message, error.hint)
        return ()
    kept = []
    for arg in found:
        if cpp_types.precomputed_type(arg.type) is None:
            message = f"a '{arg.type}' would refer to memory of the meta function"
            errors.add(line.at(start), message, "DimVector holds sizes and strides")
        elif arg.default is not None or arg.type.alias:
            errors.add(line.at(start), f"'{arg.name}' is a type and a name alone")
        elif arg.name.upper() == arg.name:
            errors.add(line.at(start), f"'{arg.name}' needs a small letter")
        else:
            kept.append(arg)
    return tuple(kept)


def _check_names(operator: Operator, found: Precomputed, errors: Errors) -> None:
    """A kernel has each name once."""
    inputs = [a for a in operator.func.arguments if not a.type.is_write]
    names = [arg.name for arg, _ in found.kernel_arguments(inputs)]
    names += [a.name for a in operator.func.mutated]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        errors.add(operator.at("precomputed"), f"a kernel would have '{twice}' twice")
