# SPDX-License-Identifier: BSD-3-Clause
"""Every operator of myns on the test device, where two of them have kernels of the device's own."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from own_spec import derived_of_elements, native_functions

HERE = Path(__file__).parent
DERIVED = derived_of_elements()
ENTRIES = [e for e in native_functions() if e["func"].partition("(")[0] not in DERIVED]
SCHEMAS = [entry["func"] for entry in ENTRIES]
FUNCTIONAL = [schema.partition("(")[0] for schema in SCHEMAS if "!" not in schema]
WITH_CPU_KERNEL = [
    entry["func"]
    for entry in ENTRIES
    if "CPU" in str(entry.get("dispatch", "")) or "ufunc_inner_loop" in entry
]
FORMS = [schema.partition("(")[0] for schema in SCHEMAS if "!" in schema] + [
    name.strip() for entry in ENTRIES for name in entry.get("autogen", "").split(",") if name
]
COMPOSITE = [
    entry["func"].partition("(")[0]
    for entry in ENTRIES
    if "pointwise" in entry
    or ("structured_delegate" not in entry and "structured" not in entry
    and "CompositeImplicitAutograd" in entry.get("dispatch", "CompositeImplicitAutograd"))
]  # fmt: skip
OWN = ("mul", "rms_norm")


@pytest.fixture(scope="module")
def report(device):
    folder = importlib.import_module("torchext.testing.device")._build_directory() / "own_kernels"
    folder.mkdir(exist_ok=True)
    command = [sys.executable, str(HERE / "myns_on_device.py"), str(folder)]
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


def base(name: str) -> str:
    return name.removeprefix("myns::").partition(".")[0].rstrip("_")


@pytest.mark.parametrize("name", FUNCTIONAL)
def test_values_and_gradients_are_those_of_the_cpu(name, report):
    found = report["operators"][name]
    assert "error" not in found, found["error"]
    assert found["calls"] > 0


@pytest.mark.parametrize("name", FUNCTIONAL)
def test_what_fell_back_is_what_has_no_kernel_of_the_device(name, report):
    fell_back = {base(one) for one in report["operators"][name]["fell_back"]}
    assert not fell_back & set(OWN)
    has_cpu_kernel = {base(s.partition("(")[0]) for s in WITH_CPU_KERNEL}
    # the operator itself, unless it has its own kernel or is made of others
    assert (base(name) in fell_back) == (base(name) in has_cpu_kernel - set(OWN))


def test_the_statistics_list_exactly_what_the_dispatcher_has_no_kernel_for(report):
    operators = report["operators"]
    assert set(operators) == {*FUNCTIONAL, *FORMS}
    listed = {name: found["fell_back"] for name, found in operators.items()}
    assert listed == {name: found["without_kernel"] for name, found in operators.items()}
    # what is made of other operators reaches the device as those
    assert {n for n in listed if not operators[n]["called"]} == set(COMPOSITE) - set(OWN)


@pytest.mark.parametrize("name", FORMS)
def test_in_place_and_out_forms_write_what_they_write_on_the_cpu(name, report):
    found = report["operators"][name]
    assert "error" not in found, found["error"]
    assert found["calls"] > 0


def test_an_operator_that_names_cpu_fallback_falls_back_by_itself(report):
    assert report["operators"]["zero_out"]["fell_back"] == ["myns::zero_out"]


def test_error_stops_at_the_first_that_falls_back(report):
    stopped = report["stopped"]
    assert stopped["reached"] == ["mul", "rms_norm"]
    assert stopped["error"].startswith("myns::zero_out has no kernel for torchext:0")
    assert stopped["stats"] == []
