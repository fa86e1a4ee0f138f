# SPDX-License-Identifier: BSD-3-Clause
"""Two tensors to add."""

import pytest
import torch


@pytest.fixture
def pair():
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(3, 4, generator=generator, dtype=torch.double) for _ in range(2)]
