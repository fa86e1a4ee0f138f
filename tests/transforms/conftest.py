# SPDX-License-Identifier: BSD-3-Clause
"""Where the cells' samples are; makes every cell start from the same random state."""

import sys
from pathlib import Path

import pytest
import torch

# The sample table of the operator tests serves here too.
sys.path.append(str(Path(__file__).resolve().parent.parent / "ops"))


@pytest.fixture(autouse=True)
def fixed_seed():
    torch.manual_seed(20)


@pytest.fixture(autouse=True)
def fresh_dynamo():
    """Forget what torch.compile has compiled: a cell neither profits nor suffers from another."""
    yield
    torch._dynamo.reset()
