# SPDX-License-Identifier: BSD-3-Clause
"""A library of kernels, and the test device with them."""

from pathlib import Path

import kernels_on_host
import pytest
import torch
from first_device import load_for
from library_build import build, built_quickly

import torchext
from torchext.testing import cuda_on_host

HERE = Path(__file__).parent


@pytest.fixture(scope="session", autouse=True)
def quick_builds():
    """Who builds the kernels of a project builds nothing else of it a second time."""
    with built_quickly():
        yield


@pytest.fixture(scope="session")
def project(request):
    """The project of the kernels, built."""
    kernels_on_host.skip_among_others(request.session)
    return build(HERE / "kernels")


@pytest.fixture(scope="session")
def device(project):
    """The test device, with the library's kernels."""
    torchext.load_library(project)
    return cuda_on_host.load("cuda_kernels", project)


@pytest.fixture
def run(device):
    """Launches a kernel of kernels.cu; the tensor goes to the device, and the result comes back."""

    def run_on_device(kernel, x, n=0):
        return torch.ops.cuda_kernels.run(kernel, x.to(device), n).cpu()

    return run_on_device


@pytest.fixture(params=[None, 0, 5], ids=lambda order: f"order {order}")
def order(request, device):
    """Of warps and blocks: another one for each launch, their own, and one that stays."""
    with cuda_on_host.schedule(order=request.param):
        yield request.param


def pytest_collection_finish(session):
    load_for(HERE, session)
