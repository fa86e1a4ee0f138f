# SPDX-License-Identifier: BSD-3-Clause
"""The mirror has every entry of PyTorch's own files, and the codegen takes them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from torchext.compat import version

from . import blame, build, spec

ENTRIES = {(2, 13): (687, 641), (2, 14): (688, 642)}  # all, and those that return no view


@pytest.fixture(scope="module")
def operators() -> list[spec.Operator]:
    return spec.operators()


@pytest.fixture(scope="module")
def written(operators, tmp_path_factory) -> tuple[Path, Path]:
    return spec.write(operators, tmp_path_factory.mktemp("mirror"))


def test_every_entry_of_derivatives_is_mirrored_unchanged(operators, written):
    text = spec.DERIVATIVES.read_text(encoding="utf-8")
    assert text.endswith(written[1].read_text(encoding="utf-8"))
    entries = [operator for operator in operators if operator.is_entry]
    assert len(entries) == text.count("\n- name:")


@pytest.mark.skipif(version() not in ENTRIES, reason="not counted for this version of torch")
def test_as_many_entries_are_mirrored_as_there_are(operators):
    entries = [operator for operator in operators if operator.is_entry]
    assert (len(entries), sum(not op.is_view for op in entries)) == ENTRIES[version()]


def test_schemas_are_unchanged(operators, written):
    original = {entry["func"] for entry in spec._load(spec.NATIVE_FUNCTIONS)}
    mirrored = [entry["func"] for entry in yaml.safe_load(written[0].read_text(encoding="utf-8"))]
    generated = {op.schema for op in operators if op.keys.get("tags") == "generated"}
    assert set(mirrored) - generated <= original
    assert len(set(mirrored)) == len(operators)


def test_inplace_forms_that_inherit_a_formula_are_mirrored(operators):
    owners = {operator.name: operator.entry for operator in operators}
    assert owners["mul_.Tensor"] == "mul.Tensor"
    assert owners["pow_.Scalar"] == "pow.Tensor_Scalar"
    assert owners["leaky_relu_"] == "leaky_relu_"
    assert "mul.out" not in owners


def test_the_codegen_takes_every_entry(operators, written, tmp_path):
    command = [sys.executable, "-m", "codegen", "--namespace", spec.NAMESPACE, "--keep-going"]
    command += ["--native-functions", str(written[0]), "--derivatives", str(written[1])]
    subprocess.run([*command, "--out", str(tmp_path)], cwd=build.ROOT, check=True)
    manifest = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["rejected"] == []


def test_errors_of_the_compiler_are_those_of_an_entry(tmp_path):
    source = tmp_path / "nodes_0.cpp"
    source.write_text(
        "int first;\n"
        "// native.yaml:3: mul.Tensor(Tensor self, Tensor other) -> Tensor\n"
        "struct MulBackward0 {};\n"
    )
    output = (
        f"{source}: In function 'f':\n{source}:3:5: error: no such thing\n note\n"
        "/usr/include/x.h:1:1: error: another\n"
    )
    found = blame.of_compiler(output, {source.name: source})
    assert found == ({"mul.Tensor": "no such thing"}, ["another"])


def test_the_operator_of_a_mangled_function_is_found():
    owners = {"MulBackward0": "mul.Tensor", "autograd_mul_Tensor": "mul.Tensor"}
    apply = "_ZN8torchext9generated8upstream12MulBackward05applyEOSt6vectorIN2at6TensorESaIS4_EE"
    assert blame._owner(apply, owners) == "mul.Tensor"
    assert blame._owner("_ZN2at3mulERKNS_6TensorES2_", owners) is None
