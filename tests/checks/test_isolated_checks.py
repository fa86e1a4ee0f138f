# SPDX-License-Identifier: BSD-3-Clause
"""Kernels that end their process, and operators whose arguments nobody can guess."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from torchext.library import loaded_path
from torchext.testing import check
from torchext.testing.checks import CHECKS
from torchext.testing.isolation import isolated_outcomes, request_of
from torchext.testing.report import State

# operator -> the checks that fail, and words of what the first of them says
FAILURES = {
    "divides": ("empty", r"died of SIGFPE .* in the call endingtest::divides\(x=float32\[0, 4\]\)"),
    "reads_nothing": ("empty", r"died of SIGSEGV .*reads_nothing\(x=float32\[\]\)"),
    "frees_twice": ("empty", r"died of SIGABRT .*frees_twice\(x=float32\[0, 4\]\)"),
    "leaves": ("empty", r"ended with status 3 in the call endingtest::leaves\(x=float32\[0, 4\]\)"),
    # another value of an argument is looked for once; what follows does without
    "divides_by": ("samples", r"died of SIGFPE .*divides_by\(x=float64\[3, 4\], n=2\)"),
    "always_ends": ("samples", r"died of SIGABRT .*always_ends\(x=float32\[3, 4\]\)"),
    "without_meta": ("opcheck meta compile compile_dynamic", "test_faketensor failed"),
    "best_plain": ("empty", "size 4 -> 0: the operator raises IndexError"),
    "refused": ("samples", r"the sample .*y=float32\[2, 4\]\) is refused: .*x.shape\[0\] must be"),
}
NOT_RUN_BEHIND = {"always_ends", "refused"}
WITHOUT_A_MISTAKE = {"sound", "rows", "rows_backward", "best"}


@pytest.fixture(scope="module")
def report(ending_library):
    return check(ending_library, raise_exception=False)


@pytest.mark.parametrize("operator", FAILURES)
def test_what_ends_its_process_is_a_failure_of_one_check(operator, report):
    checks, words = FAILURES[operator]
    failed = {c.check: c.reason for c in report.failures if c.operator == operator}
    assert set(failed) == set(checks.split())
    assert re.search(words, " ".join(failed[checks.split()[0]].split()))


def test_everything_else_is_there(report):
    assert len(report.cells) == (len(FAILURES) + len(WITHOUT_A_MISTAKE)) * len(CHECKS)
    assert {cell.operator for cell in report.failures} == set(FAILURES)
    not_run = [cell for cell in report.cells.values() if cell.state is State.NOT_RUN]
    assert {cell.operator for cell in not_run} == NOT_RUN_BEHIND
    assert len(not_run) == len(NOT_RUN_BEHIND) * (len(CHECKS) - 1)
    for check_ in ("opcheck", "vmap", "compile", "pickle"):
        assert report.cells["divides", check_].state is State.PASSED
        assert report.cells["divides_by", check_].state is State.PASSED


def test_arguments_are_those_of_the_formula(report):
    """Its kernel takes no other, and only the formula knows which."""
    assert report.recorded_samples == ["rows_backward"]
    assert report.cells["rows_backward", "dtypes"].state is State.PASSED
    line = "samples recorded from the calls of formulas and other operators: rows_backward"
    assert line in str(report).splitlines()


def test_recorded_here_too(ending_library):
    found = check(
        ending_library,
        operators=["rows_backward"],
        checks=["samples", "layouts", "meta"],
        isolate=False,
    )
    assert found.recorded_samples == ["rows_backward"] and found.passed


def test_a_fixed_tensor_is_as_it_is(report):
    """Places in another tensor: neither expanded nor emptied."""
    assert report.cells["rows", "layouts"].state is State.PASSED
    cell = report.cells["rows", "empty"]
    assert (cell.state, cell.reason) == (
        State.NOTHING,
        "no sample has a tensor whose size could be another",
    )


def test_new_processes_find_what_forked_ones_find(ending_library):
    """On an accelerator, whose runtime no fork survives, they are new."""
    operators = ["sound", "rows", "divides", "leaves", "best_plain", "best", "divides_by",
                 "always_ends", "refused", "rows_backward"]  # fmt: skip
    checks = ["samples", "layouts", "empty", "meta", "pickle"]
    path = str(loaded_path(ending_library))
    request = request_of(path, operators, checks, torch.device("cpu"))
    forked, new = (
        [
            (operator, what, outcome and (outcome.state, outcome.reason))
            for operator, what, outcome in isolated_outcomes(replace(request, forks=forks, jobs=1))
        ]
        for forks in (True, False)
    )
    assert new == forked
    assert len(new) == 1 + len(operators) * (1 + len(checks))
    assert sum(found is not None and found[0] is State.FAILED for *_, found in new) >= 6


@pytest.mark.skipif(not torch.accelerator.is_available(), reason="no accelerator")
def test_checks_run_on_an_accelerator():
    """Whose runtime has begun here."""
    device = torch.accelerator.current_accelerator()
    assert torch.ones(2, device=device).sum() == 2
    importlib.import_module("torchext.ops")
    found = check("torchext", operators=["sin", "mul.Tensor"], device=device, raise_exception=False)
    assert found.passed and any(c.state is State.PASSED for c in found.cells.values())


def test_failures_are_printed_below_their_rows(ending_library, capsys):
    check(ending_library, operators=["divides", "sound"], checks=["empty"], raise_exception=False)
    lines = capsys.readouterr().out.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("divides"))
    assert lines[at + 1].endswith("divides fails empty:")
    assert "died of SIGFPE" in lines[at + 2]


def test_a_server_that_ends_is_an_error(ending_library, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "if any('isolation' in argument for argument in sys.orig_argv):\n"
        "    raise SystemExit('not today')\n"
    )
    program = f"from torchext.testing import check\ncheck({str(ending_library)!r})\n"
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{program}"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 1
    assert "RuntimeError: the process of the checks ended with status 1" in result.stderr
    assert "not today" in result.stderr
