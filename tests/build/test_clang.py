# SPDX-License-Identifier: BSD-3-Clause
"""A library that Clang compiles: the same values, torch's threads, its headers read once."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cpu_capabilities import ON_THIS_MACHINE
from sample_project import COMMAND, ROOT, Build, Project, python, run

CLANG = "clang++"
pytestmark = pytest.mark.skipif(not shutil.which(CLANG), reason="there is no clang++")

# A kernel that says which thread had each element, or throws in the last.
_THREADS = """
// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/Parallel.h>
#include <ATen/ops/empty_like.h>
#include <sample_ops/kernels/scale.h>

at::Tensor sample_ops::native::scale_cpu(const at::Tensor& self, double factor) {
  at::Tensor result = at::empty_like(self);
  float* to = result.mutable_data_ptr<float>();
  const int64_t sum = at::parallel_reduce(
      0, self.numel(), 10, int64_t{0},
      [&](int64_t begin, int64_t end, int64_t all) {
        for (int64_t i = begin; i < end; ++i) {
          to[i] = static_cast<float>(at::get_thread_num() + 1);
          all += i;
        }
        TORCH_CHECK(factor > 0 || end < self.numel(), "the last of ", end, " elements");
        return all;
      },
      [](int64_t a, int64_t b) { return a + b; });
  TORCH_CHECK(sum == self.numel() * (self.numel() - 1) / 2, "each element once, not ", sum);
  at::parallel_for(0, self.numel(), 10, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      to[i] *= static_cast<float>(factor);
    }
  });
  return result;
}
"""


def build(project: Project) -> Build:
    return project.build(CXX=CLANG)


@pytest.fixture(scope="module")
def first(tmp_path_factory) -> tuple[Project, Build]:
    """The sample, and what its first build said."""
    project = Project(tmp_path_factory.mktemp("clang"))
    made = build(project)
    assert made.status == 0, made.text
    project.keep(tmp_path_factory.mktemp("clang_kept") / "sample")
    return project, made


@pytest.fixture
def project(first) -> Project:
    first[0].restore()
    return first[0]


def test_it_warns_of_nothing(first):
    assert "warning" not in first[1].text


def test_values_and_gradients_are_right(project):
    code = (
        "import torch, sample_ops\n"
        "x = torch.tensor([3.0], requires_grad=True)\n"
        "sample_ops.ops.scale(x, 2.0).backward()\n"
        "print(x.grad.item(), sample_ops.ops.shift(x, 1.0).item())"
    )
    assert python(code, project.folder).text == "2.0 4.0\n"


def test_nothing_is_compiled_again(project):
    again = build(project)
    assert (again.status, again.compiled, again.linked) == (0, [], False), again.text


def test_touching_a_kernel_compiles_one_object(project):
    os.utime(project.folder / "csrc/square.cpp")
    again = build(project)
    assert (again.compiled, again.linked) == (["csrc/square.cpp"], True), again.text


def test_what_asks_for_headers_reads_them_and_nothing_else(project):
    (folder,) = project.folder.glob("build/temp-torch-*/sample_ops._C")
    told = {}
    for part in (folder, folder / "precompiled"):
        command = ["ninja", "-C", str(part), "-t", "commands"]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        words = [shlex.split(line) for line in said.splitlines()]
        told |= {line[line.index("-o") - 1]: "-include-pch" in line for line in words}
    asking = {path for path, is_told in told.items() if is_told}
    assert {path for path in told if "/units/" in path} == asking != set()
    assert any(path.endswith("csrc/square.cpp") for path in told.keys() - asking)


@pytest.mark.parametrize("flag", ["-fopenmp", "-fopenmp=libomp"])
def test_threads_beside_torchs_are_refused(project, flag):
    made = project.build(CXX=CLANG, CXXFLAGS=f"-O0 {flag}")
    assert made.status != 0
    assert "error: with -fopenmp clang++ uses LLVM's OpenMP beside torch's" in made.text


def test_parallel_loops_run_on_torchs_threads(project):
    (project.folder / "csrc/scale.cpp").write_text(_THREADS)
    made = build(project)
    assert made.status == 0, made.text
    code = (
        "import torch, sample_ops\n"
        "x = torch.zeros(100)\n"
        "for threads in (1, 2, 3):\n"
        "    torch.set_num_threads(threads)\n"
        "    print(sample_ops.ops.scale(x, 2.0).unique().tolist())\n"
        "    try:\n"
        "        sample_ops.ops.scale(x, 0.0)\n"
        "    except RuntimeError as error:\n"
        "        print(str(error).splitlines()[0])\n"
        "print({line.split('/')[-1].strip() for line in open('/proc/self/maps') if 'omp' in line})"
    )
    last = "the last of 100 elements"
    assert python(code, project.folder).text.splitlines() == [
        "[2.0]", last, "[2.0, 4.0]", last, "[2.0, 4.0, 6.0]", last, "{'libgomp.so.1'}",
    ]  # fmt: skip


_EXPRESSIONS = """\
- func: quotient(Tensor x, Tensor y) -> Tensor
  dtypes: AllAndComplex
  pointwise: x / y
- func: swiglu(Tensor gate, Tensor up) -> Tensor
  pointwise: gate * sigmoid(gate) * up
- func: my_softmax(Tensor x) -> Tensor
  let:
    e: exp(x - amax(x))
  rows: e / sum(e)
"""
_SETUP = """\
from setuptools import setup
from torchext.build import BuildExtension, OpLibrary

library = OpLibrary("by_clang", namespace="by_clang", native_functions="native_functions.yaml")
setup(name="by-clang", ext_modules=[library], cmdclass={"build_ext": BuildExtension})
"""
_COMPARED = """\
import torch, torchext
ops = torchext.load_library("by_clang.so")
print(torch.backends.cpu.get_cpu_capability())
for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
    x, y = torch.randn(2, 33, 71, dtype=dtype)
    near = dict(rtol=2e-2, atol=1e-2) if dtype.itemsize == 2 else {}
    same = lambda found, expected: torch.testing.assert_close(found, expected, **near)
    same(ops.swiglu(x, y), torch.nn.functional.silu(x) * y)
    same(ops.my_softmax(x), x.softmax(-1))
    same(ops.my_softmax(x.t()), x.t().softmax(-1))
special = torch.tensor([0.0, -0.0, 1.0, -2.0, torch.inf, -torch.inf, torch.nan])
for dtype in (torch.int32, torch.float32, torch.float64, torch.complex64, torch.complex128):
    x = special.nan_to_num(3, 4, 5) if dtype == torch.int32 else special
    x = x.to(dtype)[:, None].expand(7, 7)
    torch.testing.assert_close(ops.quotient(x, x.t()), x / x.t(), equal_nan=True, rtol=0, atol=0)
"""


@pytest.mark.parametrize("capability", ON_THIS_MACHINE)
def test_optimised_expressions_are_torchs(expressions, capability):
    chosen = capability.lower()
    made = run([sys.executable, "-c", _COMPARED], expressions, ATEN_CPU_CAPABILITY=chosen)
    assert (made.status, made.text) == (0, f"{capability}\n")


@pytest.fixture(scope="module")
def expressions(tmp_path_factory) -> Path:
    """A library for all instruction sets, as a user builds it."""
    folder = tmp_path_factory.mktemp("by_clang")
    (folder / "native_functions.yaml").write_text(_EXPRESSIONS)
    (folder / "setup.py").write_text(_SETUP)
    made = run(COMMAND, folder, CXX=CLANG)
    assert made.status == 0, made.text
    assert "warning" not in made.text
    return folder


_ON_HOST = """\
import torch, torchext
from torchext.testing import cuda_on_host
ops = torchext.load_library("negation_library.so")
device = cuda_on_host.load("negation_library", ".")
x = torch.randn(70)
print(torch.equal(ops.doubled(x.to(device)).cpu(), ops.doubled(x)))
"""


def test_cuda_kernels_for_the_host_are_gccs(tmp_path):
    folder = tmp_path / "negation"
    shutil.copytree(ROOT / "tests" / "cuda_on_host" / "negation", folder)
    chosen = {"CXX": CLANG, "CXXFLAGS": "-O0 -fcolor-diagnostics -Rpass=none"}  # Clang's alone
    made = run(COMMAND, folder, TORCHEXT_CUDA_ON_HOST="1", **chosen)
    assert made.status == 0, made.text
    said = run([sys.executable, "-W", "ignore", "-c", _ON_HOST], folder, **chosen)
    assert said.text.splitlines()[-1] == "True", said.text
