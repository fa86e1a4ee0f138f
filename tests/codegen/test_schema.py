# SPDX-License-Identifier: BSD-3-Clause
"""Schemas: parsing, printing, and the properties that analysis asks for."""

from __future__ import annotations

import dataclasses

import pytest

from codegen.schema.parser import SchemaError, parse_name, parse_schema
from codegen.schema.schema import Alias, Argument, OperatorName, Return, Schema, Type

ROUND_TRIPS = [
    "f() -> ()",
    "f(Tensor self) -> Tensor",
    "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    "mul_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    "f.out(Tensor x, *, Tensor(a!) out0, Tensor(b!) out1) -> (Tensor(a!), Tensor(b!))",
    "lib::f(Tensor! x, Tensor!? y=None, Tensor![] z) -> ()",
    "f(Tensor(a|b -> *) x) -> Tensor(*)[]",
    "f(Tensor[](a!) self, Tensor(b -> *) el) -> Tensor[](a!)",
    "f(int[2] a=[1, 2], int[1]? b=None, SymInt[3] c=0, bool[2] d=[True, False]) -> int[2]",
    "f(Tensor?[] a, Tensor[]? b, (int, str[])? c, Dict(str, Tensor[]) d) -> ((Tensor, int) e, str)",
    "f(str a='it', str b=\"say\", str c='\\n', float d=1e-05, float e=-.5, complex g=2.5j) -> ()",
    "f(Tensor x) -> (Tensor)",
    "f(Tensor x) -> (Tensor values, Tensor indices)",
    "f(Tensor x) -> Tensor out",
    "f(int n, ...) -> ...",
    "f(int n, *, str s, ...) -> (Tensor, ...)",
    "__iand__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    "f(__torch__.torch.classes.quantized.LinearPackedParamsBase p) -> Future(t[])",
]


@pytest.mark.parametrize("text", ROUND_TRIPS)
def test_prints_what_it_parsed(text: str) -> None:
    assert str(parse_schema(text)) == text


def test_prints_other_spacing_in_pytorchs_own() -> None:
    text = " f . a(Tensor(a  !)x ,  int [ 2 ] y =[1,2],*,bool z= True)->( Tensor(a !) , int n )"
    expected = "f.a(Tensor(a!) x, int[2] y=[1,2], *, bool z=True) -> (Tensor(a!), int n)"
    assert str(parse_schema(text)) == expected


def test_parts_are_values() -> None:
    schema = parse_schema("ns::f.ov(Tensor(a!)? x, *, int[2] n=0) -> (Tensor(a!) y, int)")
    tensor = Type("Tensor", alias=Alias(("a",), is_write=True))
    assert schema == Schema(
        OperatorName("f", "ov", "ns"),
        (
            Argument(Type("Optional", (tensor,)), "x"),
            Argument(Type("List", (Type("int"),), 2), "n", "0", is_kwarg_only=True),
        ),
        (Return(tensor, "y"), Return(Type("int"))),
    )
    with pytest.raises(dataclasses.FrozenInstanceError):
        schema.name = OperatorName("g")  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "offset", "message"),
    [
        ("f(Tensr x) -> Tensor", 2, "unknown type 'Tensr'"),
        ("f(Tensor x, int[ y) -> ()", 17, "expected ']' in schema, got 'y'"),
        ("f(Tensor x) -> Tensor @", 22, "unexpected character '@' in schema"),
        ("f(Tensor x", 10, "expected ',' or ')' in schema, got the end"),
        ("f(Tensor x   ", 10, "expected ',' or ')' in schema, got the end"),
        ("f(int x, bool x) -> ()", 14, "argument 'x' stands twice"),
        ("f(int x, bool y=3) -> ()", 16, "'3' is not a value of type 'bool'"),
        ("f(int x=1, bool y) -> ()", 11, "argument 'y' has no default but follows one that has"),
        ("f(int x, *) -> ()", 10, "'*' must be followed by an argument"),
        ("f(*, int x, *, int y) -> ()", 12, "'*' stands twice in the argument list"),
        ("f(..., int x) -> ()", 7, "'...' must be the last argument"),
        ("f(int[1.5] x) -> ()", 6, "the size of a list must be a whole number"),
        ("f.default(int x) -> ()", 2, "'default' is not a valid overload name"),
        ("", 0, "expected an operator name in schema, got the end"),
    ],
)
def test_a_mistake_has_the_offset_of_its_first_character(
    text: str, offset: int, message: str
) -> None:
    with pytest.raises(SchemaError) as error:
        parse_schema(text)
    assert (error.value.offset, error.value.message) == (offset, message)


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("f(int x, int[]" + "[]" * 19 + " y) -> ()", 9),
        ("f(int" + "?" * 1000 + " x) -> ()", 2),
        ("f(" + "(" * 1000, 22),
        ("f() -> (" + "(" * 1000, 28),
        ("f(" + "Dict(str, " * 1000, 197),
        ("f(" + "Future(" * 1000, 142),
        ("f(" + "(" * 10 + "int" + ")[]" * 10, 2),
    ],
    ids=["lists", "optionals", "tuples", "results", "Dict", "Future", "tuples and lists"],
)
def test_a_type_that_is_nested_too_deeply_is_refused(text: str, offset: int) -> None:
    with pytest.raises(SchemaError) as error:
        parse_schema(text)
    assert (error.value.offset, error.value.message) == (
        offset,
        "types are nested more than 20 deep",
    )


def test_types_are_nested_as_deeply_as_twenty() -> None:
    for text in ("int" + "[]" * 19, "int" + "[]?" * 9, "(" * 18 + "int[]" + ")" * 18):
        assert str(parse_schema(f"f({text} x) -> {text}")) == f"f({text} x) -> {text}"


@pytest.mark.parametrize(
    ("start", "what"),
    [("", "an operator name"), ("n::", "an operator name"), ("f.", "an overload name")],
)
def test_a_name_is_no_longer_than_that_of_a_file(start: str, what: str) -> None:
    assert str(parse_name(f"{start}{'f' * 200}")) == f"{start}{'f' * 200}"
    for parse in (parse_name, parse_schema):
        with pytest.raises(SchemaError, match=f"{what} has at most 200 characters") as error:
            parse(f"{start}{'f' * 201}")
        assert error.value.offset == len(start)


@pytest.mark.parametrize(
    ("name", "base", "overload", "unqualified", "identifier"),
    [
        ("mul", "mul", "", "mul", "mul"),
        ("mul.Tensor", "mul", "Tensor", "mul.Tensor", "mul_Tensor"),
        ("aten::mul_.out", "mul_", "out", "mul_.out", "mul__out"),
    ],
)
def test_a_name_has_parts(
    name: str, base: str, overload: str, unqualified: str, identifier: str
) -> None:
    parsed = parse_name(name)
    assert (parsed.base, parsed.overload) == (base, overload)
    assert (parsed.unqualified, parsed.identifier, str(parsed)) == (unqualified, identifier, name)


@pytest.mark.parametrize("text", ["mul(", "mul.", "", "a b", "mul.Tensor()"])
def test_a_name_alone_takes_no_signature(text: str) -> None:
    with pytest.raises(SchemaError):
        parse_name(text)


@pytest.mark.parametrize(
    ("name", "is_inplace"),
    [
        ("mul", False),
        ("mul_", True),
        ("mul_.Tensor", True),
        ("_mul", False),
        ("_mul_", True),
        ("__and__", False),
        ("__iand__", True),
        ("__init__", False),
        ("__or__.Scalar", False),
    ],
)
def test_in_place_forms_are_told_by_their_names(name: str, is_inplace: bool) -> None:
    assert parse_name(name).is_inplace == is_inplace


@pytest.mark.parametrize(
    ("text", "is_out", "is_view", "mutated"),
    [
        ("f(Tensor x) -> Tensor", False, False, []),
        ("f_(Tensor(a!) self) -> Tensor(a!)", False, False, ["self"]),
        ("f.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)", True, False, ["out"]),
        ("zero_out(Tensor x) -> Tensor", False, False, []),
        ("f(Tensor! x, Tensor y, Tensor!? z) -> ()", False, False, ["x", "z"]),
        ("f(Tensor(a!)[] xs) -> ()", False, False, ["xs"]),
        ("f(Tensor(a) x) -> Tensor(a)", False, True, []),
        ("f(Tensor(a -> *) x) -> Tensor(a)[]", False, True, []),
        ("f(Tensor(a!) x) -> (Tensor(a!), Tensor)", False, False, ["x"]),
    ],
)
def test_kinds_of_operators(text: str, is_out: bool, is_view: bool, mutated: list[str]) -> None:
    schema = parse_schema(text)
    assert (schema.is_out, schema.is_view) == (is_out, is_view)
    assert [a.name for a in schema.mutated] == mutated


def argument_type(text: str) -> Type:
    return parse_schema(f"f({text} x) -> ()").arguments[0].type


@pytest.mark.parametrize(
    ("text", "plain", "bare"),
    [
        ("int[2]", "int[]", "int[2]"),
        ("Tensor(a!)?", "Tensor?", "Tensor?"),
        ("Tensor(a)[](b!)", "Tensor[]", "Tensor[]"),
        ("Dict(str, Tensor(a))", "Dict(str, Tensor)", "Dict(str, Tensor)"),
        ("(Tensor!, int[])", "(Tensor, int[])", "(Tensor, int[])"),
    ],
)
def test_a_table_is_keyed_by_types_without_annotations(text: str, plain: str, bare: str) -> None:
    type_ = argument_type(text)
    assert (type_.plain, str(type_.bare())) == (plain, bare)


@pytest.mark.parametrize(
    ("text", "is_tensor_like"),
    [
        ("Tensor", True),
        ("Tensor?[]", True),
        ("(int, Tensor)", True),
        ("int[]", False),
        ("t", False),
    ],
)
def test_what_holds_tensors(text: str, is_tensor_like: bool) -> None:
    assert argument_type(text).is_tensor_like == is_tensor_like


def test_types_are_walked_from_the_outermost() -> None:
    names = [type_.name for type_ in argument_type("Dict(str, Tensor?[])").walk()]
    assert names == ["Dict", "str", "List", "Optional", "Tensor"]


def test_an_argument_is_found_by_name() -> None:
    schema = parse_schema("f(Tensor x, *, int y) -> ()")
    found = schema.argument("y")
    assert found is not None and found.is_kwarg_only
    assert schema.argument("z") is None
