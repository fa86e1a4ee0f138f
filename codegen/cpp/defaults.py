# SPDX-License-Identifier: BSD-3-Clause
"""Defaults of a schema's arguments in C++."""

from __future__ import annotations

import re

from ..schema.schema import Argument, Type

_NAMED_DEFAULTS = {
    "True": "true",
    "False": "false",
    "Mean": "at::Reduction::Mean",
    "contiguous_format": "at::MemoryFormat::Contiguous",
    "strided": "at::kStrided",
}
_IN_QUOTES = {'"': r"\"", r"\'": "'", "?": r"\?"}  # two question marks begin a trigraph


def default_value(arg: Argument, *, symint: bool = True) -> str | None:
    """The C++ spelling of an argument's default; None where it has none."""
    if arg.default is None:
        return None
    return _default(arg.type, arg.default.strip(), symint)


def _default(type_: Type, text: str, symint: bool) -> str:
    if text == "None":
        return "{}" if type_.plain == "Tensor?" else "::std::nullopt"
    if type_.name == "Optional":
        return _default(type_.args[0], text, symint)
    if type_.name == "List":
        return _list_default(type_, text, symint)
    if text[0] in "'\"":
        body = re.sub(r'\\.|"|(?<=\?)\?', lambda m: _IN_QUOTES.get(m[0], m[0]), text[1:-1])
        return f'at::Device("{body}")' if type_.name == "Device" else f'"{body}"'
    if text[0] in "-.0123456789":
        return _number(type_.name, "".join(text.split()), symint)
    is_dtype = type_.name in ("ScalarType", "int") and text in _DTYPES
    value = f"at::ScalarType::{_DTYPES[text]}" if is_dtype else _NAMED_DEFAULTS[text]
    # Only of Mean is the type an enumeration that converts to integers.
    return f"static_cast<int64_t>({value})" if type_.name == "int" and text != "Mean" else value


def _number(type_name: str, text: str, symint: bool) -> str:
    """A number, of the type that the dispatcher reads it as: `1` is a double for `float`."""
    if text.endswith("j") or type_name == "float":
        is_integer = text.rstrip("j").lstrip("-").isdigit()
        value = text.rstrip("j") + ".0" * is_integer
        return f"c10::complex<double>(0, {value})" if text.endswith("j") else value
    if text == "-9223372036854775808":
        text = "(-9223372036854775807 - 1)"  # what follows a minus is a number of its own
    return f"c10::SymInt({text})" if type_name == "SymInt" and symint else text


def _list_default(type_: Type, text: str, symint: bool) -> str:
    """As many values as the dispatcher's list has: one default stands for all of `int[2]`."""
    items = [text] * (type_.size or 0)
    if text.startswith("["):
        items = [item.strip() for item in text[1:-1].split(",") if item.strip()]
    values = ", ".join(_default(type_.args[0], item, symint) for item in items)
    is_class = type_.plain == "bool[]" and type_.size is None
    return "c10::List<bool>()" if is_class and not values else f"{{{values}}}"


_DTYPES = {
    "float": "Float", "double": "Double", "half": "Half", "int": "Int", "long": "Long",
    "short": "Short", "bool": "Bool", "float16": "Half", "float32": "Float", "float64": "Double",
    "bfloat16": "BFloat16", "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long",
    "uint8": "Byte", "complex32": "ComplexHalf", "complex64": "ComplexFloat",
    "complex128": "ComplexDouble", "complex": "ComplexFloat", "cfloat": "ComplexFloat",
    "cdouble": "ComplexDouble",
}  # fmt: skip
