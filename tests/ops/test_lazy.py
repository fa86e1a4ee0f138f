# SPDX-License-Identifier: BSD-3-Clause
"""LazyTensor: the TorchScript backend of torch._lazy runs every operator, by its CPU kernel."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cases import is_differentiable, over_operators
from operators import FORMS


@pytest.fixture(scope="module")
def complaints() -> dict:
    """What lazy_calls.py says of each check: a list that should be empty."""
    script = Path(__file__).with_name("lazy_calls.py")
    path = os.pathsep.join(str(folder) for folder in (script.parents[2], script.parents[1]))
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@over_operators()
def test_values_are_those_of_the_cpu(complaints, sample):
    assert complaints[f"values of {sample.name}"] == []


@over_operators(is_differentiable)
def test_gradients_are_those_of_the_cpu(complaints, sample):
    assert complaints[f"gradients of {sample.name}"] == []


# They have slices of rows, which are views: torch's lazy device has none below functionalization.
SLICED = {"silu_and_mul.out"}


@pytest.mark.parametrize("name", SLICED)
def test_forms_that_slice_are_refused_by_torch(complaints, name):
    (complaint,) = complaints[f"{name} writes"]
    assert "aten::as_strided appears to be a view operator" in complaint


@pytest.mark.parametrize("name", [name for name in FORMS if name not in SLICED])
def test_a_form_writes_what_the_functional_operator_returns(complaints, name):
    assert complaints[f"{name} writes"] == []
