# SPDX-License-Identifier: BSD-3-Clause
"""The library argtest."""

from pathlib import Path

import pytest
from library_build import build_and_load, by_clang


@pytest.fixture(scope="session")
def argtest():
    """The operators of argtest/, the same object as `torch.ops.argtest`."""
    return build_and_load(Path(__file__).parent / "argtest", "argtest_library.so", **by_clang())
