# SPDX-License-Identifier: BSD-3-Clause
"""The libraries of this folder, each beside the file of tests that asks for it."""

from pathlib import Path

import pytest
import torch
from library_build import build


@pytest.fixture(scope="session")
def loadingtest() -> Path:
    """The library of loadingtest/, built and not loaded."""
    return build(Path(__file__).parent / "loadingtest") / "loadingtest_library.so"


@pytest.fixture
def without_vmap_warnings():
    """Quiet where torch's loops and ours say that they are slow."""
    torch._C._functorch._set_vmap_fallback_warning_enabled(False)
    yield
    torch._C._functorch._set_vmap_fallback_warning_enabled(True)
    torch._dynamo.reset()
