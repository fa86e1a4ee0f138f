# SPDX-License-Identifier: BSD-3-Clause
"""What is compiled again after a change."""

import os
import subprocess
import sys

import pytest
from sample_project import SAMPLE, flags, python
from setuptools import Distribution

from torchext.build import BuildExtension, OpLibrary
from torchext.toolchain import linking

pytestmark = pytest.mark.slow


def test_nothing_is_compiled_or_linked_when_nothing_changed(project):
    library = project.package / "_C.so"
    before = library.stat().st_mtime_ns
    build = project.build()
    assert (build.status, build.compiled, build.linked) == (0, [], False)
    assert library.stat().st_mtime_ns == before


def test_touching_a_kernel_compiles_one_object(project):
    os.utime(project.folder / "csrc/square.cpp")
    build = project.build()
    assert (build.compiled, build.linked) == (["csrc/square.cpp"], True), build.text


def test_the_environments_ninja_is_used_where_none_is_on_path(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    library = OpLibrary("lib._C", namespace="lib", native_functions="native_functions.yaml")
    assert BuildExtension(Distribution({"ext_modules": [library]})).use_ninja
    assert os.environ["PATH"].endswith(os.pathsep + str(tmp_path))


def test_a_changed_archive_is_linked_again(tmp_path):
    archive, library = tmp_path / "libextra.a", str(tmp_path / "_C.so")
    archive.write_text("first")
    linker = "import sys; open(sys.argv[-1], 'w').write('\\0libc.so\\0')"
    command = [sys.executable, "-c", linker, f"-L{tmp_path}", "-lextra"]
    assert [linking.link(command, [], library, "libc.so") for _ in range(2)] == [True, False]
    archive.write_text("the second")
    assert [linking.link(command, [], library, "libc.so") for _ in range(2)] == [True, False]


def test_two_builds_at_once_build_one_after_the_other(project):
    project.edit("native_functions.yaml", "float offset", "float amount")
    builds = [project.start(stdout=subprocess.PIPE) for _ in range(2)]
    texts = [build.communicate()[0].decode() for build in builds]
    assert [build.returncode for build in builds] == [0, 0], texts
    assert sum("waiting for another build" in text for text in texts) == 1
    assert sum("csrc/shift.cpp" in text for text in texts) == 1
    code = "import torch, sample_ops; assert sample_ops.ops.shift(torch.ones(1), 2.0).item() == 3"
    assert python(code, project.folder).status == 0


def test_touching_a_header_of_kernels_compiles_its_users(project):
    os.utime(project.folder / "csrc/factors.h")
    assert project.build().compiled == ["csrc/shift.cpp"]


def test_editing_a_docstring_compiles_no_other_operator(project):
    project.edit("native_functions.yaml", "Adds a number.", "Adds an offset.")
    build = project.build()
    assert build.status == 0, build.text
    assert not [path for path in build.compiled if "scale" in path or "square" in path]


def test_editing_a_schema_compiles_its_kernel_and_no_other(project):
    project.edit("native_functions.yaml", "float offset", "float amount")
    build = project.build()
    assert build.status == 0, build.text
    assert "csrc/shift.cpp" in build.compiled
    assert not {"csrc/scale.cpp", "csrc/square.cpp"} & set(build.compiled)
    generated = [path for path in build.compiled if path.startswith("build/generated")]
    all_generated = list((project.folder / "build/generated").rglob("*.cpp"))
    assert 0 < len(generated) < len(all_generated), build.text


def test_moving_yaml_lines_compiles_nothing(project):
    project.edit("native_functions.yaml", "- func: shift", "# one line more\n- func: shift")
    build = project.build()
    assert (build.status, build.compiled) == (0, []), build.text


def test_objects_of_sources_outside_of_the_project_are_inside(project, tmp_path):
    """In the folder of this torch, this flavour and this library."""
    (tmp_path / "outside.cpp").write_text("int outside() { return 1; }\n")
    outside = os.path.relpath(tmp_path / "outside.cpp", project.folder)
    assert outside.startswith("..")
    project.edit("setup.py", '"csrc/*.cpp"', f'"csrc/*.cpp", {outside!r}')
    build = project.build()
    assert build.status == 0, build.text
    assert len(build.compiled) == 1
    (found,) = project.folder.glob("build/**/outside.o")
    (library,) = project.folder.glob("build/temp-torch-*/sample_ops._C")
    assert library in found.parents


def test_another_flag_compiles_everything(project):
    build = project.build(**flags("-Wextra"))
    assert {f"csrc/{path.name}" for path in SAMPLE.glob("csrc/*.cpp")} <= set(build.compiled)


def test_a_deleted_library_is_only_copied_again(project):
    (project.package / "_C.so").unlink()
    (project.package / "_C.json").unlink()
    build = project.build()
    assert (build.compiled, build.linked) == ([], False)
    assert python("import sample_ops", project.folder).status == 0


def test_a_damaged_library_in_the_package_is_replaced(project):
    (project.package / "_C.so").write_bytes(b"half a library")
    build = project.build()
    assert (build.compiled, build.linked) == ([], False)
    assert python("import sample_ops", project.folder).status == 0
