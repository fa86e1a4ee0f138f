# SPDX-License-Identifier: BSD-3-Clause
"""Wheels and source distributions, used in an environment that has nothing but torch and them."""

import os
import sys
import tarfile
import zipfile

import pytest
from sample_project import ROOT, Project, python, run

pytestmark = pytest.mark.slow


# What neither installing the tool nor calling operators may need: the import of one fails.
WITHOUT = "import sys\nfor name in {}: sys.modules[name] = None\n"
BUILDS = ("setuptools", "yaml", "ninja")


def names_of(wheel) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_tools_wheel_is_pure_and_made_without_torch(tmp_path):
    make = "import setuptools.build_meta as backend\nprint(backend.build_wheel(sys.argv[1]))"
    code = WITHOUT.format(("torch", "yaml", "ninja")) + make
    build = run([sys.executable, "-c", code, str(tmp_path)], ROOT)
    assert build.status == 0, build.text
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    names = names_of(wheel)
    expected = {
        "torchext/py.typed",
        "torchext/codegen/__main__.py",
        "torchext/toolchain/command.py",
        "torchext/csrc/boxed/all.cpp",
        "torchext/csrc/python/all.cpp",
        "torchext/csrc/runtime/all.cpp",
        "torchext/csrc/testing/all.cpp",
        "torchext/csrc/testing/device.h",
    }
    assert expected <= names
    headers = {f"torchext/{path.relative_to(ROOT)}" for path in ROOT.glob("csrc/include/**/*.h")}
    assert headers and headers <= names
    assert not [name for name in names if name.startswith(("tests/", "codegen/", "csrc/"))]
    assert not [name for name in names if name.endswith((".so", ".json"))]


def test_the_operators_are_a_wheel_of_their_own(operators_wheel, torchext_wheel):
    names = {name for name in names_of(operators_wheel) if ".dist-info/" not in name}
    beside = ("_C.so", "_C.json", "_C_operators.json", "_C_python.so", "_C_runtime.so")
    assert names == {f"torchext/{name}" for name in beside}
    with zipfile.ZipFile(operators_wheel) as archive:
        (metadata,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
        needed = archive.read(metadata).decode()
    version = torchext_wheel.name.split("-")[1]
    assert f"Requires-Dist: torchext=={version}\n" in needed


def test_operators_that_are_not_installed_say_how_they_are(torchext_wheel, tmp_path):
    with zipfile.ZipFile(torchext_wheel) as archive:
        archive.extractall(tmp_path)
    result = python("import torchext.ops", tmp_path)
    assert "ImportError: torchext holds no built operator library" in result.text, result.text
    assert result.text.rstrip().endswith(" ./operators")


def test_installed_wheels_work_without_what_builds_them(clean_python, tmp_path):
    code = (
        "import torch\n" + WITHOUT.format(BUILDS) + "import torchext, torchext.ops, sample_ops\n"
        f"assert {str(ROOT)!r} not in torchext.__file__, torchext.__file__\n"
        "x = torch.ones(2, 4)\n"
        "torch.testing.assert_close(torchext.ops.mul(x, x), x)\n"
        "torch.testing.assert_close(sample_ops.ops.scale(x, 2.0), 2 * x)\n"
        "with torchext.override('aten::add.Tensor', lambda a, b: torch.mul(a, b)):\n"
        "    torch.testing.assert_close(x + x, x)\n"
    )
    result = run([clean_python, "-c", code], tmp_path, PATH=str(tmp_path))
    assert result.status == 0, result.text


def test_a_users_wheel_brings_what_overrides_need(clean_python, tmp_path):
    code = (
        "import sys, torch, sample_ops\n"
        "assert 'sample_ops' in sys.modules['torchext._runtime'].__file__\n"
        "import torchext\n"
        "with torchext.override('sample_ops::scale', lambda x, factor: x - factor):\n"
        "    print(sample_ops.ops.scale(torch.ones(1), 2.0).item())\n"
    )
    result = run([clean_python, "-c", code], tmp_path, PATH=str(tmp_path))
    assert (result.status, result.text) == (0, "-1.0\n"), result.text


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
        name for name in names if name.endswith((".so", ".o", "_C.json", "_operators.json"))
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
