# SPDX-License-Identifier: BSD-3-Clause
"""The sample library, built once for all tests of this folder."""

import pytest
from sample_project import Project


@pytest.fixture(scope="session")
def built_project(tmp_path_factory) -> Project:
    project = Project(tmp_path_factory.mktemp("sample"))
    build = project.build()
    assert build.status == 0, build.text
    return project


@pytest.fixture
def project(built_project) -> Project:
    """The built sample, as it is in this folder and up to date; a test may change it."""
    built_project.restore()
    build = built_project.build()
    assert build.status == 0, build.text
    return built_project
