# SPDX-License-Identifier: BSD-3-Clause
"""The second shared object: the classes of backward nodes, which need Python."""

import json
import shutil
import zipfile

import pytest
from sample_project import python

NODE = "sample_ops.ops.scale(torch.ones(2, requires_grad=True), 3.0).grad_fn"
USE_IT = f"import torch, sample_ops; node = {NODE}; assert node._saved_factor == 3.0, node"
MUL = """
- func: mul(Tensor self, float factor) -> Tensor
  dispatch:
    CPU: scale_cpu
"""
MUL_FORMULA = """
- name: mul(Tensor self, float factor) -> Tensor
  self: grad * factor
"""
# after importing both
BOTH = """
x = torch.ones(2, requires_grad=True)
mine = sample_ops.ops.mul(x, 3.0).grad_fn
other = torchext.ops.mul(x, x).grad_fn
assert mine.name() == other.name() == "MulBackward0"
assert type(mine) is not type(other)
assert mine._saved_factor == 3.0 and not hasattr(mine, "_saved_self")
assert other._saved_self is x
"""


@pytest.fixture
def copied_package(project, tmp_path):
    """A copy of the built package at another path."""
    return shutil.copytree(project.package, tmp_path / "sample_ops")


def edit_record(package, **changes):
    record = json.loads((package / "_C.json").read_text())
    (package / "_C.json").write_text(json.dumps({**record, **changes}))


def append(project, path, text):
    with open(project.folder / path, "a") as file:
        file.write(text)


def test_loading_a_library_registers_the_classes_of_its_nodes(project):
    result = python(f"{USE_IT}; print(node)", project.folder)
    assert result.status == 0 and "<ScaleBackward0 object at" in result.text, result.text


def test_loading_twice_registers_once(project):
    code = (
        f"{USE_IT}\nimport torchext\n"
        f"torchext.load_library('sample_ops')\n"
        f"assert type({NODE}) is type(node)\n"
    )
    result = python(code, project.folder)
    assert result.status == 0, result.text


def test_the_library_alone_is_enough_for_its_operators(project):
    # as a C++ program has it, which has no Python
    code = (
        f"import torch; torch.ops.load_library({str(project.package / '_C.so')!r})\n"
        "x = torch.ones(2, requires_grad=True)\n"
        "result = torch.ops.sample_ops.scale(x, 3.0)\n"
        "result.sum().backward()\n"
        "print(x.grad, result.grad_fn.name())\n"
    )
    result = python(code, project.folder)
    assert result.status == 0 and "tensor([3., 3.]) ScaleBackward0" in result.text, result.text


@pytest.mark.parametrize("damage", ["missing", "damaged", "of another library"])
def test_a_python_part_that_does_not_load_is_an_import_error(copied_package, damage):
    part = copied_package / "_C_python.so"
    part.unlink()
    if damage == "damaged":
        part.write_bytes(b"half a library")
    elif damage == "of another library":
        shutil.copyfile(copied_package / "_C.so", part)
    result = python("import sample_ops", copied_package.parent)
    assert f"ImportError: {part}" in result.text, result.text


def test_a_python_part_for_another_python_is_refused_before_it_is_opened(copied_package):
    edit_record(copied_package, python="cpython-39-x86_64-linux-gnu")
    (copied_package / "_C.so").write_bytes(b"opening this would be another error")
    result = python("import sample_ops", copied_package.parent)
    assert "on cpython-39-x86_64-linux-gnu, but torch" in result.text, result.text


@pytest.mark.slow
def test_a_library_without_nodes_has_no_python_part(project):
    project.edit("setup.py", '    derivatives="derivatives.yaml",\n', "")
    build = project.build()
    assert build.status == 0, build.text
    assert not (project.package / "_C_python.so").exists()
    assert json.loads((project.package / "_C.json").read_text())["python"] is None
    code = "import torch, sample_ops; assert sample_ops.ops.scale(torch.ones(1), 2.0).item() == 2"
    assert python(code, project.folder).status == 0


@pytest.mark.slow
def test_a_deleted_python_part_is_only_copied_again(project):
    (project.package / "_C_python.so").unlink()
    build = project.build()
    assert (build.status, build.compiled, build.linked) == (0, [], False)
    assert python(USE_IT, project.folder).status == 0


@pytest.mark.slow
def test_two_libraries_of_one_file_name_with_nodes_of_one_name(project):
    append(project, "native_functions.yaml", MUL)
    append(project, "derivatives.yaml", MUL_FORMULA)
    build = project.build()
    assert build.status == 0, build.text
    for order in ("sample_ops, torchext.ops", "torchext.ops, sample_ops"):
        result = python(f"import torch, {order}\n{BOTH}", project.folder)
        assert result.status == 0, result.text


@pytest.mark.slow
def test_the_wheel_has_the_python_part_and_it_works(sample_wheel, clean_python, tmp_path):
    with zipfile.ZipFile(sample_wheel) as archive:
        assert "sample_ops/_C_python.so" in archive.namelist()
    result = python(USE_IT, tmp_path, clean_python)
    assert result.status == 0, result.text
