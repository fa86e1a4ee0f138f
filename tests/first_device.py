# SPDX-License-Identifier: BSD-3-Clause
"""The test device for folders of tests, loaded before the first backward of the session."""

import os
from pathlib import Path

import pytest


def load_for(folder: Path, session: pytest.Session) -> None:
    """Load the device where a test of the folder will run. What goes wrong, the fixture reports,
    but for what would go wrong for every test there: a backward while tests were collected."""
    is_ours = any(folder in item.path.parents for item in session.items)
    if is_ours and not session.config.option.collectonly:
        os.environ.setdefault("TORCHEXT_FALLBACK", "silent")  # half of what runs there falls back
        try:
            _first_device()
        except Exception as error:
            if "after the first backward" in str(error):
                raise pytest.UsageError(f"a module of tests ran a backward: {error}") from error


def _first_device():
    import torchext.testing

    return torchext.testing.device()


@pytest.fixture(scope="session")
def device():
    """Index 0 of the test device."""
    return _first_device()


@pytest.fixture(scope="session")
def second_device(device):
    """Index 1 of the test device."""
    import torch

    return torch.device(device.type, 1)
