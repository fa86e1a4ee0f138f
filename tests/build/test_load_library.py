# SPDX-License-Identifier: BSD-3-Clause
"""Importing torchext, and loading a library that fits, does not fit, or is not there."""

import json
import shutil
import sys
from pathlib import Path

import pytest
import torch
from sample_project import ROOT, python, run

from torchext.library import require_fit
from torchext.toolchain import cache
from torchext.toolchain.record import BuildRecord

# Prints the ImportError of a second library and goes on working with the first
LOAD_AND_GO_ON = """
import torch, torchext
import sample_ops
try:
    torchext.load_library({path!r})
except ImportError as error:
    print("ImportError:", error)
print("square:", sample_ops.ops.square(torch.ones(1) * 3).item())
"""


@pytest.fixture
def copied_package(project, tmp_path):
    """A copy of the built package at another path."""
    return shutil.copytree(project.package, tmp_path / "sample_ops")


def edit_record(package, **changes):
    record = json.loads((package / "_C.json").read_text())
    (package / "_C.json").write_text(json.dumps({**record, **changes}))


def test_importing_torchext_imports_neither_torch_nor_a_library():
    code = (
        "import sys, torchext, torchext.build\n"
        "assert torchext.__version__ and 'ops' in dir(torchext)\n"
        "loaded = [m for m in sys.modules if m.split('.')[0] == 'torch' or m == 'torchext.ops']\n"
        "assert not loaded, loaded\n"
        "assert not any('_C.so' in line for line in open('/proc/self/maps'))\n"
    )
    result = python(code, ROOT)
    assert result.status == 0, result.text


def test_an_unknown_attribute_of_torchext_is_an_attribute_error():
    result = python("import torchext; torchext.nonsense", ROOT)
    assert "module 'torchext' has no attribute 'nonsense'" in result.text


def test_a_built_library_loads_by_package_and_by_path(project):
    code = (
        "import torch, torchext, sample_ops\n"
        f"by_path = torchext.load_library({str(project.package / '_C.so')!r})\n"
        f"by_folder = torchext.load_library({str(project.package)!r})\n"
        "by_name = torchext.load_library('sample_ops')\n"
        "assert by_path is by_name is by_folder is torch.ops.sample_ops\n"
        "x = torch.ones(2, requires_grad=True)\n"
        "torch.ops.sample_ops.scale(x, 3.0).sum().backward()\n"
        "assert x.grad.tolist() == [3.0, 3.0]\n"
    )
    result = python(code, project.folder)
    assert result.status == 0, result.text


def test_the_path_of_a_library_is_found_without_opening_it(project):
    code = (
        "import sys, torchext\n"
        "path = torchext.find_library('sample_ops')\n"
        f"assert path == {str(project.package / '_C.so')!r}, path\n"
        "assert 'torch' not in sys.modules\n"
        "assert path not in open('/proc/self/maps').read()\n"
    )
    result = python(code, project.folder)
    assert result.status == 0, result.text


def test_the_library_needs_no_libtorch_python(project):
    assert b"libtorch_python" not in (project.package / "_C.so").read_bytes()


@pytest.mark.parametrize(
    "changes, phrase",
    [
        ({"torch": "2.9.1+cpu"}, "was built for torch 2.9.1+cpu"),
        ({"cuda": "11.8"}, "(CUDA 11.8, C++11 ABI)"),
        ({"cxx11_abi": False}, "pre-C++11 ABI"),
    ],
)
def test_a_library_for_another_torch_is_refused_before_it_is_opened(
    copied_package, changes, phrase
):
    edit_record(copied_package, **changes)
    (copied_package / "_C.so").write_bytes(b"opening this would be another error")
    result = python("import sample_ops", copied_package.parent)
    assert "ImportError" in result.text and phrase in result.text, result.text
    assert f"but torch {torch.__version__}" in result.text
    assert "python -m pip install --no-build-isolation --no-deps --force-reinstall" in result.text


@pytest.fixture
def installed_tool(tmp_path):
    """The tool beside operators for another torch, as they are after torch was replaced."""
    package = shutil.copytree(
        ROOT / "torchext", tmp_path / "torchext", ignore=shutil.ignore_patterns("_C*")
    )
    for folder in ("codegen", "csrc"):
        (package / folder).symlink_to(ROOT / folder)
    record = json.loads((ROOT / "torchext" / "_C.json").read_text())
    (package / "_C.json").write_text(json.dumps({**record, "torch": "2.9.1+cpu"}))
    for name in ("_C.so", "_C_runtime.so"):
        (package / name).write_bytes(b"opening this would be another error")
    return tmp_path


@pytest.mark.slow
def test_torchexts_own_module_is_compiled_where_no_library_brings_one_that_fits(installed_tool):
    code = (
        "import sys, torchext\n"
        "print(torchext.fallback.stats())\n"
        "print(sys.modules['torchext._runtime'].__file__)\n"
    )
    result = python(code, installed_tool)
    assert result.status == 0, result.text
    stats, path = result.text.splitlines()[-2:]
    assert stats == "{}" and path.startswith(str(cache.folder())), result.text


def test_torchexts_own_module_needs_a_compiler_where_nobody_brings_it(installed_tool, tmp_path):
    command = [sys.executable, "-c", "import torchext; torchext.fallback.stats()"]
    result = run(command, installed_tool, CXX="no-compiler", TORCHEXT_CACHE_DIR=str(tmp_path / "c"))
    assert "ImportError: torchext's Python module cannot be compiled: " in result.text
    assert "CXX=no-compiler is not an executable" in result.text


@pytest.mark.parametrize(
    "version", ["2.13.0.dev20260101+cpu", "2.13.0a0+git1a2b3c4", "2.13.0+gitab"]
)
def test_a_torch_that_is_no_release_fits_none_but_itself(version):
    def of(version):
        return BuildRecord("ns", "0", version, None, True, False)

    assert of(version).fits(of(version))
    assert not of(version).fits(of("2.13.0+cpu")) and not of("2.13.0").fits(of(version))
    assert of("2.13.0+cpu").fits(of("2.13.1"))


@pytest.mark.parametrize(
    ("origin", "said"),
    [
        ({"url": "file:///a%20b/ops", "dir_info": {}}, " '/a b/ops'"),
        ({"url": "file:///x/my_ops-1-cp311.whl", "archive_info": {}}, ", in the folder of its"),
        ({"url": "file:///x/my_ops-1.tar.gz", "archive_info": {}}, " /x/my_ops-1.tar.gz"),
        (
            {"url": "https://host/ops", "vcs_info": {"vcs": "git", "commit_id": "1a2b"}},
            " git+https://host/ops@1a2b",
        ),
        (
            {
                "url": "https://host/ops",
                "vcs_info": {"vcs": "git", "commit_id": "1a2b"},
                "subdirectory": "operators",
            },
            " 'git+https://host/ops@1a2b#subdirectory=operators'",
        ),
        (None, " --no-binary my-ops my-ops"),
    ],
    ids=["folder", "wheel", "archive", "repository", "part of a repository", "index"],
)
def test_how_to_build_it_is_what_it_was_installed_from(origin, said, tmp_path, monkeypatch):
    package, info = tmp_path / "my_ops", tmp_path / "my_ops-1.dist-info"
    for folder in (package, info):
        folder.mkdir()
    (package / "_C.so").touch()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-ops\nVersion: 1\n")
    (info / "top_level.txt").write_text("my_ops\n")
    if origin is not None:
        (info / "direct_url.json").write_text(json.dumps(origin))
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError) as error:
        require_fit(str(package / "_C.so"))
    assert said in str(error.value)


def test_a_torch_that_differs_in_the_patch_version_is_accepted(copied_package):
    record = json.loads((copied_package / "_C.json").read_text())
    edit_record(copied_package, torch=".".join(record["torch"].split(".")[:2]) + ".99")
    assert python("import sample_ops", copied_package.parent).status == 0


def test_a_library_that_is_not_built_says_how_to_build_it(copied_package):
    (copied_package / "_C.so").unlink()
    (copied_package / "_C.json").unlink()
    result = python("import sample_ops", copied_package.parent)
    assert "holds no built operator library. Build it" in result.text


def test_a_library_without_a_record_is_refused(copied_package):
    (copied_package / "_C.json").unlink()
    assert "has no usable build record" in python("import sample_ops", copied_package.parent).text


@pytest.mark.parametrize("content", ["null", "3", "[]", "{}", "{", ""])
def test_a_library_with_a_damaged_record_is_refused(content, copied_package):
    (copied_package / "_C.json").write_text(content)
    result = python("import sample_ops", copied_package.parent)
    assert "ImportError" in result.text and "has no usable build record" in result.text


def test_a_record_without_texts_is_refused(copied_package):
    edit_record(copied_package, torch=2.13, namespace=None)
    result = python("import sample_ops", copied_package.parent)
    assert "_C.json has no text for namespace, torch" in result.text


def test_an_unknown_package_is_an_import_error():
    result = python("import torchext; torchext.load_library('no_such_ops')", ROOT)
    assert "ImportError: there is no package 'no_such_ops'" in result.text


def test_a_second_library_with_the_same_operators_is_refused_and_the_process_lives(
    project, copied_package
):
    second = str(copied_package / "_C.so")
    result = python(LOAD_AND_GO_ON.format(path=second), project.folder)
    assert result.status == 0, result.text
    error = result.text.partition("ImportError:")[2]
    assert second in error and str(project.package / "_C.so") in error, result.text
    assert "square: 9.0" in result.text


def test_operators_are_attributes_of_torchext_ops():
    code = (
        "import torch, torchext.ops\n"
        "assert torchext.ops.rms_norm is torch.ops.myns.rms_norm\n"
        "assert 'rms_norm' in dir(torchext.ops)\n"
        "try:\n"
        "    torchext.ops.rms_nrom\n"
        "except AttributeError as error:\n"
        "    print(error)\n"
    )
    result = python(code, ROOT)
    assert "torchext has no operator 'rms_nrom', did you mean 'rms_norm'?" in result.text


def test_torchext_codegen_is_the_generator_of_the_checkout():
    code = "from torchext import codegen; import torchext.codegen.__main__; print(codegen.__file__)"
    result = python(code, ROOT)
    assert result.status == 0, result.text
    assert Path(result.text.splitlines()[-1]).resolve() == ROOT / "codegen" / "__init__.py"
