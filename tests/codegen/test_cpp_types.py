# SPDX-License-Identifier: BSD-3-Clause
"""Schema types to C++: as argument, as result, as member of a node, as default value."""

from __future__ import annotations

import pytest

from codegen.cpp import defaults as cpp_defaults
from codegen.cpp import types as cpp_types
from codegen.cpp.signatures import Parameter, Signature
from codegen.schema.parser import parse_schema
from codegen.schema.schema import Argument

ARGUMENTS = {
    "Tensor": "const at::Tensor&",
    "Tensor(a)": "const at::Tensor&",
    "Tensor(a!)": "at::Tensor&",
    "Tensor!": "at::Tensor&",
    "Tensor?": "const ::std::optional<at::Tensor>&",
    "Tensor[]": "at::TensorList",
    "Tensor(a!)[]": "at::TensorList",
    "Tensor?[]": "const c10::List<::std::optional<at::Tensor>>&",
    "Scalar": "const at::Scalar&",
    "Scalar?": "const ::std::optional<at::Scalar>&",
    "Scalar[]": "at::ArrayRef<at::Scalar>",
    "int": "int64_t",
    "int?": "::std::optional<int64_t>",
    "int[]": "at::IntArrayRef",
    "int[2]": "at::IntArrayRef",
    "int[1]?": "at::OptionalIntArrayRef",
    "SymInt": "c10::SymInt",
    "SymInt?": "::std::optional<c10::SymInt>",
    "SymInt[2]": "c10::SymIntArrayRef",
    "SymInt[]?": "at::OptionalSymIntArrayRef",
    "float": "double",
    "float?": "::std::optional<double>",
    "float[]": "at::ArrayRef<double>",
    "float[]?": "::std::optional<at::ArrayRef<double>>",
    "bool": "bool",
    "bool?": "::std::optional<bool>",
    "bool[3]": "::std::array<bool, 3>",
    "bool[]": "c10::List<bool>",
    "complex": "c10::complex<double>",
    "str": "c10::string_view",
    "str?": "::std::optional<c10::string_view>",
    "ScalarType?": "::std::optional<at::ScalarType>",
    "Device?": "::std::optional<at::Device>",
    "Layout": "at::Layout",
    "MemoryFormat?": "::std::optional<at::MemoryFormat>",
    "Generator?": "::std::optional<at::Generator>",
    "Storage": "at::Storage",
    "Stream": "at::Stream",
    "Dict(str, Tensor)": "c10::Dict<::std::string, at::Tensor>",
}
RESULTS = {
    "()": "void",
    "Tensor": "at::Tensor",
    "Tensor(a)": "at::Tensor",
    "Tensor[]": "::std::vector<at::Tensor>",
    "(Tensor, Tensor)": "::std::tuple<at::Tensor, at::Tensor>",
    "(Tensor, int, float[])": "::std::tuple<at::Tensor, int64_t, ::std::vector<double>>",
    "Tensor?": "::std::optional<at::Tensor>",
    "int": "int64_t",
    "SymInt[]": "::std::vector<c10::SymInt>",
    "Scalar": "at::Scalar",
    "bool": "bool",
    "str": "::std::string",
}
SAVED = {
    "Tensor": "torch::autograd::SavedVariable",
    "Tensor?": "torch::autograd::SavedVariable",
    "Tensor[]": "::std::vector<torch::autograd::SavedVariable>",
    "Tensor?[]": "::std::vector<torch::autograd::SavedVariable>",
    "int": "int64_t",
    "int[2]": "::std::vector<int64_t>",
    "int[]?": "c10::OptionalArray<int64_t>",
    "SymInt[]": "::std::vector<c10::SymInt>",
    "float[]?": "c10::OptionalArray<double>",
    "str": "::std::string",
    "str?": "::std::optional<::std::string>",
    "Scalar?": "::std::optional<at::Scalar>",
    "bool[2]": "::std::array<bool, 2>",
}
# Types without a C++ spelling: their operators have boxed kernels.
BOXED = [
    "Any", "Future(Tensor)", "(int, str)", "t", "Union(int, str)", "AnyEnumType", "Generator",
    "ConstQuantizerPtr", "ConstQuantizerPtr?", "Tensor?[]?", "Generator[]",
    "Dimname[][]", "SymInt[][]",
]  # fmt: skip


def argument(text: str) -> Argument:
    return parse_schema(f"f({text}) -> ()").arguments[0]


@pytest.mark.parametrize(("schema_type", "cpp"), ARGUMENTS.items())
def test_an_argument_is_spelled_as_aten_does(schema_type: str, cpp: str) -> None:
    assert cpp_types.argument_type(argument(f"{schema_type} x")) == cpp


@pytest.mark.parametrize(("schema_type", "cpp"), RESULTS.items())
def test_results_are_spelled_as_aten_does(schema_type: str, cpp: str) -> None:
    assert cpp_types.return_type(parse_schema(f"f() -> {schema_type}")) == cpp


_REFERENCES = "::std::tuple<at::Tensor&, at::Tensor&>"
_VALUES = "::std::tuple<at::Tensor, at::Tensor>"


@pytest.mark.parametrize(
    ("schema", "cpp"),
    [
        ("f_(Tensor(a!) x, Tensor y) -> Tensor(a!)", "at::Tensor&"),
        ("f(Tensor x, *, Tensor(a!) out) -> Tensor(a!)", "at::Tensor&"),
        ("f(Tensor x, Tensor(a!) y, int n) -> Tensor(a!)", "at::Tensor"),
        ("f(Tensor(a!) x, Tensor(b!) y) -> Tensor(b!)", "at::Tensor"),
        ("f(Tensor x, *, Tensor(a!) p, Tensor(b!) q) -> (Tensor(a!), Tensor(b!))", _REFERENCES),
        ("f(Tensor(a!) p, Tensor(b!) q) -> (Tensor(a!), Tensor(b!))", _REFERENCES),
        ("f(Tensor(a!) p, Tensor(b!) q) -> (Tensor(b!), Tensor(a!))", _VALUES),
        ("f(Tensor(a!) p, Tensor(b!) q, int n) -> (Tensor(a!), Tensor(b!))", _VALUES),
        ("f(Tensor(a!) p) -> (Tensor(a!), Tensor(a!))", _VALUES),
        ("f(Tensor x, Tensor(a!) out) -> (Tensor(a!) out, Tensor arg)", _VALUES),
        ("f(Tensor x, Tensor(a!)? out=None) -> Tensor(a!)", "at::Tensor"),
        ("f(Tensor x) -> Tensor(a!)", "at::Tensor"),
    ],
)  # fmt: skip
def test_results_are_references_where_boxed_kernels_return_the_same_arguments(
    schema: str, cpp: str
) -> None:
    assert cpp_types.return_type(parse_schema(schema)) == cpp


@pytest.mark.parametrize(("schema_type", "cpp"), SAVED.items())
def test_a_node_owns_what_it_saves(schema_type: str, cpp: str) -> None:
    assert cpp_types.saved_type(argument(f"{schema_type} x").type) == cpp


@pytest.mark.timeout(30)
def test_the_work_for_a_list_does_not_double_with_each_one_inside() -> None:
    cpp = cpp_types.argument_type(argument("int" + "[]" * 19 + " x"))
    assert cpp is not None and cpp.startswith("c10::List<" * 18)


@pytest.mark.parametrize("schema_type", BOXED)
def test_a_type_without_a_spelling_has_none(schema_type: str) -> None:
    schema = parse_schema(f"f({schema_type} x) -> ({schema_type} y)")
    assert cpp_types.argument_type(schema.arguments[0]) is None
    assert cpp_types.return_type(schema) is None
    assert not cpp_types.has_signature(schema)


@pytest.mark.parametrize("schema", ["f(Tensor x, ...) -> Tensor", "f(Tensor x) -> ..."])
def test_an_open_number_of_values_has_no_signature(schema: str) -> None:
    assert not cpp_types.has_signature(parse_schema(schema))


@pytest.mark.parametrize(
    ("schema_type", "cpp"),
    [
        ("SymInt", "int64_t"),
        ("SymInt[2]", "at::IntArrayRef"),
        ("SymInt?", "::std::optional<int64_t>"),
        ("SymInt[]?", "at::OptionalIntArrayRef"),
        ("Tensor", "const at::Tensor&"),
    ],
)
def test_a_kernel_without_symint_takes_integers(schema_type: str, cpp: str) -> None:
    assert cpp_types.argument_type(argument(f"{schema_type} x"), symint=False) == cpp


def test_mutated_tensors_can_be_passed_as_const() -> None:
    schema = parse_schema("f(Tensor(a!) x) -> Tensor(a!)")
    const = "const at::Tensor&"
    assert cpp_types.argument_type(schema.arguments[0], const_ref=True) == const
    assert cpp_types.return_type(schema, const_ref=True) == const
    # torch would return the first argument of a boxed kernel
    out = parse_schema("f(Tensor x, *, Tensor(a!) out) -> Tensor(a!)")
    assert cpp_types.return_type(out, const_ref=True) == "at::Tensor"


@pytest.mark.parametrize(
    ("text", "default"),
    [
        ("int x", None),
        ("int x=-1", "-1"),
        ("int x=- 1", "-1"),
        ("int x=-9223372036854775808", "(-9223372036854775807 - 1)"),
        ("int x=float", "static_cast<int64_t>(at::ScalarType::Float)"),
        ("int x=long", "static_cast<int64_t>(at::ScalarType::Long)"),
        ("int? x=complex", "static_cast<int64_t>(at::ScalarType::ComplexFloat)"),
        ("int x=strided", "static_cast<int64_t>(at::kStrided)"),
        ("int x=contiguous_format", "static_cast<int64_t>(at::MemoryFormat::Contiguous)"),
        ("float x=1", "1.0"),
        ("float x=-0", "-0.0"),
        ("float x=999999999999999999999999999999", "999999999999999999999999999999.0"),
        ("float x=1.", "1."),
        ("Scalar x=1", "1"),
        ("int? x=None", "::std::nullopt"),
        ("int? x=3", "3"),
        ("Tensor? x=None", "{}"),
        ("Tensor[]? x=None", "::std::nullopt"),
        ("float x=1e-05", "1e-05"),
        ("bool x=True", "true"),
        ("Scalar x=False", "false"),
        ("Scalar x=2.5", "2.5"),
        ("complex x=-2j", "c10::complex<double>(0, -2.0)"),
        ("Scalar x=2j", "c10::complex<double>(0, 2.0)"),
        ("SymInt x=1", "c10::SymInt(1)"),
        ("int[2] x=1", "{1, 1}"),
        ("int[0] x=1", "{}"),
        (
            "int[] x=[Mean, float]",
            "{at::Reduction::Mean, static_cast<int64_t>(at::ScalarType::Float)}",
        ),
        ("SymInt[2] x=1", "{c10::SymInt(1), c10::SymInt(1)}"),
        ("int[] x=[]", "{}"),
        ("int[2] x=[1, -2]", "{1, -2}"),
        ("bool[2] x=[True,False]", "{true, false}"),
        ("bool[2] x=True", "{true, true}"),
        ("bool[] x=[]", "c10::List<bool>()"),
        ("float[] x=[0.5, 1]", "{0.5, 1.0}"),
        ("complex[] x=[1j, 2.5j]", "{c10::complex<double>(0, 1.0), c10::complex<double>(0, 2.5)}"),
        ("ScalarType[] x=[float, int]", "{at::ScalarType::Float, at::ScalarType::Int}"),
        ("int x=Mean", "at::Reduction::Mean"),
        ("ScalarType x=long", "at::ScalarType::Long"),
        ("ScalarType? x=bfloat16", "at::ScalarType::BFloat16"),
        ("Layout x=strided", "at::kStrided"),
        ("MemoryFormat x=contiguous_format", "at::MemoryFormat::Contiguous"),
        ("Device x='cuda:1'", 'at::Device("cuda:1")'),
        ("str x='mean'", '"mean"'),
        ("str x='say \"x\"'", r'"say \"x\""'),
        (r'str x="say \"x\""', r'"say \"x\""'),
        (r"str x='it\'s'", '"it\'s"'),
        (r"str x='a\\b\n'", r'"a\\b\n"'),
        ("str x='???/'", r'"?\?\?/"'),
        ("str? x='mean'", '"mean"'),
    ],
)
def test_a_default_is_spelled_in_cpp(text: str, default: str | None) -> None:
    assert cpp_defaults.default_value(argument(text)) == default


def test_a_default_without_symint_is_an_integer() -> None:
    assert cpp_defaults.default_value(argument("SymInt[2] x=1"), symint=False) == "{1, 1}"
    assert cpp_defaults.default_value(argument("SymInt x=1"), symint=False) == "1"


def test_a_signature_is_a_type_a_declaration_and_arguments() -> None:
    found = Signature("int", (Parameter("bool", "a"), Parameter("long", "b", "1")))
    assert (found.type, found.pointer) == ("int(bool, long)", "int (*)(bool, long)")
    assert found.prototype("f") == "int f(bool a, long b)"
    assert found.prototype("f", defaults=True) == "int f(bool a, long b = 1)"
    assert found.names == "a, b"
