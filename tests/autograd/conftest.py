# SPDX-License-Identifier: BSD-3-Clause
"""The library agtest."""

from pathlib import Path

import pytest
from library_build import build_and_load, by_clang


@pytest.fixture(scope="session")
def agtest():
    """The operators of agtest/, the same object as `torch.ops.agtest`."""
    return build_and_load(Path(__file__).parent / "agtest", "agtest_library.so", **by_clang())
