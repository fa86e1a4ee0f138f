# SPDX-License-Identifier: BSD-3-Clause
"""The library fallbacktest on the test device, loaded before the first backward of the session."""

from pathlib import Path

import pytest
from first_device import device, load_for, second_device  # noqa: F401  fixtures


def pytest_collection_finish(session) -> None:
    load_for(Path(__file__).parent, session)


@pytest.fixture(scope="session")
def ops(device):  # noqa: F811
    """The operators of fallbacktest/, the same object as `torch.ops.fallbacktest`."""
    from library_build import build_and_load

    return build_and_load(Path(__file__).parent / "fallbacktest", "fallbacktest_library.so")


@pytest.fixture
def stats(device):  # noqa: F811
    """`torchext.fallback.stats`, begun anew."""
    import torchext

    torchext.fallback.reset_stats()
    return torchext.fallback.stats
