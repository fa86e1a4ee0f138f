# SPDX-License-Identifier: BSD-3-Clause
"""Tests of the CUDA build. What it holds is tested anywhere, what it computes on a GPU."""

import json
import sys
from pathlib import Path

import pytest
import torch

import torchext
import torchext.ops  # noqa: F401  registers namespace myns, or says why it cannot

# The sample table of the operator tests serves here too.
sys.path.append(str(Path(__file__).resolve().parent.parent / "ops"))

LIBRARY = Path(torchext.library.find_library("torchext"))


@pytest.fixture(scope="session")
def cuda_library():
    """The path of the library, where it holds CUDA kernels."""
    record = json.loads(LIBRARY.with_suffix(".json").read_text())
    if not record["cuda_kernels"]:
        pytest.skip("the library is built without CUDA kernels")
    return LIBRARY


@pytest.fixture
def gpu(cuda_library):
    """The device of the tests that run kernels."""
    if not torch.cuda.is_available():
        pytest.skip("no GPU is visible")
    torch.manual_seed(20)
    return torch.device("cuda")
