# SPDX-License-Identifier: BSD-3-Clause
"""Entries of namespace aten: what is generated for them, and beside them for the library's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from spec_runs import operator, plan, run
from upstream_output import unfolded

ADD = "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
NATIVE = f"""\
- func: aten::{ADD}
  dispatch:
    CPU: my_add
    CUDA: my_add_cuda
- func: {ADD}
  dispatch:
    CPU: my_add
"""
DERIVATIVES = f"""\
- name: {ADD}
  self: grad
  other: grad * alpha
"""


@pytest.fixture(scope="module")
def out(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("override")
    result = run(folder, NATIVE, DERIVATIVES)
    assert result.status == 0, result.report
    return folder / "out"


def test_pytorchs_operator_is_checked_and_not_defined(out):
    text = (out / "src/schema_0.cpp").read_text()
    assert f'  m.def(\n      "{ADD}",' in text and text.count("m.def(") == 1
    assert (
        f"""\
void check_overridden_0() {{
  // native_functions.yaml:1
  check_overridden(
      "aten::{ADD}",
      {{c10::DispatchKey::CPU, c10::DispatchKey::CUDA}});
}}

TORCHEXT_RUN_FIRST void add_checks_0() {{
  library().check(&check_overridden_0);
}}
"""
        in text
    )


def test_its_kernels_are_registered_apart_from_the_librarys_own(out):
    text = (out / "src/dispatch_0.cpp").read_text()
    assert (
        """\
TORCHEXT_OVERRIDE_IMPL(m, "aten", DispatchKey::CPU) {
  m.impl("aten::add.Tensor", &::lib::native::my_add);
}
"""
        in text
    )
    assert (
        """\
  check_same_device("aten::add.Tensor", "self, other", self, other);
  const SelectedDevice<Home::kCUDA> guard(self);
  return native::my_add_cuda(self, other, alpha);
"""
        in text
    )
    assert (
        """\
TORCHEXT_LIBRARY_IMPL(m, DispatchKey::CPU) {
  m.impl("add.Tensor", &cpu_add_Tensor);
}
"""
        in text
    )


def test_there_is_no_api_no_node_and_no_autograd_kernel_for_it(out):
    assert (out / "include/lib/ops/add.h").read_text().count("struct TORCHEXT_API") == 1
    assert "aten" not in (out / "src/autograd_0.cpp").read_text()


def test_its_kernels_are_declared_and_known_to_the_build(out):
    header = unfolded((out / "include/lib/kernels/add.h").read_text())
    assert "// native_functions.yaml:1: CUDA: aten::add.Tensor\n" in header
    kernels = json.loads((out / "manifest.json").read_text())["kernels"]
    assert [(k["name"], k["key"], k["schema"]) for k in kernels] == [
        ("lib::native::my_add", "CPU", f"aten::{ADD}"),
        ("lib::native::my_add_cuda", "CUDA", f"aten::{ADD}"),
        ("lib::native::my_add", "CPU", ADD),
    ]


def test_a_library_of_nothing_else_has_no_operators(tmp_path):
    assert run(tmp_path, NATIVE.partition("- func: add")[0]).status == 0
    assert "m.def(" not in (tmp_path / "out/src/schema_0.cpp").read_text()
    assert not list((tmp_path / "out").rglob("ops_*.cpp"))


@pytest.mark.parametrize(
    ("keys", "covers"),
    [
        ("CPU, SparseCUDA: k", ("CPU", "SparseCUDA")),
        ("CompositeExplicitAutograd: k", ("CompositeExplicitAutograd",)),
        ("CompositeImplicitAutograd, AutocastCPU: k", ()),
        ("CPU, CUDA, Autograd: k", ()),
        ("CPU, CUDA, AutogradCPU: k", ("CUDA",)),
        ("SparseCPU, NestedTensorCPU, AutogradOther: k", ("NestedTensorCPU",)),
        ("NestedTensorCPU, AutogradNestedTensor: k", ()),
    ],
)
def test_kernels_that_could_hide_a_gradient_are_checked(keys, covers):
    found = plan(f"- func: aten::f(Tensor self) -> Tensor\n  dispatch:\n    {keys}\n")
    assert operator(found, "aten::f").override.covers == covers


def test_a_wrong_entry_leaves_the_librarys_own_of_that_name_alone(tmp_path):
    native = NATIVE.replace("    CPU: my_add\n    CUDA", "    CPU: template\n    CUDA")
    assert run(tmp_path, native, DERIVATIVES, "--keep-going").status == 0
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert [row["op"] for row in manifest["rejected"]] == ["aten::add.Tensor"]
    assert [k["schema"] for k in manifest["kernels"]] == [ADD]
