# SPDX-License-Identifier: BSD-3-Clause
"""Kernels for each instruction set, a library's own and those of expressions: which of them run."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml
from cpu_capabilities import BEST, KNOWN, ON_THIS_MACHINE
from library_build import build
from torch.testing import assert_close

from torchext.toolchain import platforms

HERE = Path(__file__).parent
TESTS = HERE.parent
CALL = """
import sys, torch, torchext
ops = torchext.load_library(sys.argv[1])
print(ops.capability(torch.zeros(21)).unique().tolist(), torch.backends.cpu.get_cpu_capability())
"""
EXPRESSIONS = """
import sys, torch, torchext
sys.path.append(sys.argv[3])
from rows_with_torch import FLOATS, WITH_TORCH, arguments_of, as_tuple
ops = torchext.load_library(sys.argv[1])
numbers = torch.arange(-300, 301).mul(0.37).remainder(9).sub(4.5)
found = []
for name in sys.argv[4].split():
    count = len(getattr(ops, name).default._schema.arguments)
    for dtype in FLOATS:
        found += getattr(ops, name)(*(numbers.roll(37 * i).to(dtype) for i in range(count)))
for name in WITH_TORCH:
    for dtype in FLOATS:
        for length in (5, 70, 20_000):
            found += as_tuple(getattr(ops, name)(*arguments_of(name, (3,), length, dtype)))
torch.save(found, sys.argv[2])
"""
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


def built_for(capabilities, folder):
    project = folder / f"vectors_{capabilities.replace(' ', '_')}"
    shutil.copytree(HERE / "vectors", project)
    return build(project, TORCHEXT_CPU_CAPABILITIES=capabilities) / "vectors.so"


def test_a_build_for_fewer_runs_the_best_of_these(tmp_path):
    assert run(BEST, CALL, built_for("default", tmp_path)).stdout.split() == ["[0.0]", BEST]


@pytest.mark.skipif(len(ON_THIS_MACHINE) == 1, reason="this processor has no vectors of AVX2")
def test_a_build_for_others_than_there_are_says_so(tmp_path):
    refused = run("DEFAULT", CALL, built_for("avx2", tmp_path))
    assert refused.returncode == 1
    assert "was built for other instruction sets than DEFAULT (TORCHEXT_CPU_CAP" in refused.stderr


def test_an_instruction_set_that_nobody_knows_is_named():
    with pytest.raises(
        SystemExit, match="names AVX3; on this machine there are DEFAULT, AVX2, AVX"
    ):
        platforms.cpu_capabilities("x86_64", "AVX2 avx3")
    with pytest.raises(
        SystemExit, match="names AVX2; on this machine there are DEFAULT, and native"
    ):
        platforms.cpu_capabilities("aarch64", "AVX2")
    for chosen in ("native", " Native", f"{ON_THIS_MACHINE[-1]},native"):
        assert [*platforms.cpu_capabilities("x86_64", chosen)] == [ON_THIS_MACHINE[-1]]
    assert [*platforms.cpu_capabilities("x86_64", " ")] == KNOWN
    assert platforms.without_cpu_capabilities(["AVX2"]) == [
        ("TORCHEXT_WITHOUT_DEFAULT", None), ("TORCHEXT_WITHOUT_AVX512", None)
    ]  # fmt: skip


def entries(folder):
    """Those of tests/pointwise that have every function of one kind each, and all of tests/rows."""
    spec = TESTS / folder / f"{folder}test" / "native_functions.yaml"
    return [
        entry
        for entry in yaml.safe_load(spec.read_text())
        if entry["func"].startswith("of_") == (folder == "pointwise")
    ]


@pytest.fixture(scope="module")
def expressions(tmp_path_factory):
    """Every function of elements, and the operators of rows, without what is derived of them."""
    chosen = [*entries("pointwise"), *entries("rows")]
    project = tmp_path_factory.mktemp("sets") / "of_every_instruction_set"
    shutil.copytree(HERE / "vectors", project, ignore=lambda *_: ["lanes.cpp", "lanes_loops.cpp"])
    spec = [{**entry, "differentiable": False} for entry in chosen]
    (project / "native_functions.yaml").write_text(yaml.dump(spec, sort_keys=False, width=1000))
    setup = (project / "setup.py").read_text()
    setup = setup.replace('    sources=["*.cpp"],\n    cpu_capabilities=["*_loops.cpp"],\n', "")
    (project / "setup.py").write_text(setup)
    return build(project, TORCHEXT_CPU_CAPABILITIES=EVERY) / "vectors.so"


def test_expressions_of_all_instruction_sets_agree(expressions, tmp_path):
    found = {}
    names = " ".join(entry["func"].partition("(")[0] for entry in entries("pointwise"))
    for capability in ON_THIS_MACHINE:
        file = tmp_path / capability
        result = run(capability, EXPRESSIONS, expressions, file, TESTS / "rows", names)
        assert result.returncode == 0, result.stderr
        found[capability] = torch.load(file)
    for values in found.values():
        assert len(values) == len(found["DEFAULT"]) > 500
        for own, other in zip(values, found["DEFAULT"], strict=True):
            exact = own.dtype in (torch.float32, torch.float64)
            tolerances = {"rtol": 1e-5, "atol": 1e-5} if exact else {}
            assert_close(own, other, equal_nan=True, **tolerances)


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
