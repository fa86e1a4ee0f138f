# SPDX-License-Identifier: BSD-3-Clause
"""The types of schemas, with alias annotations and the values that defaults may have."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

# Types that are one word in a schema.
BASE_TYPES = (
    "Any AnyClassType AnyEnumType Capsule ConstQuantizerPtr Device DeviceIndex Dimname Generator "
    "Layout MemoryFormat None NoneType QScheme Quantizer Scalar ScalarType Storage Stream SymBool "
    "SymInt Tensor bool complex float int str".split()
)
# Types that take other types, and how many (None: two or more).
CONSTRUCTORS = {"Dict": 2, "Future": 1, "Await": 1, "RRef": 1, "Union": None}


@dataclass(frozen=True)
class Alias:
    """An alias annotation: `(a)`, `(a!)`, `(a -> *)`, `(a|b!)`, or the shorthand `!`."""

    before: tuple[str, ...]
    after: tuple[str, ...] = ()
    is_write: bool = False
    is_shorthand: bool = False

    def __str__(self) -> str:
        if self.is_shorthand:
            return "!"
        text = "|".join(self.before) + ("!" if self.is_write else "")
        return f"({text} -> {'|'.join(self.after)})" if self.after else f"({text})"


@dataclass(frozen=True)
class Type:
    """A schema type: `name` is a base type, a class, or one of List, Optional, Tuple, Dict, ..."""

    name: str
    args: tuple[Type, ...] = ()
    size: int | None = None  # of `int[2]`
    alias: Alias | None = None

    def __str__(self) -> str:
        alias = str(self.alias) if self.alias else ""
        if self.name == "List":
            size = "" if self.size is None else self.size
            return f"{self.args[0]}[{size}]{alias}"
        if self.name == "Optional":
            return f"{self.args[0]}?"
        inner = ", ".join(map(str, self.args))
        if self.name == "Tuple":
            return f"({inner}){alias}"
        return f"{self.name}({inner}){alias}" if self.args else f"{self.name}{alias}"

    @cached_property
    def plain(self) -> str:
        """The type without alias annotations and list sizes: what a table is keyed by."""
        return str(self.bare(with_size=False))

    def bare(self, with_size: bool = True) -> Type:
        """The same type without alias annotations (and, if asked, without list sizes)."""
        if not self.args and self.alias is None and self.size is None:
            return self
        args = tuple(arg.bare(with_size) for arg in self.args)
        return Type(self.name, args, self.size if with_size else None)

    def walk(self) -> Iterator[Type]:
        """This type and all types inside it, outermost first."""
        yield self
        for arg in self.args:
            yield from arg.walk()

    @cached_property
    def is_write(self) -> bool:
        """Whether an alias annotation anywhere in the type says that the operator writes to it."""
        return any(t.alias and t.alias.is_write for t in self.walk())

    @property
    def is_alias(self) -> bool:
        """Whether an alias annotation stands anywhere in the type."""
        return any(t.alias for t in self.walk())

    @cached_property
    def alias_set(self) -> tuple[str, ...] | None:
        """The letters of the alias annotation, wherever in the type it stands; None without."""
        return next((t.alias.before for t in self.walk() if t.alias), None)

    @property
    def is_tensor_like(self) -> bool:
        """Whether values of this type hold tensors: Tensor, Tensor?, Tensor[], Tensor?[], ..."""
        return any(t.name == "Tensor" for t in self.walk())


def why_not_default(type_: Type, value: str | list[str]) -> str | None:
    """Why a default value cannot be that of an argument of `type_`; None where it can.

    The dispatcher reads some values that no caller can use (`bool x=1`, `int x=1.5`,
    `Tensor x=None`), and some as others than C++ does (`int x=010`); they are refused here.
    """
    if type_.name == "Optional":
        return None if value == "None" else _why_not_below_optional(type_, value)
    if type_.name == "List":
        return _why_not_of_list(type_, value)
    pattern = _DEFAULTS.get(type_.name)
    if pattern is None:
        return f"an argument of type '{type_.bare()}' cannot have a default"
    if isinstance(value, str) and re.fullmatch(pattern, value):
        if type_.name == "Scalar" and re.fullmatch(_READ_AS_INTEGER, value):
            return f"the default of '{type_.bare()}' needs a decimal point, got '{value}'"
        if _is_in_range(type_.name, value):
            return None
    value = value if isinstance(value, str) else f"[{', '.join(value)}]"
    shown = value if len(value) <= _LONGEST_SHOWN else f"{value[:_LONGEST_SHOWN]}..."
    shown = shown if shown.isprintable() else ascii(shown)[1:-1]
    return f"'{shown}' is not a value of type '{type_.bare()}'"


def _why_not_of_list(type_: Type, value: str | list[str]) -> str | None:
    """The same of a list: its values, or the one that stands for as many as it has."""
    element = type_.args[0]
    if element.name not in ("int", "SymInt", "float", "complex", "bool", "ScalarType"):
        return f"an argument of type '{type_.bare()}' cannot have a default"
    if isinstance(value, str):
        is_name = value.isidentifier() and element.name != "bool"
        if type_.size is None or is_name:
            return f"the default of '{type_.bare()}' must be a list, got '{value}'"
        return why_not_default(element, value)
    # Another list may have another length than its type says, as upstream's `int[1] dim=[-2,-1]`.
    if element.name == "bool" and type_.size not in (None, len(value)):
        plural = "s" * (type_.size != 1)
        return f"the default of '{type_.bare()}' has {type_.size} value{plural}, got {len(value)}"
    return next((m for v in value if (m := why_not_default(element, v))), None)


def _why_not_below_optional(type_: Type, value: str | list[str]) -> str | None:
    """The dispatcher keeps what is spelled there: `1` is no float, 'cpu' no device, `1` no list."""
    inner = type_.args[0]
    is_kept = inner.name not in ("List", "Device")
    if inner.name == "float" and isinstance(value, str):
        if re.fullmatch(rf"-?\d+|{_READ_AS_INTEGER}", value):
            return f"the default of '{type_.bare()}' needs a decimal point, got '{value}'"
    if is_kept or why_not_default(inner, value):
        return why_not_default(inner, value)
    return f"the default of '{type_.bare()}' can only be None"


def _is_in_range(type_name: str, value: str) -> bool:
    """Whether the dispatcher can hold a number; any other value is in range."""
    if type_name in _LIMITS and re.fullmatch(_INTEGER, value):
        limit = _LIMITS[type_name]
        return len(value) <= len(str(-limit)) and -limit <= int(value) < limit
    if not re.fullmatch(f"{_NUMBER}j?", value):
        return True
    number = value.removesuffix("j").removeprefix("-")
    size, least = float(number), sys.float_info.min
    if not re.search("[1-9]", re.split("[eE]", number)[0]):
        return True
    if size == least:  # what is less, and rounded to it, is too small for it
        return Decimal(number) >= Decimal(least)
    return least < size <= sys.float_info.max


_LONGEST_SHOWN = 60  # characters of a value that a message has
_LIMITS = {"int": 2**63, "SymInt": 2**63, "Scalar": 2**63, "DeviceIndex": 2**7}
# A zero in front makes a number of base 8 in C++.
_INTEGER = r"-?(0|[1-9]\d*)"
_NUMBER = r"-?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?"
# Where the type does not say float, the dispatcher reads 1 from `1E5`, and 1e5 from `1e5`.
_READ_AS_INTEGER = r"-?\d+E[+-]?\d+"
# With the escapes that the dispatcher reads, as C++ does; a zero ends a text of C++.
_STRING = r"""(['"])([^\\\x00-\x1f\x7f]|\\[\\'"abfntv]|\\(?!000)[01][0-7]{2})*\1"""
# The dispatcher's, with an index that a DeviceIndex can hold.
_DEVICE = (
    "(cpu|cuda|ipu|xpu|mkldnn|opengl|opencl|ideep|hip|ve|fpga|maia|xla|lazy|vulkan|mps|meta|hpu"
    r"|mtia|privateuseone)(:(\d|[1-9]\d|1[01]\d|12[0-7]))?"
)
_DTYPE = (
    "float|double|half|int|long|short|bool|float16|float32|float64|bfloat16|int8|int16|int32|int64"
    "|uint8|complex32|complex64|complex128|complex|cfloat|cdouble"
)
# What the dispatcher reads as a default of each type; a type that is not here takes none.
_DEFAULTS = {
    "Tensor": "(?!)",  # none but that of `Tensor?`
    "Generator": "(?!)",
    "DeviceIndex": _INTEGER,
    "int": rf"{_INTEGER}|Mean|contiguous_format|strided|float|long|complex",
    "SymInt": _INTEGER,
    "float": _NUMBER,
    "complex": rf"{_NUMBER}j",  # it takes the last character off, whichever it is
    "bool": "True|False",
    "Scalar": rf"{_NUMBER}j?|True|False",
    "str": _STRING,
    "MemoryFormat": "contiguous_format",
    "ScalarType": _DTYPE,
    "Layout": "strided",
    "Device": f"\"{_DEVICE}\"|'{_DEVICE}'",
}
