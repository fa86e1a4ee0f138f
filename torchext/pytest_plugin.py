# SPDX-License-Identifier: BSD-3-Clause
"""`pytest --torchext NAME`: one test for each operator and check of a library.

Without paths on the command line these are the only tests. Installed as a plugin of pytest's; it
imports torch only where the option is given.
"""

from __future__ import annotations

import sys

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("torchext", "operators of a torchext library")
    group.addoption(
        "--torchext", action="append", default=[], metavar="NAME",
        help="run torchext.testing.check on every operator of this library: a package that "
        "torchext.load_library loads, or its path (may be repeated)",
    )  # fmt: skip
    group.addoption(
        "--torchext-device", metavar="DEVICE",
        help="what the checks run on, such as cuda; torchext is the test device (default: cpu)",
    )  # fmt: skip
    group.addoption(
        "--torchext-cuda-on-host", action="store_true",
        help="build the CUDA kernels for the host and check these, on the test device",
    )  # fmt: skip
    group.addoption(
        "--torchext-known-failures", metavar="FILE",
        help="lines `OPERATOR CHECKS: REASON`; a check that is listed and passes fails",
    )  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    """Leave out the project's own tests where none is asked for; find what was built in place."""
    if config.getoption("--torchext-device") and config.getoption("--torchext-cuda-on-host"):
        raise pytest.UsageError("--torchext-cuda-on-host has its own device: no --torchext-device")
    if config.getoption("--torchext"):
        # last: a library that is installed comes before its sources
        sys.path.append(str(config.invocation_params.dir))
        if config.args_source is not pytest.Config.ArgsSource.ARGS:
            config.args[:] = []
        return
    for option in (
        "--torchext-known-failures", "--torchext-device", "--torchext-cuda-on-host"
    ):  # fmt: skip
        if config.getoption(option):
            raise pytest.UsageError(f"{option} is for --torchext NAME")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector):
    """Add the libraries that the command line names to what the session collects."""
    report = yield
    if isinstance(collector, pytest.Session) and report.result is not None:
        names = collector.config.getoption("--torchext")
        libraries = [Library.from_parent(collector, name=n, nodeid=n) for n in names]
        report.result = [*libraries, *report.result]
    return report


def pytest_collection_finish(session: pytest.Session) -> None:
    """Bring the test device up before the first backward, where a test will need it."""
    cells = [item for item in session.items if isinstance(item, OperatorCheck)]
    needed = any(cell.check == "device" and cell.runner.needs_test_device for cell in cells)
    if needed and not session.config.getoption("collectonly"):
        from torchext.testing.checking import prepare_test_device

        prepare_test_device()


class Library(pytest.Collector):
    """The operators of one library."""

    def collect(self) -> list[pytest.Item]:
        from torchext.testing.checking import Runner
        from torchext.testing.facts import table_of

        names = self.config.getoption("--torchext")
        device = self.config.getoption("--torchext-device") or "cpu"
        known = self.config.getoption("--torchext-known-failures")
        try:
            if self.config.getoption("--torchext-cuda-on-host"):
                from torchext.testing import cuda_on_host

                device = cuda_on_host.load(self.name)
            own = table_of(self.name).namespace
            others = {table_of(name).namespace for name in names} - {own}
            runner = Runner(self.name, known_failures=known, other_namespaces=others, device=device)
        except (AssertionError, ImportError, OSError, RuntimeError, ValueError) as error:
            raise self.CollectError(f"--torchext {self.name}: {error}") from error
        return [
            OperatorCheck.from_parent(
                self, name=f"{subject.facts.name}::{check}", runner=runner, subject=subject,
                check=check, nodeid=f"{self.name}::{subject.facts.name}::{check}",
            )
            for subject in runner.subjects
            for check in runner.checks
        ]  # fmt: skip


class CheckFailed(Exception):
    """A check that failed; its text is the report."""


class OperatorCheck(pytest.Item):
    """One check of one operator."""

    def __init__(self, *, runner, subject, check: str, **arguments) -> None:
        super().__init__(**arguments)
        self.runner, self.subject, self.check = runner, subject, check

    def runtest(self) -> None:
        from torchext.testing.report import State

        cell = self.runner.cell(self.subject, self.check)
        if cell.state is State.FAILED:
            place = self.subject.facts.location
            raise CheckFailed(f"{place}: {cell.operator}: {cell.reason}") from cell.error
        if cell.state is State.KNOWN:
            if self.config.option.runxfail:  # then pytest.xfail does nothing
                raise CheckFailed(cell.reason) from cell.error
            pytest.xfail(cell.reason)
        if cell.state is not State.PASSED:
            pytest.skip(cell.reason)

    def reportinfo(self) -> tuple[str, int | None, str]:
        file, _, line = self.subject.facts.location.rpartition(":")
        return file, int(line) - 1, self.nodeid

    def repr_failure(self, excinfo, style=None):
        if excinfo.errisinstance(CheckFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)
