# SPDX-License-Identifier: BSD-3-Clause
"""The test device, loaded before the first backward of the session: see torchext.testing.device."""

from pathlib import Path

from first_device import device, load_for, second_device  # noqa: F401  fixtures


def pytest_collection_finish(session) -> None:
    load_for(Path(__file__).parent, session)
