# SPDX-License-Identifier: BSD-3-Clause
"""Which tests are slow, and how tests are spread over processes: a folder stays in one, where it
builds its library. Folders with CUDA kernels on the host are spread by file: whoever is first there
builds for both."""

from pathlib import Path

import kernels_on_host
import pytest

HERE = Path(__file__).parent
# These take minutes each: begun first, they leave no process idle at the end.
LONGEST = ("adversary", "build", "checks", "codegen", "upstream", "fuzz")
# These build whole projects, check whole libraries, or compile program after program: all of it is
# for `make test-slow`, as is a test elsewhere that is marked so.
SLOW = ("adversary", "aoti", "build", "checks", "fuzz", "leaks", "upstream")


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items):
    for item in items:
        if _folder(item.path) in SLOW:
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: _place(_folder(item.path)))


def _folder(path: Path) -> str:
    return path.relative_to(HERE).parts[0] if HERE in path.parents else ""


def _place(folder: str) -> int:
    return LONGEST.index(folder) if folder in LONGEST else len(LONGEST)


@pytest.hookimpl(optionalhook=True)  # of xdist
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScopeScheduling

    class FolderScheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            file = nodeid.partition("::")[0]
            folder = _folder(HERE.parent / file)
            is_spread = HERE / folder in kernels_on_host.FOLDERS
            return file if is_spread or not folder else folder

    return FolderScheduling(config, log)
