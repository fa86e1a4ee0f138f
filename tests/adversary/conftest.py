# SPDX-License-Identifier: BSD-3-Clause
"""The libraries of this folder, each beside the file of tests that asks for it."""

from pathlib import Path

import pytest
from library_build import build


@pytest.fixture(scope="session")
def loadingtest() -> Path:
    """The library of loadingtest/, built and not loaded."""
    return build(Path(__file__).parent / "loadingtest") / "loadingtest_library.so"
