# SPDX-License-Identifier: BSD-3-Clause
"""The library portedtest: operators as libraries have them that were written by hand before."""

from pathlib import Path

import pytest
from library_build import build_and_load, by_clang


@pytest.fixture(scope="session")
def ops():
    """The operators of portedtest/, the same object as `torch.ops.portedtest`."""
    return build_and_load(
        Path(__file__).parent / "portedtest", "portedtest_library.so", **by_clang()
    )
