# SPDX-License-Identifier: BSD-3-Clause
"""Loads the operators of `myns`; makes every test start from the same random state."""

import pytest
import torch

import torchext.ops  # noqa: F401  registers namespace myns, or says why it cannot


@pytest.fixture(autouse=True)
def fixed_seed():
    torch.manual_seed(20)


@pytest.fixture
def fresh_dynamo():
    """Forget what torch.compile has compiled: a test neither profits nor suffers from another."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()
