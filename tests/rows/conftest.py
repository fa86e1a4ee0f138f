# SPDX-License-Identifier: BSD-3-Clause
"""The library rowstest, whose operators are expressions of rows."""

from pathlib import Path

import pytest
from library_build import build_and_load, by_clang


@pytest.fixture(scope="session")
def rowstest():
    """The operators of rowstest/, the same object as `torch.ops.rowstest`."""
    return build_and_load(Path(__file__).parent / "rowstest", "rowstest_library.so", **by_clang())
