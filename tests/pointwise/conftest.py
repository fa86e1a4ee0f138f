# SPDX-License-Identifier: BSD-3-Clause
"""The library pointwisetest, whose operators are expressions."""

from pathlib import Path

import pytest
from library_build import build_and_load, by_clang


@pytest.fixture(scope="session")
def pointwisetest():
    """The operators of pointwisetest/, the same object as `torch.ops.pointwisetest`."""
    return build_and_load(
        Path(__file__).parent / "pointwisetest", "pointwisetest_library.so", **by_clang()
    )
