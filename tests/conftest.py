# SPDX-License-Identifier: BSD-3-Clause
"""How tests are spread over processes: a folder stays in one, where it builds its library."""

import pytest


@pytest.hookimpl(optionalhook=True)  # of xdist
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScopeScheduling

    class FolderScheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return nodeid.split("/")[1] if "/" in nodeid else nodeid

    return FolderScheduling(config, log)
