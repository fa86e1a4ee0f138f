# SPDX-License-Identifier: BSD-3-Clause
"""The generated checks of every operator, with its CUDA kernels on the host."""

from pathlib import Path

import pytest
import torch

import torchext.ops  # noqa: F401  registers namespace myns
from torchext.testing import State, check, cuda_on_host
from torchext.testing.checks import CHECKS
from torchext.testing.facts import table_of

ROOT = Path(__file__).parents[2]

# Half of the time, of the kernels that the others run; `make test-slow` has it too, and those
# operators that are made of others.
LONG = "gradgradcheck"
OF_INDUCTOR = ("compile", "compile_dynamic")


@pytest.fixture(scope="module")
def operators_on_host(project):
    """The test device with the operators' CUDA kernels, which take minutes to compile."""
    return cuda_on_host.load("torchext", ROOT)


def test_no_check_of_any_operator_fails(operators_on_host):
    device = operators_on_host
    chosen = [name for name in CHECKS if name != LONG and name not in OF_INDUCTOR]
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    names = [facts.name for facts in table_of("myns").operators]
    own = [name for name in names if has_kernel(f"myns::{name}", "PrivateUse1")]
    assert {"rms_norm", "dot", "dot.out", "silu_and_mul_backward"} <= set(own)
    report = check("myns", operators=own, device=device, checks=chosen, raise_exception=False)
    assert report.passed, [(cell.operator, cell.check) for cell in report.failures]
    states = [cell.state for cell in report.cells.values()]
    assert states.count(State.PASSED) > 300
    assert set(states) <= {State.PASSED, State.NOTHING}
