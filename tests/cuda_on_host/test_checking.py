# SPDX-License-Identifier: BSD-3-Clause
"""The ways to kernels on the host: a call, a command, an option; and what they refuse."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from library_build import build

import torchext
from torchext.testing import check, cuda_on_host

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def command(*words, folder):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    return subprocess.run(
        [sys.executable, "-m", *words], cwd=folder, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip


@pytest.fixture(scope="session")
def negation(project):
    """A project with one operator whose CUDA kernel leaves the last element out."""
    return build(HERE / "negation")


def test_a_kernel_that_is_wrong_fails_the_check_that_compares_it(negation):
    torchext.load_library(negation)
    report = check("negation", cuda_on_host=True, raise_exception=False, isolate=False)
    assert report.device == "torchext:0"
    failed = {(cell.operator, cell.check) for cell in report.failures}
    assert ("negated", "device") in failed
    assert not any(operator == "doubled" for operator, _ in failed)


def test_an_index_of_32_bits_fails_the_check_of_layouts(negation):
    torchext.load_library(negation)
    chosen = {"operators": ["halved", "doubled"], "checks": ["layouts"], "isolate": False}
    report = check("negation", cuda_on_host=True, raise_exception=False, **chosen)
    assert [cell.operator for cell in report.failures] == ["halved"]
    [failure] = report.failures
    assert "kernel halve, block (1, 0, 0), thread (" in failure.reason
    # and not on the CPU, where its strides are those of other layouts alone
    assert check("negation", raise_exception=False, **chosen).passed


def test_the_command_checks_a_library_in_its_project(negation):
    done = command("torchext.testing.cuda_on_host", ".", "--operators", "doubled", folder=negation)
    assert "error: there is no package '.'" in done.stdout
    library = str(negation / "negation_library.so")
    done = command("torchext.testing.cuda_on_host", library, "--operators", "doubled", folder="/")
    assert done.returncode == 0, done.stdout
    assert "negation on torchext:0" in done.stdout
    done = command("torchext.testing.cuda_on_host", library, folder=negation)
    assert done.returncode == 1
    assert re.search(r"\d+  failed\n", done.stdout), done.stdout


def test_the_option_of_pytest_checks_the_kernels(negation):
    library = str(negation / "negation_library.so")
    words = ["pytest", "-p", "torchext.pytest_plugin", "-q", "--torchext", library]
    words += ["--torchext-cuda-on-host", "-k", "device or samples", "-p", "no:cacheprovider"]
    done = command(*words, folder=negation)
    assert "1 failed, 5 passed" in done.stdout, done.stdout
    done = command("pytest", "-p", "torchext.pytest_plugin", "--torchext-cuda-on-host", folder="/")
    assert "--torchext-cuda-on-host is for --torchext NAME" in done.stdout


def test_there_is_one_device(negation):
    with pytest.raises(ValueError, match="the checks run on the test device: no other"):
        check(negation / "negation_library.so", cuda_on_host=True, device="cuda")
    words = ["pytest", "-p", "torchext.pytest_plugin", "--torchext", "negation"]
    done = command(*words, "--torchext-cuda-on-host", "--torchext-device", "cuda", folder=negation)
    assert "--torchext-cuda-on-host has its own device: no --torchext-device" in done.stdout


def test_a_library_without_a_project_says_where_to_go(negation, tmp_path):
    with pytest.raises(
        RuntimeError, match=rf"there is no setup.py in {tmp_path}: call this in its"
    ):
        cuda_on_host.load(negation / "negation_library.so", tmp_path)


def test_a_library_without_cuda_files_says_so(project):
    plain = build(HERE.parent / "device" / "guard_ops")
    torchext.load_library(plain)
    with pytest.raises(RuntimeError, match="has no CUDA sources: in its setup.py there is no .cu"):
        cuda_on_host.load("guard_ops", plain)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("#include <thrust/sort.h>", "Thrust cannot run on the host"),
        ("#include <mma.h>", r"tensor cores \(mma.h\) cannot run on the host"),
        ("wmma::fragment f;", "tensor cores .* cannot run on the host"),
        ("void f() { undeclared(); }", "undeclared"),
        ("__global__ void k(); void f() { k<<<1, 2; }", "this launch cannot be read"),
    ],
)
def test_a_file_that_cannot_run_on_the_host_is_named_with_its_line(
    project, tmp_path, line, message
):
    source = tmp_path / "kernel.cu"
    source.write_text(f"\n\n{line}\n")
    with pytest.raises(RuntimeError, match=message) as caught:
        cuda_on_host.load_sources("refused", [source], build_directory=tmp_path / "build")
    assert "kernel.cu:3" in str(caught.value)


def test_another_extension_of_torch_is_loaded_from_its_sources(project, tmp_path):
    import torch

    (tmp_path / "half.cuh").write_text("__device__ inline float half_of(float x) { return x / 2; }")
    source = tmp_path / "kernel.cu"
    source.write_text("""
#include <ATen/cuda/CUDAContext.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>
#include "half.cuh"

__global__ void kernel(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) { y[i] = half_of(x[i]); }
}

at::Tensor halved(const at::Tensor& x) {
  TORCH_CHECK(x.is_cuda());
  at::Tensor y = at::empty_like(x);
  const int n = x.numel();
  kernel<<<(n + 31) / 32, 32, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.const_data_ptr<float>(), y.mutable_data_ptr<float>(), n);
  return y;
}

TORCH_LIBRARY(others, m) { m.def("halved(Tensor x) -> Tensor"); }
TORCH_LIBRARY_IMPL(others, CUDA, m) { m.impl("halved", &halved); }
""")
    device = cuda_on_host.load_sources("others", [source], build_directory=tmp_path / "build")
    x = torch.randn(100)
    assert torch.equal(torch.ops.others.halved(x.to(device)).cpu(), x / 2)
