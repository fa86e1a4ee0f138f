# SPDX-License-Identifier: BSD-3-Clause
"""The dtype of an expression, against what torch's operators return."""

import pytest
import torch
from expression_strategies import EXPRESSIONS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch_values import FUNCTIONS, value_of

from codegen.fused.dtypes import Category, dtype_of
from codegen.fused.functions import functions
from codegen.fused.reading import Mistake, read
from codegen.fused.tree import Call, Name, text

DTYPES = [
    torch.bool, torch.uint8, torch.int8, torch.int32, torch.int64,
    torch.float16, torch.bfloat16, torch.float32, torch.float64,
]  # fmt: skip
OF_CONDITIONS = ("and", "or", "not")
NUMBERED = sorted(
    n
    for n, f in functions().items()
    if not f.is_of_rows and f.kind != "given" and n != "softplus" and n not in OF_CONDITIONS
)


def dtype_at(found, dtypes):
    """A dtype, where the tensors have these."""
    if found.is_bool:
        return torch.bool
    result = torch.bool
    for name in found.tensors:
        result = torch.promote_types(result, dtypes[name])
    if found.least == Category.FLOAT and not result.is_floating_point:
        return torch.get_default_dtype()
    if found.least == Category.INTEGER and result == torch.bool:
        return torch.int64
    return result


def torchs(name, dtype):
    """What torch's function of this name returns of such tensors; None where it takes none."""
    tensors = [torch.ones(3, dtype=dtype) for _ in functions()[name].arguments]
    try:
        return (FUNCTIONS.get(name) or getattr(torch, name))(*tensors).dtype
    except RuntimeError:
        return None


RETURNED = {
    (name, dtype): found
    for name in NUMBERED
    for dtype in DTYPES
    if (found := torchs(name, dtype)) is not None
}


def test_torch_was_asked_for_most():
    assert len(RETURNED) > 0.8 * len(NUMBERED) * len(DTYPES)


@pytest.mark.parametrize(("name", "dtype"), RETURNED, ids=str)
def test_a_function_returns_the_dtype_that_torchs_returns(name, dtype):
    arguments = functions()[name].arguments
    written = text(Call(name, tuple(map(Name, arguments))))
    kinds = dict.fromkeys(arguments, "tensor")
    found = dtype_of(read(written, kinds), kinds)
    assert dtype_at(found, dict.fromkeys(arguments, dtype)) == RETURNED[name, dtype]


@pytest.mark.parametrize("y", DTYPES, ids=str)
@pytest.mark.parametrize("x", DTYPES, ids=str)
@pytest.mark.parametrize(
    ("expression", "function"),
    [
        ("x + y", torch.add), ("x * y", torch.mul), ("x / y", torch.div),
        ("atan2(x, y)", torch.atan2), ("maximum(x, y)", torch.maximum), ("x < y", torch.lt),
        ("x if x == y else y", lambda x, y: torch.where(x == y, x, y)),
        ("x * 2", lambda x, y: x * 2), ("x * 0.5", lambda x, y: x * 0.5),
        ("x if x == x else 1.5", lambda x, y: torch.where(x == x, x, 1.5)),
        ("sin(x)", lambda x, y: torch.sin(x)), ("x ** 2", lambda x, y: x**2),
        ("(x < y) * x", lambda x, y: (x < y) * x),
    ],
)  # fmt: skip
def test_tensors_and_numbers_are_promoted_as_torch_does(expression, function, x, y):
    kinds = {"x": "tensor", "y": "tensor"}
    expected = function(torch.ones(3, dtype=x), torch.ones(3, dtype=y)).dtype
    found = dtype_of(read(expression, kinds), kinds)
    assert dtype_at(found, {"x": x, "y": y}) == expected


@settings(
    max_examples=500, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
@given(EXPRESSIONS, st.sampled_from([torch.float32, torch.float64]))
def test_expressions_of_floats_have_the_dtype_that_their_parts_have(expression, dtype):
    kinds = dict.fromkeys("xyz", "tensor")
    try:
        tree = read(expression, kinds)
    except Mistake:
        return
    found = dtype_of(tree, kinds)
    if found.tensors:
        tensors = {n: torch.ones(3, dtype=dtype) for n in "xyz"}
        assert value_of(tree, tensors).dtype == dtype_at(found, dict.fromkeys("xyz", dtype))


def test_arguments_that_are_numbers():
    kinds = {"x": "tensor", "a": "Scalar", "f": "float", "n": "int", "b": "bool"}
    assert dtype_of(read("x * a", kinds), kinds).numbers == ("a",)
    for line, least in (("x * f", "FLOAT"), ("x * n", "INTEGER"), ("x * b", "BOOL")):
        assert dtype_of(read(line, kinds), kinds).least == Category[least]
    assert dtype_of(read("x if b else n", kinds), kinds).least == Category.INTEGER
