# SPDX-License-Identifier: BSD-3-Clause
"""Samples of operators that have none, and whose arguments nobody can guess: those of formulas."""

from torchext.testing import check

DERIVED = (
    "neg_backward_jvp",  # of a gradient that has a tangent alone
    "rms_norm_double_backward",
    "silu_and_mul_backward",
    "silu_and_mul_double_backward",
    "silu_and_mul_jvp",
    "sigmoid_backward",
    "sigmoid_backward_jvp",  # of forward mode over reverse mode alone
    "sigmoid_double_backward",
)


def test_samples_are_those_of_every_derivative():
    report = check("myns", operators=DERIVED, checks=["samples"], isolate=False)
    assert sorted(report.recorded_samples) == sorted(DERIVED)
