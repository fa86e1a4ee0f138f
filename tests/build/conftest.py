# SPDX-License-Identifier: BSD-3-Clause
"""The sample library and the wheels, built once for all tests of this folder."""

import site
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch
from sample_project import ROOT, Project, flags, run

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]


@pytest.fixture(scope="session")
def built_project(tmp_path_factory) -> Project:
    project = Project(tmp_path_factory.mktemp("sample"))
    build = project.build()
    assert build.status == 0, build.text
    project.keep(tmp_path_factory.mktemp("kept") / "sample")
    return project


@pytest.fixture
def project(built_project) -> Project:
    """The built sample, as it is in this folder and up to date; a test may change it."""
    built_project.restore()
    return built_project


def wheel_of(project: Path, folder: Path, **environment: str) -> Path:
    """Build the wheel of a project that is built in place, with the objects that are there."""
    command = [*PIP, "wheel", ".", "--no-build-isolation", "--no-deps", "-w", str(folder)]
    build = run([*command, "-v"], project, **environment)
    assert build.status == 0, build.text
    again = [path for path in build.compiled if not path.endswith("runtime/all.cpp")]
    assert again == [], f"the wheel compiled again:\n{build.text}"
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="session")
def torchext_wheel(tmp_path_factory) -> Path:
    return wheel_of(ROOT, tmp_path_factory.mktemp("torchext_wheel"))


@pytest.fixture(scope="session")
def operators_wheel(tmp_path_factory) -> Path:
    return wheel_of(ROOT / "operators", tmp_path_factory.mktemp("operators_wheel"))


@pytest.fixture(scope="session")
def sample_wheel(built_project, tmp_path_factory) -> Path:
    built_project.restore()
    return wheel_of(built_project.folder, tmp_path_factory.mktemp("sample_wheel"), **flags())


@pytest.fixture(scope="session")
def clean_python(torchext_wheel, operators_wheel, sample_wheel, tmp_path_factory) -> str:
    """A new environment with the wheels; torch and its kin come from this one, as they are."""
    folder = tmp_path_factory.mktemp("clean") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for wheel in (torchext_wheel, operators_wheel, sample_wheel):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(packages)
    # A folder named in a .pth is searched, but its own .pth files (an editable torchext) are not
    torch_home = Path(torch.__file__).parents[1]
    others = {str(torch_home), *site.getsitepackages()}
    (packages / "others.pth").write_text("\n".join(sorted(others)) + "\n")
    return str(folder / "bin" / "python")
