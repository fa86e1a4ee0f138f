# SPDX-License-Identifier: BSD-3-Clause
"""Spec files to records: every key, its forms, and the places that records remember."""

from __future__ import annotations

import builtins
import importlib
from pathlib import Path

import pytest
import yaml
from spec_runs import output, run

from codegen.errors import Errors
from codegen.spec import load, yaml_reader
from codegen.spec.dispatch_keys import DISPATCH_KEYS
from codegen.spec.keys import spec_keys
from codegen.spec.model import Derivative, Operator


def operators(tmp_path: Path, text: str) -> list[Operator]:
    errors = Errors()
    (tmp_path / "n.yaml").write_text(text, encoding="utf-8")
    found = load.load_operators(tmp_path / "n.yaml", "n.yaml", errors)
    errors.raise_if_any()
    return found


def derivatives(tmp_path: Path, text: str) -> list[Derivative]:
    errors = Errors()
    (tmp_path / "d.yaml").write_text(text, encoding="utf-8")
    found = load.load_derivatives(tmp_path / "d.yaml", "d.yaml", errors)
    errors.raise_if_any()
    return found


def test_an_entry_without_keys_has_the_defaults(tmp_path: Path) -> None:
    (found,) = operators(tmp_path, "- func: f(Tensor x) -> Tensor\n")
    assert str(found.func) == "f(Tensor x) -> Tensor"
    assert found.dispatch is None
    assert found.tags == ()
    assert found.device_check == "ExactSame"
    assert found.device_guard and found.differentiable and found.pt2_compliant


def test_every_key_is_read(tmp_path: Path) -> None:
    text = """\
- func: f.a(Tensor x) -> Tensor
  dispatch: {"CPU, CUDA": f_kernel, Meta: other::f}
  tags: [core, pointwise]
  doc: |
    Does it.

    And more.
  pt2_compliant: False
  differentiable: false
  complex_autograd: False
  device_check: NoCheck
  device_guard: FALSE
  manual_kernel_registration: True
  autogen: f.out, f.b_out
  use_const_ref_for_mutable_tensors: True
  cpp_no_default_args: ['x', y]
  structured: true
  structured_delegate: f.out
  structured_inherits: Base
  precomputed:
  - x -> int y
  ufunc_inner_loop:
    Generic: f (AllAndComplex)
    ScalarOnly: g (Bool)
  pointwise: [x + y, "x"]
  rows: sum(x)
  let: {y: x * 2}
  opaque: True
  meta:
    check: [x.dim == 1]
    results:
      a: {like: x, when: y}
      b: {size: (3), dtype: bool, strides: any}
  allocates: True
  autocast: promote
  vmap: leading(x)
  layout: {x: contiguous, y: any}
  dtypes: {CPU: {x: float32}, "x, y": [Floating, Half]}
  samples:
  - {x: [2, 3], y: '1'}
  variants: method, function
  python_module: nn
  manual_cpp_binding: True
  category_override: factory
"""
    (found,) = operators(tmp_path, text)
    values = {
        name: getattr(found, name)
        for name in spec_keys(Operator)
        if name not in ("func", "dispatch")
    }
    entries = found.dispatch or ()
    assert [(e.key, e.kernel) for e in entries] == [
        ("CPU", "f_kernel"),
        ("CUDA", "f_kernel"),
        ("Meta", "other::f"),
    ]
    rule = values.pop("meta")
    assert [line.text for line in rule.checks] == ["x.dim == 1"]
    assert [
        {
            key: line.text
            for key in ("like", "size", "dtype", "strides", "when")
            if (line := getattr(result, key))
        }
        for result in rule.results
    ] == [{"like": "x", "when": "y"}, {"size": "(3)", "dtype": "bool", "strides": "any"}]
    assert [(r.key, r.argument, r.dtypes) for r in values.pop("dtypes")] == [
        ("CPU", "x", ("Float",)),
        (None, "x", ("Float", "Double", "Half")),
        (None, "y", ("Float", "Double", "Half")),
    ]
    (sample,) = values.pop("samples")
    (x, sizes), (y, text) = sample.arguments
    assert (x.text, [item.text for item in sizes.items]) == ("x", ["2", "3"])
    assert (y.text, text.text, text.is_quoted) == ("y", "1", True)
    values["precomputed"] = [line.text for line in found.precomputed]
    values["layout"] = [(layout, line.text) for layout, line in found.layout]
    values["pointwise"] = [(line.text, line.at(0).column) for line in found.pointwise]
    values["rows"] = [line.text for line in found.rows]
    values["let"] = [(name.text, line.text) for name, line in found.let]
    values["ufunc_inner_loop"] = [(key, line.text) for key, line in found.ufunc_inner_loop]
    assert [str(name) for name in values.pop("autogen")] == ["f.out", "f.b_out"]
    assert values == {
        "tags": ("core", "pointwise"),
        "allocates": True,
        "doc": "Does it.\n\nAnd more.\n",
        "pt2_compliant": False,
        "differentiable": False,
        "complex_autograd": False,
        "device_check": "NoCheck",
        "device_guard": False,
        "manual_kernel_registration": True,
        "use_const_ref_for_mutable_tensors": True,
        "cpp_no_default_args": ("x", "y"),
        "structured": True,
        "structured_delegate": "f.out",
        "structured_inherits": "Base",
        "precomputed": ["x -> int y"],
        "ufunc_inner_loop": [("Generic", "f (AllAndComplex)"), ("ScalarOnly", "g (Bool)")],
        "pointwise": [("x + y", 15), ("x", 23)],
        "rows": ["sum(x)"],
        "let": [("y", "x * 2")],
        "opaque": True,
        "autocast": "promote",
        "vmap": "leading(x)",
        "layout": [("contiguous", "x"), ("any", "y")],
        "variants": ("method", "function"),
        "python_module": "nn",
        "manual_cpp_binding": True,
        "category_override": "factory",
    }


@pytest.mark.parametrize("record", [Operator, Derivative])
def test_every_key_says_what_it_decides(record: type) -> None:
    for name, field in spec_keys(record).items():
        assert len(field.metadata["doc"]) > 10, name
        assert field.metadata["form"] in ("text", "flag", "list", "map", "schema"), name


def test_a_text_with_commas_is_a_list(tmp_path: Path) -> None:
    (found,) = operators(tmp_path, "- func: f(Tensor x) -> Tensor\n  tags: core , pointwise,\n")
    assert found.tags == ("core", "pointwise")


def test_every_dispatch_key_can_be_named(tmp_path: Path) -> None:
    lines = "".join(f"    {key}: kernel\n" for key in sorted(DISPATCH_KEYS))
    text = f"- func: f(Tensor x) -> Tensor\n  dispatch:\n{lines}"
    (found,) = operators(tmp_path, text)
    assert {entry.key for entry in found.dispatch or ()} == DISPATCH_KEYS


def test_places_are_those_of_entry_and_key(tmp_path: Path) -> None:
    text = "# one\n\n- func: f(Tensor x) -> Tensor\n  dispatch:\n    CPU,  CUDA: k\n"
    (found,) = operators(tmp_path, text)
    assert str(found.location) == "n.yaml:3:3"
    assert [str(e.location) for e in found.dispatch or ()] == ["n.yaml:5:5", "n.yaml:5:11"]


def test_a_namespace_is_not_part_of_the_operators_name(tmp_path: Path) -> None:
    (found,) = operators(tmp_path, "- func: lib::f.a(Tensor x) -> Tensor\n")
    assert (str(found.name), found.func.name.namespace) == ("f.a", "lib")


def test_anchors_and_merged_text_are_yaml(tmp_path: Path) -> None:
    text = "- func: f(int x) -> int\n  tags: &t [core]\n- func: g(int x) -> int\n  tags: *t\n"
    assert [found.tags for found in operators(tmp_path, text)] == [("core",), ("core",)]


def test_a_derivative_has_its_formulas_in_order(tmp_path: Path) -> None:
    text = """\
- name: f(Tensor x, Tensor y, Tensor z) -> Tensor
  x, y: both(grad)
  z: "grad  *  z "
  output_differentiability: [True, cond(x)]
"""
    (found,) = derivatives(tmp_path, text)
    assert [(f.text, f.location.line) for f in found.output_differentiability] == [
        ("True", 4),
        ("cond(x)", 4),
    ]
    assert [(f.names, f.text) for f in found.formulas] == [
        (("x", "y"), "both(grad)"),
        (("z",), "grad  *  z"),
    ]
    first, second = found.formulas
    assert [str(place) for place in first.name_locations] == ["d.yaml:2:3", "d.yaml:2:6"]
    assert str(first.at(5)) == "d.yaml:2:14"
    assert str(second.at(9)) == "d.yaml:3:16"


def test_a_formula_over_lines_knows_its_places(tmp_path: Path) -> None:
    text = "- name: f(Tensor x) -> Tensor\n  x: >-\n    grad *\n      other\n    + 1\n"
    ((formula,),) = [d.formulas for d in derivatives(tmp_path, text)]
    offset = formula.text.index("other")
    assert str(formula.at(offset)) == "d.yaml:4:7"


def test_formulas_of_other_keys_stand_apart(tmp_path: Path) -> None:
    text = """\
- name: f(Tensor x) -> Tensor
  dispatch:
    Default:
      x: grad
    AutogradNestedTensor:
      x: nested(grad)
"""
    (found,) = derivatives(tmp_path, text)
    assert [formula.text for formula in found.formulas] == ["grad"]
    assert {key: [f.text for f in formulas] for key, formulas in found.dispatch} == {
        "Default": ["grad"],
        "AutogradNestedTensor": ["nested(grad)"],
    }


SPEC = """\
- func: f(Tensor x, str s="it's") -> Tensor
  dispatch: {CPU: f_cpu, "CUDA, Meta": 'f_other'}
  doc: >-
    Folded
    text, é.
- {func: g(Tensor x) -> Tensor, tags: [core]}
"""
FORMULAS = '- name: f(Tensor x, str s="it\'s") -> Tensor\n  x: |\n    grad *\n      x\n'


def without_libyaml(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_reader, "_FAST_LOADER", yaml.SafeLoader)


def test_libyaml_makes_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("with", "without"):
        (tmp_path / name).mkdir()
    assert run(tmp_path / "with", SPEC, FORMULAS).status == 0
    without_libyaml(monkeypatch)
    assert run(tmp_path / "without", SPEC, FORMULAS).status == 0
    assert output(tmp_path / "with" / "out") == output(tmp_path / "without" / "out")


@pytest.mark.parametrize(
    "text", [SPEC.replace("g(Tensor", "g(Tensr"), SPEC + "- {", SPEC + "\t- x"]
)
def test_libyaml_makes_no_difference_to_mistakes(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_it = run(tmp_path, text)
    without_libyaml(monkeypatch)
    assert run(tmp_path, text) == with_it
    assert with_it.status == 1


@pytest.mark.parametrize("escape", [r"\uD800", r"\ud83d\ude00", r"\U00110000", r"\UFFFFFFFF"])
def test_an_escape_that_is_no_character_is_refused(
    escape: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f'- func: f(Tensor x) -> Tensor\n  doc: "é {escape} b"\n'
    result = run(tmp_path, text)
    message = "not YAML: found invalid Unicode character escape code"
    assert result.report == (
        f'native_functions.yaml:2:13: error: {message}\n    doc: "é {escape} b"\n'
        "              ^\n1 error\n"
    )
    assert result.status == 1
    without_libyaml(monkeypatch)
    result = run(tmp_path, text)
    assert result.status == 1
    assert result.report.startswith("native_functions.yaml:2:")
    assert not (tmp_path / "out").exists()


def test_a_number_that_only_the_python_loader_reads_is_refused(tmp_path: Path) -> None:
    result = run(tmp_path, f"%YAML {'1' * 5000}.1\n---\n- func: f(Tensor x) -> Tensor\n")
    assert result.status == 1
    assert result.report.startswith("native_functions.yaml:1:16: error: not YAML: found extremely")


def test_a_yaml_without_libyaml_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    try:
        assert importlib.reload(yaml_reader)._FAST_LOADER is yaml.SafeLoader
    finally:
        monkeypatch.undo()
        importlib.reload(yaml_reader)


def test_loading_needs_neither_torch_nor_torchgen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_ = builtins.__import__

    def refuse(name: str, *rest: object) -> object:
        assert name.partition(".")[0] not in ("torch", "torchgen"), name
        return import_(name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", refuse)
    assert run(tmp_path, SPEC, FORMULAS).status == 0


def test_blanks_before_a_quoted_formula_move_no_place(tmp_path: Path) -> None:
    text = '- name: f(Tensor x) -> Tensor\n  x: "  grad * y"\n'
    ((formula,),) = [d.formulas for d in derivatives(tmp_path, text)]
    assert str(formula.at(formula.text.index("y"))) == "d.yaml:2:16"
