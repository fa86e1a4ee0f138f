# SPDX-License-Identifier: BSD-3-Clause
"""The functions that formulas call, told apart without a compiler."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from spec_runs import run

from codegen.formula.reading import read
from codegen.formula.torch_functions import TorchFunctions, installed_functions


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("lib::f()", "lib::f", 0),
        ("lib::f(a)", "lib::f", 1),
        ("::lib::f(a, b)", "lib::f", 2),
        ("lib::f(g(a, b), {c, d}, e[1, 2])", "lib::f", 3),
        ("lib::f(pair<int, B>(c, d), std::get<0>(e))", "lib::f", 2),
        ("lib::f(a < b, c)", "lib::f", 2),
        ("lib::f(a > b, c)", "lib::f", 2),
        ("lib::f(a < b, c > (d))", "lib::f", None),  # or the template a of b and c
        ("lib::f([](Tensor x, int y) { return h(x, y); }, a)", "lib::f", 2),
        ('lib::f("a, b)", /* , ) */ c)', "lib::f", 2),
        ("lib::f", "lib::f", None),
        ("lib::in::f(a)", "lib::in::f", 1),
        ("x.y(lib::f(a))", "lib::f", 1),
    ],
)
def test_arguments_of_a_call_are_counted(text: str, name: str, arguments: int | None) -> None:
    found, *_ = read(text).qualified
    assert ("::".join((*found.namespaces, found.name)), found.arguments) == (name, arguments)


def test_calls_without_a_namespace_are_no_methods_and_no_values() -> None:
    text = "f(x.g(), at::h(k), [&](int n) { return n; }(2), static_cast<int>(m), s ? v : w(1))"
    assert [call.text for call in read(text).calls] == ["f", "w"]


def test_calls_of_what_a_lambda_declares_and_of_words_of_cpp_are_no_calls_of_functions() -> None:
    text = "[g = f(1)](int n) { if (n) { return g(n) * sizeof(n); } return h(n); }(2)"
    assert [call.text for call in read(text).calls] == ["f", "h"]


@pytest.fixture
def functions(tmp_path: Path) -> TorchFunctions:
    (tmp_path / "include" / "ATen").mkdir(parents=True)
    (tmp_path / "include" / "ATen" / "Expand.h").write_text("inline bool is_expandable(int);")
    (tmp_path / "helpers").mkdir()
    (tmp_path / "helpers" / "basic.h").write_text("Tensor maybe_multiply(const Tensor& t);")
    listed = tmp_path / "native_functions.yaml"
    listed.write_text("- func: mul.Tensor(Tensor self, Tensor other) -> Tensor\n")
    return TorchFunctions(listed, tmp_path / "include", tmp_path / "helpers")


@pytest.mark.parametrize(
    "name", ["mul", "mul_symint", "mul_out", "mul_outf", "maybe_multiply", "is_expandable"]
)
def test_what_torch_has_is_known(name: str, functions: TorchFunctions) -> None:
    assert functions.has(name)


def test_what_it_has_not_has_a_hint(functions: TorchFunctions) -> None:
    assert not functions.has("maybe_multipy")
    assert functions.hint("maybe_multipy") == "did you mean 'maybe_multiply'?"


@pytest.mark.parametrize("missing", [("torch",), ("torchgen",), ("torch", "torchgen")])
def test_nothing_is_known_without_torch_beside_the_generator(
    missing: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torchgen")
    found = installed_functions(tmp_path)
    assert found is not None and found.has("sigmoid_backward")
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda n: None if n in missing else real(n))
    assert installed_functions(tmp_path) is None


NATIVE = """
- func: f(Tensor self) -> Tensor
  dispatch: {CPU: f}
- func: f_own_backward(Tensor gradient) -> Tensor
  dispatch: {CPU: f}
"""


@pytest.mark.parametrize(
    ("formula", "message", "hint"),
    [
        ("sigmoid_backwad(grad, self)", "'sigmoid_backwad'", "did you mean 'sigmoid_backward'?"),
        ("at::mull(grad, self)", "'mull'", "did you mean 'mul'?"),
        ("f_own_backward(grad)", "'f_own_backward'", "the operator of the library is 'lib::f_own"),
    ],
)
def test_an_unknown_function_is_an_error(
    formula: str, message: str, hint: str, tmp_path: Path
) -> None:
    pytest.importorskip("torchgen")
    result = run(tmp_path, NATIVE, f"- name: f(Tensor self) -> Tensor\n  self: {formula}\n")
    assert result.status == 1
    assert f"there is no function {message} in ATen" in result.report and hint in result.report
    assert result.report.endswith("1 error\n")


@pytest.mark.parametrize(
    "formula",
    [
        "at::sum_to(grad, self.sym_sizes())",
        "infer_size(self.sizes(), self.sizes()).size() ? grad : grad * int64_t(1)",
        "maybe_multiply(grad, 1) + at::mul_symint(grad, grad)",
    ],
)
def test_what_only_headers_have_is_no_error(formula: str, tmp_path: Path) -> None:
    derivatives = f"- name: f(Tensor self) -> Tensor\n  self: '{formula}'\n"
    assert run(tmp_path, NATIVE, derivatives).report == ""


def test_where_there_are_headers_of_ones_own_the_compiler_judges(tmp_path: Path) -> None:
    derivatives = "- headers: lib/own.h\n- name: f(Tensor self) -> Tensor\n  self: own(grad)\n"
    assert run(tmp_path, NATIVE, derivatives).report == ""


def test_functions_of_an_overload_that_has_a_mistake_are_not_missed(tmp_path: Path) -> None:
    native = (
        "- func: f.one(Tensr x) -> Tensor\n  dispatch: {CPU: f}\n"
        "- func: g(Tensor x) -> Tensor\n  dispatch: {CPU: g}\n"
    )
    report = run(tmp_path, native, "- name: g(Tensor x) -> Tensor\n  x: lib::f(grad)\n").report
    assert "Tensr" in report and report.endswith("1 error\n"), report
