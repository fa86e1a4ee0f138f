# SPDX-License-Identifier: BSD-3-Clause
"""The types of schemas, with alias annotations and the values that defaults may have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
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

    @property
    def is_tensor_like(self) -> bool:
        """Whether values of this type hold tensors: Tensor, Tensor?, Tensor[], Tensor?[], ..."""
        return any(t.name == "Tensor" for t in self.walk())


def why_not_default(type_: Type, value: str | list[str]) -> str | None:
    """Why a default value cannot be that of an argument of `type_`; None where it can.

    The dispatcher reads some values that no caller can use (`bool x=1`, `int x=1.5`); they are
    refused here.
    """
    if type_.name == "Optional":
        return None if value == "None" else _why_not_below_optional(type_, value)
    if type_.name == "List":
        element = type_.args[0]
        if element.name not in ("int", "SymInt", "float", "complex", "bool", "ScalarType"):
            return f"an argument of type '{type_.bare()}' cannot have a default"
        if isinstance(value, str):
            if type_.size is None:
                return f"the default of '{type_.bare()}' must be a list, got '{value}'"
            return why_not_default(element, value)
        return next((m for v in value if (m := why_not_default(element, v))), None)
    pattern = _DEFAULTS.get(type_.name)
    if pattern is None:
        return f"an argument of type '{type_.bare()}' cannot have a default"
    if isinstance(value, list) or not re.fullmatch(pattern, value):
        value = value if isinstance(value, str) else f"[{', '.join(value)}]"
        shown = value if value.isprintable() else ascii(value)[1:-1]
        return f"'{shown}' is not a value of type '{type_.bare()}'"
    return None


def _why_not_below_optional(type_: Type, value: str | list[str]) -> str | None:
    """The dispatcher keeps what is spelled there: `1` is no float, 'cpu' no device, `1` no list."""
    inner = type_.args[0]
    is_kept = inner.name not in ("List", "Device")
    if inner.name == "float" and isinstance(value, str) and value.lstrip("-").isdigit():
        return f"the default of '{type_.bare()}' needs a decimal point, got '{value}'"
    if is_kept or why_not_default(inner, value):
        return why_not_default(inner, value)
    return f"the default of '{type_.bare()}' can only be None"


_INTEGER = r"-?\d{1,19}"
_NUMBER = r"-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
# With the escapes that the dispatcher reads, as C++ does; a zero ends a text of C++.
_STRING = r"""(['"])([^\\\x00-\x1f\x7f]|\\[\\'"abfntv]|\\(?!000)[01][0-7]{2})*\1"""
_DTYPE = (
    "float|double|half|int|long|short|bool|float16|float32|float64|bfloat16|int8|int16|int32|int64"
    "|uint8|complex32|complex64|complex128|complex|cfloat|cdouble"
)
# What the dispatcher reads as a default of each type; a type that is not here takes none.
_DEFAULTS = {
    "Tensor": "None",
    "Generator": "None",
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
    "Device": _STRING,
}
