# SPDX-License-Identifier: BSD-3-Clause
"""The generated checks of every operator, with its CUDA kernels on the host."""

from torchext.testing import State, check
from torchext.testing.checks import CHECKS

# Half of the time, of the kernels that the others run; `make test-slow` has it too.
LONG = "gradgradcheck"
OF_INDUCTOR = ("compile", "compile_dynamic")


def test_no_check_of_any_operator_fails(host_device):
    chosen = [name for name in CHECKS if name != LONG and name not in OF_INDUCTOR]
    report = check("myns", device=host_device, checks=chosen, raise_exception=False)
    assert report.passed, [(cell.operator, cell.check) for cell in report.failures]
    states = [cell.state for cell in report.cells.values()]
    assert states.count(State.PASSED) > 400
    assert set(states) <= {State.PASSED, State.NOTHING}
