# SPDX-License-Identifier: BSD-3-Clause
"""A library that Clang compiles: the same values, torch's threads, its headers read once."""

import os
import shlex
import shutil
import subprocess

import pytest
from sample_project import Build, Project, python

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
