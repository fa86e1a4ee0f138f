# SPDX-License-Identifier: BSD-3-Clause
"""The library rulestest."""

from pathlib import Path

import pytest
from library_build import build_and_load


@pytest.fixture(scope="session")
def rulestest():
    """The operators of rulestest/, the same object as `torch.ops.rulestest`."""
    return build_and_load(Path(__file__).parent / "rulestest", "rulestest_library.so")
