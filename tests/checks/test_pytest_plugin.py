# SPDX-License-Identifier: BSD-3-Clause
"""`pytest --torchext NAME`, in processes of its own."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig

import pytest
from library_build import ROOT

CHECKS = 16
TESTS = 101 * CHECKS


def run_pytest(folder, *arguments, pytest=(sys.executable, "-m", "pytest")):
    """Run pytest in a folder; returns the exit status and what it printed."""
    command = [*pytest, "-p", "no:cacheprovider", "-q", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    environment.pop("PYTEST_ADDOPTS", None)
    result = subprocess.run(
        command, check=False, cwd=folder, env=environment, capture_output=True, text=True
    )
    return result.returncode, result.stdout + result.stderr


@pytest.mark.slow
def test_operators_and_checks_are_tests(faulty_library, tmp_path):
    (tmp_path / "test_own.py").write_text("def test_own():\n    assert True\n")
    known = tmp_path / "known.txt"
    known.write_text(
        "faultytest::whole vmap: its rule is wrong\n"
        "faultytest::bad_half dtypes: rounds\n"
        "myns::softmax vmap: of the other library\n"
        "faultytest::twice layouts: was slow\n"
    )  # fmt: skip
    arguments = ["--torchext", str(faulty_library), "--torchext-known-failures", str(known)]
    # Of the other library, which is named as well, no test is run: -k leaves them out.
    several = "whole or bad_half or twice or wrong_gradient or reads_memory or takes_a_stream"
    others = ["--torchext", "torchext", "-k", f"faultytest_library and ({several})"]
    status, printed = run_pytest(tmp_path, "-rfxs", *arguments, *others)
    assert status == 1
    failed = set(re.findall(r"^FAILED \S*faultytest_library.so::(\S+)", printed, re.MULTILINE))
    assert {"wrong_gradient::gradcheck", "reads_memory::layouts"} <= failed
    assert {"takes_a_stream::samples", "twice::layouts"} <= failed
    assert not {"whole::vmap", "bad_half::dtypes", "whole::meta"} & failed
    assert "native_functions.yaml" in printed
    assert "it no longer fails; it is known to fail: was slow" in printed
    assert re.search(r"XFAIL .*whole::vmap - its rule is wrong", printed)
    numbers = dict(re.findall(r"(\d+) (failed|passed|skipped|xfailed)", printed)[::-1])
    counts = {name: int(count) for count, name in numbers.items()}
    # twice has two forms, bad_half a backward; and no test of the folder
    assert sum(counts.values()) == 9 * CHECKS
    assert counts["xfailed"] == 2
    assert "test_own" not in printed


def test_where_expected_failures_run_a_known_one_fails(faulty_library, tmp_path):
    known = tmp_path / "known.txt"
    known.write_text("faultytest::whole vmap: its rule is wrong\n")
    arguments = ["--torchext", str(faulty_library), "--torchext-known-failures", str(known)]
    status, printed = run_pytest(tmp_path, "--runxfail", "-k", "whole and vmap", *arguments)
    assert status == 1, printed
    assert "its rule is wrong" in printed and "1 failed" in printed


def test_paths_on_the_command_line_run_as_well(faulty_library, tmp_path):
    (tmp_path / "test_own.py").write_text("def test_own():\n    assert True\n")
    status, printed = run_pytest(
        tmp_path, "--collect-only", "test_own.py", "--torchext", str(faulty_library)
    )
    assert status == 0
    assert "::test_own" in printed and "::right::opcheck" in printed
    assert f"{TESTS + 1} tests collected" in printed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--torchext", "no_such_library"], "there is no package 'no_such_library'"),
        (["--torchext-known-failures", "x"], "is for --torchext NAME"),
        (["--torchext-device", "cpu"], "is for --torchext NAME"),
        (["--torchext", "LIBRARY", "--torchext-known-failures", "x"], "No such file.*'x'"),
        (["--torchext", "LIBRARY", "--torchext-device", "tpu"], "device string: tpu"),
    ],
    ids=["no_library", "known_failures_alone", "device_alone", "no_file", "no_device"],
)
def test_mistakes_of_the_command_line(arguments, words, faulty_library, tmp_path):
    arguments = [str(faulty_library) if a == "LIBRARY" else a for a in arguments]
    status, printed = run_pytest(tmp_path, *arguments)
    assert status in (2, 4), printed  # an error while collecting, or of usage
    assert re.search(words, printed), printed
    assert "Traceback" not in printed and "passed" not in printed


def test_the_checks_run_on_another_device(faulty_library, tmp_path):
    status, printed = run_pytest(
        tmp_path, "--torchext", str(faulty_library), "--torchext-device", "torchext",
        "-rs", "-k", "on_cpu and (device or layouts or compile_dynamic)",
    )  # fmt: skip
    assert status == 1, printed
    assert "a result is on another device" in printed
    assert "Inductor compiles nothing for torchext" in printed
    assert "1 failed, 1 passed, 1 skipped" in printed


def test_the_plugin_may_be_named_where_it_is_installed(tmp_path):
    (tmp_path / "test_own.py").write_text("def test_own():\n    assert True\n")
    status, printed = run_pytest(tmp_path, "-p", "torchext.pytest_plugin", "test_own.py")
    assert status == 0, printed


def test_the_script_of_pytest_finds_a_package_of_its_folder(faulty_library, tmp_path):
    """Which it does not put on the path, other than `python -m pytest`."""
    package = tmp_path / "in_place"
    package.mkdir()
    (package / "__init__.py").touch()
    for suffix in (".so", ".json", "_python.so", "_operators.json"):
        beside = faulty_library.with_name(f"{faulty_library.stem}{suffix}")
        (package / beside.name).symlink_to(beside)
    script = shutil.which("pytest", path=sysconfig.get_path("scripts"))
    status, printed = run_pytest(
        tmp_path, "--collect-only", "--torchext", "in_place", pytest=[script]
    )
    assert status == 0, printed
    assert "in_place::right::opcheck" in printed


def test_without_the_option_pytest_does_not_import_torch(tmp_path):
    (tmp_path / "test_own.py").write_text(
        "import sys\n\n\ndef test_own():\n    assert 'torch' not in sys.modules\n"
    )
    status, printed = run_pytest(tmp_path, "test_own.py")
    assert status == 0, printed
    assert "1 passed" in printed
