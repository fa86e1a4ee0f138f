# SPDX-License-Identifier: BSD-3-Clause
"""The table: schema type -> C++ argument, result, and member that a backward node saves.

Spellings are those of ATen's own kernels. A type without a row has no C++ spelling; operators
that use one get boxed kernels.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from ..schema.schema import Argument, Schema, Type

SAVED_VALUE = "save_value<{}>({{}})"  # what a node keeps of a value of a type
OUTPUT = "const at::Tensor&"  # a result that a kernel is given
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
        text = f"::std::array<bool, {plain.size}>"
        return Row(text, text, text)
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


def result_type(type_: Type) -> str | None:
    """The C++ type of a result that is no reference; None where the dispatcher returns none."""
    row = _row(type_)
    return row.value if row and "Scalar[]" not in type_.plain else None


def return_type(func: Schema, *, const_ref: bool = False) -> str | None:
    """The C++ result type of an operator: references where they are the arguments that the
    dispatcher takes them for, and values otherwise; None where there is none."""
    types = [result_type(result.type) for result in func.returns]
    if None in types:
        return None
    if _returns_references(func, const_ref):
        types = ["const at::Tensor&" if const_ref else "at::Tensor&"] * len(types)
    if len(types) < 2:
        return types[0] if types else "void"
    return f"::std::tuple<{', '.join(types)}>"


def _returns_references(func: Schema, const_ref: bool) -> bool:
    """Whether the results are what the dispatcher returns of a boxed kernel whose C++ type has
    references: the first argument of an in-place operator, the last ones of any other."""
    returns, arguments = func.returns, func.arguments
    if not (returns and arguments) or (const_ref and len(returns) > 1):
        return False
    reference = "const at::Tensor&" if const_ref else "at::Tensor&"
    is_first = argument_type(arguments[0], const_ref=const_ref) == reference
    given = arguments[:1] if is_first and len(returns) == 1 else arguments[-len(returns) :]
    return given == func.written_results and all(a.type.name == "Tensor" for a in given)


def has_signature(func: Schema) -> bool:
    """Whether the operator has a C++ function type; one without has boxed kernels only."""
    types = [argument_type(a) for a in func.arguments] + [return_type(func)]
    return None not in types and not (func.is_vararg or func.is_varret)


def saved_type(type_: Type) -> str | None:
    """The type of the member in which a backward node keeps a value of this type."""
    row = _row(type_)
    return row.saved if row else None


def by_value(type_: str) -> str:
    """A parameter's type without what says that it is not written to."""
    return type_.replace("const ", "")
