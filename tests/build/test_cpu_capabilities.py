# SPDX-License-Identifier: BSD-3-Clause
"""A library's own kernels for each instruction set, of which the one for the machine runs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from library_build import build

HERE = Path(__file__).parent
CALL = """
import sys, torch, torchext
ops = torchext.load_library(sys.argv[1])
print(ops.capability(torch.zeros(21)).unique().tolist(), torch.backends.cpu.get_cpu_capability())
"""
BEST = torch.backends.cpu.get_cpu_capability()


@pytest.fixture(scope="module")
def library():
    return build(HERE / "vectors") / "vectors.so"


@pytest.mark.parametrize("capability", ["default", "avx2", "avx512"])
def test_the_kernel_for_the_instruction_set_runs(library, capability):
    known = ["DEFAULT", "AVX2", "AVX512"]
    if capability.upper() not in known[: known.index(BEST) + 1 if BEST in known else 1]:
        pytest.skip(f"this processor has no {capability}")
    environment = {**os.environ, "ATEN_CPU_CAPABILITY": capability}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    result = subprocess.run(
        [sys.executable, "-c", CALL, library], check=True, env=environment,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert result.stdout.split() == [f"[{known.index(capability.upper())}.0]", capability.upper()]


def test_what_is_compiled_for_each_is_in_no_other_source():
    from torchext.build import OpLibrary

    folder = os.getcwd()
    os.chdir(HERE / "vectors")
    try:
        found = OpLibrary(
            "a", namespace="a", native_functions="n.yaml", sources=["*.cpp"],
            cpu_capabilities=["*_loops.cpp"],
        )  # fmt: skip
        assert found.sources == ["lanes.cpp"]
        assert found.vector_sources == ["lanes_loops.cpp"]
        assert {"lanes_loops.cpp", "lanes.h"} <= {*found.depends}
        none = OpLibrary(
            "a", namespace="a", native_functions="n.yaml", cpu_capabilities=["*_loop.cpp"]
        )
        assert none.unmatched == ["*_loop.cpp"]
    finally:
        os.chdir(folder)
