# SPDX-License-Identifier: BSD-3-Clause
"""A device without kernels runs expressions as ATen's operators, and calls none of what is derived
of them: samples of that are recorded on the CPU."""

from torchext.testing import check


def test_what_nobody_can_guess_has_samples_there(device):
    names = ["silu_and_mul_backward", "silu_and_mul_double_backward"]
    report = check("myns", operators=names, checks=["samples"], device=device, isolate=False)
    assert report.passed and sorted(report.recorded_samples) == names
