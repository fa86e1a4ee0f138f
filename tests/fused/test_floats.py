# SPDX-License-Identifier: BSD-3-Clause
"""For which dtypes an expression is compiled where `dtypes:` says which a call may have."""

import pytest

from codegen.errors import Errors
from codegen.fused.operators import lowered
from codegen.fused.writing import written_operators
from codegen.spec.load import load_operators

SIXTEEN = ("Half", "BFloat16", "Float")  # and what they are together
# What 16 bits do not have is computed in 32: of several dtypes float32 is always one.
CASES = {
    # nothing said, integers, and what may be another float
    "(Tensor x) -> Tensor": {None: None, "[int64, float32]": None},
    "(Tensor x, Tensor? w=None) -> Tensor": {
        "bfloat16": ("BFloat16",),
        "[float64, bfloat16]": ("BFloat16", "Float", "Double"),
        "[bfloat16, float16]": SIXTEEN,
        "{x: bfloat16}": None,
        "{x: bfloat16, w: float16}": SIXTEEN,
        # beside a float integers decide nothing; alone they are the default dtype
        "{x: bfloat16, w: [float32, int64]}": ("BFloat16", "Float"),
        "{x: int64, w: bfloat16}": None,
        # of each device
        "{CPU: float64, CUDA: bfloat16}": ("BFloat16", "Float", "Double"),
        "{CPU: float64}": None,
        "{CPU: {x: float64}, x: bfloat16, w: bfloat16}": ("BFloat16", "Float", "Double"),
    },
}


def entries_of(text, tmp_path):
    path = tmp_path / "f.yaml"
    path.write_text(text)
    errors = Errors()
    found = lowered("NS", load_operators(path, path.name, errors), [], errors)
    errors.raise_if_any()
    return found


@pytest.mark.parametrize(
    ("schema", "said"), [(schema, said) for schema, cases in CASES.items() for said in cases]
)
@pytest.mark.parametrize("key", ["pointwise", "rows"])
def test_dtypes_of_a_call(key, schema, said, tmp_path):
    own = "x * x * (1 if w is None else w)" if "w" in schema else "x * x"
    said_so = f"  dtypes: {said}\n" if said else ""
    found = entries_of(f"- func: f{schema}\n{said_so}  {key}: {own}\n", tmp_path)
    assert {e.floats for e in found.expressions.values()} == {CASES[schema][said]}
    assert len(found.expressions) > 2
    derived = [op for op in found.operators if str(op.name) != "f"]
    assert all(bool(op.dtypes) == (CASES[schema][said] is not None) for op in derived)


@pytest.mark.parametrize(
    ("said", "types", "floats"),
    [
        ("complex64", ("ComplexFloat", "ComplexDouble"), ()),
        ("[bfloat16, complex32]", ("ComplexHalf", "ComplexFloat", "ComplexDouble"), ("BFloat16",)),
        ("FloatingAndComplex", ("ComplexFloat", "ComplexDouble"), ("Float", "Double")),
        ("AllAndComplex", ("ComplexFloat", "ComplexDouble"), None),
        ("{w: FloatingAndComplex}", ("ComplexFloat", "ComplexDouble"), None),
        ("{x: float32, w: complex64}", ("ComplexFloat", "ComplexDouble"), ()),
        ("All", (), None),
        ("{x: Floating}", (), None),
    ],
)
def test_complex_dtypes_are_those_of_dtypes(said, types, floats, tmp_path):
    """What is derived has them too: a gradient is complex where the result is."""
    text = f"- func: f(Tensor x, Tensor w) -> Tensor\n  dtypes: {said}\n  pointwise: x * sin(w)\n"
    found = entries_of(text, tmp_path)
    assert len(found.expressions) > 2
    assert {e.complex for e in found.expressions.values()} == {types}
    own = [e for name, e in found.expressions.items() if str(name) == "f"]
    assert [e.floats for e in own] == [floats]


def test_forms_have_their_keys_on_the_out_form(tmp_path):
    text = (
        "- func: f(Tensor x) -> Tensor\n"
        "  forms: [f_, f.out]\n  dtypes: bfloat16\n  pointwise: x * x\n"
    )
    found = entries_of(text, tmp_path)
    assert {str(name) for name in found.expressions} > {"f", "f.out", "f_backward"}
    assert {e.floats for e in found.expressions.values()} == {("BFloat16",)}


@pytest.mark.parametrize(
    ("types", "lines"),
    [
        ("{x: bfloat16, i: int64}", ["x * i / sum(x)"]),
        ("{x: bfloat16, i: int64}", ["x + 1", "sum(x * i)"]),
    ],
)
def test_elements_that_16_bits_do_not_have_are_computed_in_32(types, lines, tmp_path):
    results = ", ".join(["Tensor"] * len(lines))
    results = f"({results})" if len(lines) > 1 else results
    written = "".join(f"\n    - {line}" for line in lines)
    text = f"- func: f(Tensor x, Tensor i) -> {results}\n  dtypes: {types}\n  rows:{written}\n"
    found = entries_of(text, tmp_path)
    assert {e.floats for e in found.expressions.values()} == {("BFloat16", "Float")}


@pytest.mark.parametrize(
    "other", ["i[..., None] * 0.5", "1.0 if x > 0 else 0.0", "2 * k if x > 0 else k"]
)
def test_a_result_that_may_have_the_default_dtype_needs_all(other, tmp_path):
    text = (
        "- func: f(Tensor x, Tensor i, Scalar k) -> (Tensor, Tensor)\n"
        "  dtypes: {x: bfloat16, i: int64}\n"
        f"  rows:\n    - x * i[..., None] * k\n    - {other}\n"
    )
    found = entries_of(text, tmp_path)
    assert {e.floats for e in found.expressions.values()} == {None}


def test_gradients_of_a_cast_have_its_dtype(tmp_path):
    text = (
        "- func: f(Tensor x, Tensor i) -> (Tensor, Tensor)\n"
        "  dtypes: {x: float16, i: int64}\n"
        "  rows:\n    - to(x * x, float64)\n    - to(x * x + i[..., None], int8)\n"
    )
    found = entries_of(text, tmp_path)
    floats = {str(name): e.floats for name, e in found.expressions.items()}
    assert floats["f"] == ("Half",)
    assert floats["f_backward"] == ("Half", "Float", "Double")
    assert "  dtypes: {grad_output: [float16, float64], x: [float16]}\n" in written_operators(found)
