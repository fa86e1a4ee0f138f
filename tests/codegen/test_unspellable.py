# SPDX-License-Identifier: BSD-3-Clause
"""Specs that would end in C++ that does not compile or means something else."""

from __future__ import annotations

from pathlib import Path

import pytest
from spec_runs import output, run

ENTRY = "- func: {}\n  dispatch:\n    CPU: kernel\n"


@pytest.mark.parametrize(
    ("formula", "column", "why"),
    [
        ("grad * 2 // twice", 16, "'//' begins a comment"),
        ("grad * (2", 16, "')' is missing"),
        ("grad) * 2", 11, "')' closes nothing"),
        ("grad; abort()", 11, "';' ends a statement"),
    ],
)
def test_a_formula_that_is_no_expression_is_refused(
    formula: str, column: int, why: str, tmp_path: Path
) -> None:
    schema = "f(Tensor x) -> Tensor"
    done = run(tmp_path, ENTRY.format(schema), f'- name: {schema}\n  x: "{formula}"\n')
    assert done.status == 1
    place = f"derivatives.yaml:2:{column}"
    assert f"{place}: error: the formula is no C++ expression: {why}" in done.report


@pytest.mark.parametrize(
    "formula",
    [
        'foo("a // b; (", grad)',
        "grad * 2 /* twice; ( */",
        "[&]() { auto a = grad; return a; }()",
        "grad / 2 / 3",
    ],
)
def test_an_expression_with_any_text_inside_is_taken(formula: str, tmp_path: Path) -> None:
    schema = "f(Tensor x) -> Tensor"
    text = f"- name: {schema}\n  x: |\n    {formula}\n"
    assert run(tmp_path, ENTRY.format(schema), text).report == ""


@pytest.mark.parametrize("formula", ["grad * 2", "grads[0]", "grad_parts"])
def test_a_formula_of_a_list_result_gets_all_gradients(formula: str, tmp_path: Path) -> None:
    schema = "f(Tensor x) -> (Tensor[] parts, Tensor total)"
    flags = "  output_differentiability: [True, True]\n"
    done = run(tmp_path, ENTRY.format(schema), f"- name: {schema}\n{flags}  x: {formula}\n")
    assert "'f' returns a list: its gradients are 'grads'" in done.report


def test_grads_of_a_list_result_are_taken_whole(tmp_path: Path) -> None:
    schema = "f(Tensor x) -> Tensor[]"
    done = run(tmp_path, ENTRY.format(schema), f"- name: {schema}\n  x: joined(grads)\n")
    assert done.report == ""


@pytest.mark.parametrize("result", ["Tensor?", "Tensor?[]", "Dict(str, Tensor)"])
def test_a_formula_for_a_result_that_is_no_tensor_or_list_is_refused(
    result, tmp_path: Path
) -> None:
    schema = f"f(Tensor x) -> {result}"
    done = run(tmp_path, ENTRY.format(schema), f"- name: {schema}\n  x: grads\n")
    assert f"a result of type '{result}' cannot have a formula" in done.report


@pytest.mark.parametrize("argument", ["Tensor[]? ts", "Dict(str, Tensor) ts", "Tensor[][] ts"])
def test_tensors_that_no_formula_can_name_must_not_require_grad(argument, tmp_path: Path) -> None:
    schema = f"f({argument}, Tensor x) -> Tensor"
    done = run(tmp_path, ENTRY.format(schema), f"- name: {schema}\n  x: grad\n")
    assert done.report == ""
    (text,) = [t for p, t in output(tmp_path / "out").items() if p.startswith("src/autograd")]
    assert b'check_no_requires_grad("lib::f", "ts", ts);' in text


@pytest.mark.parametrize("key", ["SparseCPU", "Autograd", "AutogradCUDA", "Meta", "Functionalize"])
def test_only_dense_devices_fall_back_to_the_cpu(key: str, tmp_path: Path) -> None:
    native = f"- func: f(Tensor x) -> Tensor\n  dispatch:\n    CPU: k\n    {key}: cpu_fallback\n"
    done = run(tmp_path, native)
    assert f"native_functions.yaml:4:5: error: {key} cannot fall back to the CPU" in done.report


@pytest.mark.parametrize(
    "name",
    ["union", "double", "call", "redispatch", "schema", "name", "overload_name", "Operator"],
)
def test_an_operator_may_be_called_like_a_word_of_cpp(name: str, tmp_path: Path) -> None:
    assert run(tmp_path, ENTRY.format(f"{name}(Tensor x) -> Tensor")).report == ""
    text = output(tmp_path / "out")[f"include/lib/ops/{name.lower()}.h"].decode()
    assert f"struct TORCHEXT_API {name}_ : Operator<{name}_, " in text


def test_two_arguments_with_one_name_in_cpp_are_refused(tmp_path: Path) -> None:
    done = run(tmp_path, ENTRY.format("f(Tensor default, Tensor default_) -> Tensor"))
    assert "two arguments of 'f' would be 'default_' in C++" in done.report


def test_a_backslash_at_the_end_of_a_doc_does_not_swallow_the_declaration(tmp_path: Path) -> None:
    native = ENTRY.format("f(Tensor x) -> Tensor") + "  doc: |\n    a \\\\\n    b \\\n"
    assert run(tmp_path, native).report == ""
    text = output(tmp_path / "out")["include/lib/ops/f.h"].decode()
    assert not [line for line in text.splitlines() if line.endswith("\\")]


def test_tags_that_torch_2_11_lacks_go_through_the_compatibility_header(tmp_path: Path) -> None:
    assert (
        run(tmp_path, ENTRY.format("f(Tensor x) -> Tensor") + "  tags: [inplace, core]\n").status
        == 0
    )
    text = output(tmp_path / "out")["src/schema_0.cpp"].decode()
    assert "{TORCHEXT_TAG_INPLACE at::Tag::core, at::Tag::pt2_compliant_tag}" in text
