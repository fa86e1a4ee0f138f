# SPDX-License-Identifier: BSD-3-Clause
"""Tests of the CUDA build. What it holds is tested anywhere, what it computes on a GPU, or on the
host where there is none."""

import json
import sys
from pathlib import Path

import kernels_on_host
import pytest
import torch
from first_device import load_for

import torchext
import torchext.ops  # noqa: F401  registers namespace myns, or says why it cannot
from torchext.testing import cuda_on_host

# The sample table of the operator tests serves here too.
sys.path.append(str(Path(__file__).resolve().parent.parent / "ops"))

ROOT = Path(__file__).parents[2]
LIBRARY = Path(torchext.library.find_library("torchext"))


@pytest.fixture(scope="session")
def cuda_library():
    """The path of the library, where it holds CUDA kernels."""
    record = json.loads(LIBRARY.with_suffix(".json").read_text())
    if not record["cuda_kernels"]:
        pytest.skip("the library is built without CUDA kernels")
    return LIBRARY


@pytest.fixture(scope="session")
def host_device(request):
    """The test device, with the library's CUDA kernels on the host."""
    kernels_on_host.skip_among_others(request.session)
    return cuda_on_host.load("torchext", ROOT)


@pytest.fixture
def gpu(request):
    """The device of the tests that run kernels: a GPU, or else the one that stands for it."""
    torch.manual_seed(20)
    if torch.cuda.is_available():
        request.getfixturevalue("cuda_library")
        return torch.device("cuda")
    return request.getfixturevalue("host_device")


@pytest.fixture
def real_gpu(gpu):
    """A GPU, for what the host does not do: CUDA graphs, and Inductor's code for CUDA."""
    if gpu.type != "cuda":
        pytest.skip("no GPU is visible")
    return gpu


def pytest_collection_finish(session):
    if not torch.cuda.is_available():
        load_for(Path(__file__).parent, session)
