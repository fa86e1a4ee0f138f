# SPDX-License-Identifier: BSD-3-Clause
"""torchext's own operators pass every check that their table and samples allow."""

import pytest

from torchext.testing import check
from torchext.testing.checks import CHECKS
from torchext.testing.report import State


@pytest.mark.slow
def test_myns_passes_every_check(device, capsys, tmp_path):
    report = check("myns", html=tmp_path / "myns.html")  # raises where one fails
    assert report.passed and not report.made_samples
    assert report.count(State.KNOWN) == report.count(State.REFUSED) == 0
    assert len(report.cells) == len(report.locations) * len(CHECKS) > 600
    # What has nothing to check says why; these are all the reasons there are.
    reasons = {
        (c.check, c.reason.partition(";")[0])
        for c in report.cells.values()
        if c.state is State.NOTHING
    }
    assert reasons == {
        ("gradcheck", "an out= form, and it says so"),
        ("gradgradcheck", "an out= form has no gradient"),
        ("forward_mode", "an out= form has no tangent"),
        ("dtypes", "the spec has no `dtypes:` for cpu"),
        # of samples that are recorded
        ("empty", "no sample has a tensor whose size could be another"),
        ("forms", "a functional form"),
        ("autocast", "made of other operators, which autocast casts"),
    }
    passed = {c.operator for c in report.cells.values() if c.state is State.PASSED}
    assert passed == set(report.locations)
    assert (tmp_path / "myns.html").stat().st_size > 10_000


@pytest.mark.slow
def test_myns_passes_every_check_on_another_device(device, capsys):
    """Where most run the CPU's kernels; torch.compile has nothing for this device."""
    report = check("myns", device=device)
    assert capsys.readouterr().out.startswith("myns on torchext:0, torch ")
    assert report.passed and report.device == "torchext:0"
    assert report.count(State.KNOWN) == report.count(State.REFUSED) == 0
    nothing = {
        name: {c.reason for c in report.cells.values() if c.check == name}
        for name in CHECKS
        if all(c.state is State.NOT_RUN for c in report.cells.values() if c.check == name)
    }
    reason = {"Inductor compiles nothing for torchext"}
    assert nothing == {"compile": reason, "compile_dynamic": reason}
