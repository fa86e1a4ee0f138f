# SPDX-License-Identifier: BSD-3-Clause
"""A library's own kernels for each instruction set, of which the one for the machine runs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from library_build import build
from torch.testing import assert_close

from torchext.toolchain import platforms

HERE = Path(__file__).parent
CALL = """
import sys, torch, torchext
ops = torchext.load_library(sys.argv[1])
print(ops.capability(torch.zeros(21)).unique().tolist(), torch.backends.cpu.get_cpu_capability())
"""
EXPRESSIONS = """
import sys, torch, torchext
ops = torchext.load_library(sys.argv[1])
found = []
for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
    for n in (6, 70, 20_000):
        # torch.randn's numbers are others
        numbers = torch.arange(-3 * n // 2, 3 * n - 3 * n // 2).view(3, n)
        x, y = (numbers.mul(by).remainder(7).sub(3).to(dtype) for by in (0.3, 0.7))
        target = torch.tensor([0, n - 1, 3])
        x.requires_grad_()
        results = [
            ops.gated(x, y), *ops.normalized(x, y[0]), *ops.probabilities(x, target),
            *ops.extremes(x), ops.gate(x),
        ]
        loss = sum(r.double().square().sum() for r in results if r.requires_grad)
        found += [*results, *torch.autograd.grad(loss, x)]
torch.save([tensor.detach() for tensor in found], sys.argv[2])
"""
KNOWN = ["DEFAULT", "AVX2", "AVX512"]
BEST = torch.backends.cpu.get_cpu_capability()
ON_THIS_MACHINE = KNOWN[: KNOWN.index(BEST) + 1 if BEST in KNOWN else 1]
EVERY = " ".join(platforms.cpu_capabilities(chosen=""))


@pytest.fixture(scope="module")
def library():
    return build(HERE / "vectors", TORCHEXT_CPU_CAPABILITIES=EVERY) / "vectors.so"


def run(capability, program, *arguments):
    environment = {**os.environ, "ATEN_CPU_CAPABILITY": capability.lower()}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], check=False, env=environment,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip


@pytest.mark.parametrize("capability", KNOWN)
def test_the_kernel_for_the_instruction_set_runs(library, capability):
    if capability not in ON_THIS_MACHINE:
        pytest.skip(f"this processor has no {capability}")
    result = run(capability, CALL, library)
    assert result.stdout.split() == [f"[{KNOWN.index(capability)}.0]", capability], result.stderr


@pytest.mark.skipif(len(ON_THIS_MACHINE) == 1, reason="this processor has no vectors of AVX2")
def test_expressions_of_all_instruction_sets_agree(library, tmp_path):
    found = {}
    for capability in ON_THIS_MACHINE:
        file = tmp_path / capability
        result = run(capability, EXPRESSIONS, library, file)
        assert result.returncode == 0, result.stderr
        found[capability] = torch.load(file)
    for values in found.values():
        assert len(values) == 12 * 12
        for own, other in zip(values, found["DEFAULT"]):
            # sums of 20,000 are made in another order
            sums = {"rtol": 1e-5, "atol": 1e-5} if own.dtype is torch.float32 else {}
            assert_close(own, other, **sums)


@pytest.mark.skipif(len(ON_THIS_MACHINE) == 1, reason="this processor has no vectors of AVX2")
def test_a_build_for_some_instruction_sets_chooses_the_best_of_these(tmp_path):
    shutil.copytree(HERE / "vectors", tmp_path / "some_vectors")
    folder = build(tmp_path / "some_vectors", TORCHEXT_CPU_CAPABILITIES="avx2")
    library = folder / "vectors.so"
    assert run(BEST, CALL, library).stdout.split() == ["[1.0]", BEST]
    refused = run("DEFAULT", CALL, library).stderr
    assert "built for other processors than one of DEFAULT, as TORCHEXT_CPU_CAPABILITIES" in refused


def test_an_instruction_set_that_nobody_knows_is_named():
    with pytest.raises(
        SystemExit, match="names AVX3; on this machine there are DEFAULT, AVX2, AVX"
    ):
        platforms.cpu_capabilities("x86_64", "AVX2 avx3")
    with pytest.raises(
        SystemExit, match="names AVX2; on this machine there are DEFAULT, and native"
    ):
        platforms.cpu_capabilities("aarch64", "AVX2")
    assert [*platforms.cpu_capabilities("x86_64", "native")] == [ON_THIS_MACHINE[-1]]


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
