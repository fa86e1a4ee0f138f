# SPDX-License-Identifier: BSD-3-Clause
"""A library with CUDA kernels, on any machine: compiled, loaded, registered."""

import json
import os
import re

import pytest
import torch
from operators import OPERATORS

DEVICE_OPERATORS = [
    op.name for op in OPERATORS.values() if not op.is_composite and op.name != "zero_out"
]


def kernels_of(name: str) -> str:
    return torch._C._dispatch_dump(f"myns::{name}")


@pytest.mark.parametrize("name", DEVICE_OPERATORS)
def test_every_device_operator_has_kernels_for_cpu_cuda_meta_and_autograd(cuda_library, name):
    dump = kernels_of(name)
    for key in ("CPU", "CUDA", "Meta", "Autograd[alias]"):
        assert f"\n{key}: " in dump, f"no {key} kernel in\n{dump}"


def test_an_operator_with_a_cpu_kernel_only_falls_back_on_cuda(cuda_library):
    dump = kernels_of("zero_out")
    assert "\nCUDA: " in dump
    assert "[ boxed ]" in dump.split("\nCUDA: ")[1].splitlines()[0]


def test_the_device_code_is_compiled_for_the_architectures_that_are_asked_for(cuda_library):
    # The fat binary names the architecture of each of its parts in plain text.
    found = {number.decode() for number in re.findall(rb"sm_(\d+)", cuda_library.read_bytes())}
    asked = re.findall(r"\d+\.\d+", os.environ.get("TORCH_CUDA_ARCH_LIST", ""))
    if not asked and torch.cuda.is_available():
        asked = [".".join(map(str, torch.cuda.get_device_capability()))]
    assert found
    assert {number.replace(".", "") for number in asked} <= found


def test_the_record_names_the_cuda_of_torch(cuda_library):
    record = json.loads(cuda_library.with_suffix(".json").read_text())
    assert record["cuda"] == torch.version.cuda
