# SPDX-License-Identifier: BSD-3-Clause
"""The library faultytest, whose operators have one mistake each, and what the checks say of it."""

from pathlib import Path

import pytest
from first_device import device, load_for  # noqa: F401  a fixture


def pytest_collection_finish(session) -> None:
    load_for(Path(__file__).parent, session)


@pytest.fixture(scope="session")
def faulty_library() -> Path:
    """The shared object of faultytest/, built."""
    from library_build import build

    return build(Path(__file__).parent / "faultytest") / "faultytest_library.so"


@pytest.fixture(scope="session")
def faulty_report(faulty_library, device):  # noqa: F811
    """The report of all checks on all of its operators."""
    from torchext.testing import check

    return check(faulty_library, raise_exception=False)


@pytest.fixture(scope="session")
def ending_library() -> Path:
    """The shared object of endingtest/, built."""
    from library_build import build

    return build(Path(__file__).parent / "endingtest") / "endingtest_library.so"
