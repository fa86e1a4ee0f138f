# SPDX-License-Identifier: BSD-3-Clause
"""How tests are spread over processes: a folder stays in one, where it builds its library."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent
# These take minutes each: begun first, they leave no process idle at the end.
LONGEST = ("adversary", "build", "checks", "codegen", "upstream", "fuzz")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: _place(item.path))


def _place(path: Path) -> int:
    folder = path.relative_to(HERE).parts[0] if HERE in path.parents else ""
    return LONGEST.index(folder) if folder in LONGEST else len(LONGEST)


@pytest.hookimpl(optionalhook=True)  # of xdist
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScopeScheduling

    class FolderScheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return nodeid.split("/")[1] if "/" in nodeid else nodeid

    return FolderScheduling(config, log)
