# SPDX-License-Identifier: BSD-3-Clause
"""Spec text to a plan, to a run of the command line, to the files of an output folder."""

from __future__ import annotations

import contextlib
import io
import tempfile
from dataclasses import dataclass
from pathlib import Path

from codegen.__main__ import main
from codegen.analysis.library import plan_library
from codegen.errors import Errors
from codegen.plan.autograd import Recording
from codegen.plan.library import OperatorPlan, Plan
from codegen.spec.load import load_derivatives, load_operators

NATIVE, DERIVATIVES = "native_functions.yaml", "derivatives.yaml"


@dataclass(frozen=True)
class Run:
    """What a run of the command line did."""

    status: int
    report: str


def write_specs(folder: Path, native: str | bytes, derivatives: str | bytes | None) -> list[str]:
    """Write the spec files; returns the arguments that name them."""
    arguments = []
    for option, name, text in (
        ("--native-functions", NATIVE, native),
        ("--derivatives", DERIVATIVES, derivatives),
    ):
        if text is not None:
            content = text if isinstance(text, bytes) else text.encode()
            (folder / name).write_bytes(content)
            arguments += [option, str(folder / name)]
    return arguments


def run(
    folder: Path, native: str | bytes, derivatives: str | bytes | None = None, *more: str
) -> Run:
    """Generate namespace `lib` from spec text into `folder`/out."""
    specs = write_specs(folder, native, derivatives)
    report = io.StringIO()
    with contextlib.redirect_stderr(report):
        status = main(["gen", "--namespace", "lib", "--out", str(folder / "out"), *specs, *more])
    return Run(status, report.getvalue())


def output(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, with its bytes."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def plan(native: str, derivatives: str | None = None, namespace: str = "lib") -> Plan:
    """The plan of a library; raises SpecError."""
    errors = Errors()
    with tempfile.TemporaryDirectory() as folder:
        write_specs(Path(folder), native, derivatives)
        operators = load_operators(Path(folder, NATIVE), NATIVE, errors)
        entries = []
        if derivatives is not None:
            entries = load_derivatives(Path(folder, DERIVATIVES), DERIVATIVES, errors)
    found = plan_library(namespace, (NATIVE, DERIVATIVES), operators, entries, errors)
    errors.raise_if_any()
    return found


def operator(plan_: Plan, name: str) -> OperatorPlan:
    """The plan of the operator of this name."""
    return next(op for op in plan_.operators if str(op.operator.name) == name)


def recording(op: OperatorPlan) -> Recording:
    """How the operator records its node on the autograd key of all devices."""
    assert isinstance(op.on_autograd, Recording)
    return op.on_autograd
