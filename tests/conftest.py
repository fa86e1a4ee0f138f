# SPDX-License-Identifier: BSD-3-Clause
"""How the tests are spread over processes: a folder stays in one, where it builds its library."""

from pathlib import Path

import pytest

FOLDER = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before the processes are given the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        group, *_ = item.path.relative_to(FOLDER).parts
        item.add_marker(pytest.mark.xdist_group(group))
