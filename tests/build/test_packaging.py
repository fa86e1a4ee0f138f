# SPDX-License-Identifier: BSD-3-Clause
"""Wheels and source distributions, used in an environment that has nothing but torch and them."""

import os
import sys
import tarfile
import zipfile

import pytest
from sample_project import ROOT, Project, python, run

pytestmark = pytest.mark.slow


def test_the_wheel_holds_library_record_generator_and_headers(torchext_wheel):
    with zipfile.ZipFile(torchext_wheel) as archive:
        names = set(archive.namelist())
    expected = {
        "torchext/_C.so",
        "torchext/_C.json",
        "torchext/_C_operators.json",
        "torchext/_runtime.so",
        "torchext/_runtime.json",
        "torchext/py.typed",
        "torchext/codegen/__main__.py",
        "torchext/toolchain/command.py",
    }
    assert expected <= names
    headers = {f"torchext/{path.relative_to(ROOT)}" for path in ROOT.glob("csrc/include/**/*.h")}
    assert headers and headers <= names
    assert not [name for name in names if name.startswith(("tests/", "codegen/", "csrc/"))]


def test_installed_wheels_work(clean_python, tmp_path):
    code = (
        "import torch, torchext, torchext.ops, sample_ops\n"
        f"assert {str(ROOT)!r} not in torchext.__file__, torchext.__file__\n"
        "x = torch.ones(2, 4)\n"
        "torch.testing.assert_close(torchext.ops.mul(x, x), x)\n"
        "torch.testing.assert_close(sample_ops.ops.scale(x, 2.0), 2 * x)\n"
        "with torchext.override('aten::add.Tensor', lambda a, b: torch.mul(a, b)):\n"
        "    torch.testing.assert_close(x + x, x)\n"
    )
    result = python(code, tmp_path, clean_python)
    assert result.status == 0, result.text


def test_a_user_builds_against_the_installed_wheel(clean_python, tmp_path):
    project = Project(tmp_path / "mine")
    for name in ("shift", "square"):
        (project.folder / f"csrc/{name}.cpp").unlink()
    specs = (project.folder / "native_functions.yaml").read_text()
    (project.folder / "native_functions.yaml").write_text(specs.partition("\n- func: shift")[0])
    ninja = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
    build = project.build(python=clean_python, PATH=ninja)
    assert build.status == 0, build.text
    code = "import torch, sample_ops; assert sample_ops.ops.scale(torch.ones(1), 2.0).item() == 2"
    assert python(code, project.folder, clean_python).status == 0


def test_the_source_distribution_holds_what_a_build_needs(tmp_path):
    build = run([sys.executable, "setup.py", "--quiet", "sdist", "-d", str(tmp_path)], ROOT)
    assert build.status == 0, build.text
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    suffixes = {".cpp", ".cu", ".cuh", ".h", ".py"}
    needed = {
        str(path.relative_to(ROOT))
        for folder in ("csrc", "codegen", "torchext")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in suffixes
    }
    needed |= {"native_functions.yaml", "derivatives.yaml", "setup.py", "Makefile", "LICENSE"}
    assert needed - names == set()
    assert not [
        name
        for name in names
        if name.endswith((".so", ".o", "_C.json", "_runtime.json", "_operators.json"))
    ]


def test_a_users_source_distribution_holds_specs_kernels_and_headers(project, tmp_path):
    command = [sys.executable, "setup.py", "--quiet", "sdist", "-d", str(tmp_path)]
    assert run(command, project.folder).status == 0
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    needed = {"native_functions.yaml", "derivatives.yaml", "csrc/scale.cpp", "csrc/factors.h"}
    assert needed <= names
    assert not [name for name in names if name.startswith("build/")]
