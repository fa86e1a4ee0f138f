# SPDX-License-Identifier: BSD-3-Clause
"""The table: schema type -> C++ argument, result, and member that a backward node saves.

Spellings are those of ATen's own kernels. A type without a row has no C++ spelling; operators
that use one get boxed kernels.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass

from .schema import Argument, Return, Schema, Type

_OPTIONAL = "::std::optional<{}>"
_VECTOR = "::std::vector<{}>"


@dataclass(frozen=True)
class Row:
    """How one schema type is spelled in C++."""

    argument: str  # as it is passed
    value: str  # as it is returned, or kept in a local variable
    saved: str | None  # as a backward node keeps it; None where it cannot


# Schema types that are one C++ value; their optionals and lists follow from them. Of Generator and
# ConstQuantizerPtr the dispatcher takes no single one, and from 2.13 on of Dimname none at all.
_VALUES = {
    "int": "int64_t",
    "SymInt": "c10::SymInt",
    "SymBool": "c10::SymBool",
    "float": "double",
    "bool": "bool",
    "complex": "c10::complex<double>",
    "ScalarType": "at::ScalarType",
    "Layout": "at::Layout",
    "Device": "at::Device",
    "DeviceIndex": "at::DeviceIndex",
    "MemoryFormat": "at::MemoryFormat",
    "QScheme": "at::QScheme",
    "Dimname": "at::Dimname",
    "Storage": "at::Storage",
    "Stream": "at::Stream",
}
_SAVED_VARIABLE = "torch::autograd::SavedVariable"
_SAVED_VARIABLES = _VECTOR.format(_SAVED_VARIABLE)
_OPTIONAL_TENSOR_LIST = "c10::List<::std::optional<at::Tensor>>"
# Types whose spelling is their own, keyed without alias annotations and list sizes.
_ROWS = {
    "Tensor": Row("const at::Tensor&", "at::Tensor", _SAVED_VARIABLE),
    "Tensor?": Row(
        "const ::std::optional<at::Tensor>&", _OPTIONAL.format("at::Tensor"), _SAVED_VARIABLE
    ),
    "Tensor[]": Row("at::TensorList", _VECTOR.format("at::Tensor"), _SAVED_VARIABLES),
    "Tensor[]?": Row(
        "::std::optional<at::TensorList>", _OPTIONAL.format(_VECTOR.format("at::Tensor")), None
    ),
    "Tensor?[]": Row(
        f"const {_OPTIONAL_TENSOR_LIST}&", _OPTIONAL_TENSOR_LIST, _SAVED_VARIABLES
    ),
    "Scalar": Row("const at::Scalar&", "at::Scalar", "at::Scalar"),
    "Scalar?": Row(
        "const ::std::optional<at::Scalar>&", _OPTIONAL.format("at::Scalar"),
        _OPTIONAL.format("at::Scalar"),
    ),
    "Scalar[]": Row(
        "at::ArrayRef<at::Scalar>", _VECTOR.format("at::Scalar"), _VECTOR.format("at::Scalar")
    ),
    "str": Row("c10::string_view", "::std::string", "::std::string"),
    "str?": Row(
        "::std::optional<c10::string_view>", _OPTIONAL.format("::std::string"),
        _OPTIONAL.format("::std::string"),
    ),
    "str[]": Row(
        "at::ArrayRef<::std::string>", _VECTOR.format("::std::string"),
        _VECTOR.format("::std::string"),
    ),
    "int[]": Row("at::IntArrayRef", _VECTOR.format("int64_t"), _VECTOR.format("int64_t")),
    "int[]?": Row(
        "at::OptionalIntArrayRef", _OPTIONAL.format(_VECTOR.format("int64_t")),
        "c10::OptionalArray<int64_t>",
    ),
    "SymInt[]": Row(
        "c10::SymIntArrayRef", _VECTOR.format("c10::SymInt"), _VECTOR.format("c10::SymInt")
    ),
    "SymInt[]?": Row(
        "at::OptionalSymIntArrayRef", _OPTIONAL.format(_VECTOR.format("c10::SymInt")),
        "c10::OptionalArray<c10::SymInt>",
    ),
    "bool[]": Row("c10::List<bool>", "c10::List<bool>", "c10::List<bool>"),
    "Generator?": Row(*[_OPTIONAL.format("at::Generator")] * 3),
    "Dimname[]": Row("at::DimnameList", _VECTOR.format("at::Dimname"), None),
}  # fmt: skip


def _derived_row(type_: Type) -> Row | None:
    """The row of a type that is made of others: optional, list, dictionary, fixed array."""
    if type_.name in _VALUES:
        value = _VALUES[type_.name]
        return Row(value, value, value)
    args = [_row(arg) for arg in type_.args]
    if not args or any(arg is None for arg in args):
        return None
    values = [arg.value for arg in args if arg]
    if type_.name == "Dict":
        text = f"c10::Dict<{', '.join(values)}>"
        return Row(text, text, text)
    inner = type_.args[0].name
    if type_.name == "Optional":
        if args[0].argument.endswith("&"):
            return None  # there is no optional of a reference
        argument, value = _OPTIONAL.format(args[0].argument), _OPTIONAL.format(values[0])
        if inner == "List":
            element = _row(type_.args[0].args[0])
            return Row(argument, value, element and f"c10::OptionalArray<{element.value}>")
        return Row(argument, value, value) if inner in _VALUES else None
    if type_.name == "List" and type_.size is not None and inner == "bool":
        text = f"::std::array<bool, {type_.size}>"
        return Row(text, text, text)
    if type_.name == "List" and inner in _VALUES:
        value = _VECTOR.format(values[0])
        return Row(f"at::ArrayRef<{values[0]}>", value, value)
    if (
        type_.name == "List"
        and inner == "List"
        and not _holds(type_, "Dimname", "Scalar", "SymInt")
    ):
        text = f"c10::List<{_boxed_list(type_.args[0])}>"
        return Row(text, text, text)
    return None


def _holds(type_: Type, *names: str) -> bool:
    """Whether a type is made of one of these."""
    return any(part.name in names for part in type_.walk())


def _boxed_list(type_: Type) -> str:
    row = _row(type_)
    assert row is not None  # _derived_row asked before
    return f"c10::List<{_row(type_.args[0]).value}>" if type_.name == "List" else row.value


@functools.cache  # a row is made of those of the types inside, each asked for more than once
def _row(type_: Type) -> Row | None:
    plain = type_.bare()
    if plain.name == "List" and plain.size is not None and plain.args[0].name == "bool":
        return _derived_row(plain)
    return _ROWS.get(type_.plain) or _derived_row(plain)


def without_symint(type_: Type) -> Type:
    """The type as a kernel without `_symint` in its name takes it."""
    name = "int" if type_.name == "SymInt" else type_.name
    return Type(name, tuple(map(without_symint, type_.args)), type_.size, type_.alias)


def argument_type(
    arg: Argument, *, symint: bool = True, const_ref: bool = False, list_ref: bool = False
) -> str | None:
    """The C++ type of a parameter; None where there is none.

    const_ref: mutated tensors are const. list_ref: tensor lists are those of structured operators.
    """
    if list_ref and arg.type.bare().plain == "Tensor[]":
        return "const at::ITensorListRef&"
    if arg.type.is_write and arg.type.name == "Tensor":
        return "const at::Tensor&" if const_ref else "at::Tensor&"
    row = _row(arg.type) if symint else _row_without_symint(arg.type)
    return row.argument if row else None


def value_type(type_: Type) -> str | None:
    """The C++ type of a local variable that holds an argument."""
    row = _row(type_.bare())
    return row.value if row else None


def _row_without_symint(type_: Type) -> Row | None:
    """The row with integers in place of SymInt; None where the dispatcher has no SymInt there."""
    return _row(without_symint(type_)) if _row(type_) else None


# How the meta function and kernels of structured operators take what is not spelled as above.
_STRUCTURED = {
    "Tensor?": "at::OptionalTensorRef",
    "Scalar?": "at::OptionalScalarRef",
    "Tensor[]": "const at::ITensorListRef&",
    "Tensor?[]": "at::IOptTensorListRef",
    "DimVector": "at::DimVector",
}
# Those that a meta function may hand to a kernel: their values outlive it.
_PRECOMPUTED = {"Tensor": "at::Tensor", "Scalar": "at::Scalar", "DimVector": "at::DimVector"}


def structured_type(type_: Type) -> str | None:
    """The C++ type of a parameter of a structured operator; None where there is none."""
    plain = without_symint(type_.bare())
    row = _row_without_symint(type_.bare())
    return _STRUCTURED.get(plain.plain) or (row.argument if row else None)


def precomputed_type(type_: Type) -> str | None:
    """The type of a member in which a meta function keeps a value for the kernel."""
    plain = without_symint(type_.bare())
    row = _row(plain)
    is_value = row is not None and row.value == row.argument
    return _PRECOMPUTED.get(plain.plain) or (row.value if row and is_value else None)


def is_converted(type_: Type) -> bool:
    """Whether a dispatcher's argument is converted for a structured operator."""
    holds_symint = any(t.name == "SymInt" for t in type_.walk())
    return type_.plain in ("Tensor?", "Scalar?") or holds_symint


def return_type(returns: Iterable[Return], *, const_ref: bool = False) -> str | None:
    """The C++ result type of an operator; None where there is none."""
    types: list[str] = []
    for result in returns:
        row = _row(result.type)
        if row is None or "Scalar[]" in result.type.plain:  # which the dispatcher does not return
            return None
        if result.type.is_write and result.type.name == "Tensor":
            types.append("const at::Tensor&" if const_ref else "at::Tensor&")
        else:
            types.append(row.value)
    if len(types) < 2:
        return types[0] if types else "void"
    if 0 < sum(type_.endswith("&") for type_ in types) < len(types):
        return None  # the dispatcher cannot unbox a tuple of references and values
    return f"::std::tuple<{', '.join(types)}>"


def has_signature(func: Schema) -> bool:
    """Whether the operator has a C++ function type; one without has boxed kernels only."""
    types = [argument_type(a) for a in func.arguments] + [return_type(func.returns)]
    return None not in types and not (func.is_vararg or func.is_varret)


def saved_type(type_: Type) -> str | None:
    """The type of the member in which a backward node keeps a value of this type."""
    row = _row(type_)
    return row.saved if row else None


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
