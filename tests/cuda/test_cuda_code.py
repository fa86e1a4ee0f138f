# SPDX-License-Identifier: BSD-3-Clause
"""What nvcc makes of kernels: read from its machine code, and kept for the library's own."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from torchext.testing import cuda_code
from torchext.toolchain import cuda
from torchext.toolchain.cuda_code import compile_kernels

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "benchmarks"))

KERNELS = r"""
#include <cuda_fp16.h>

__global__ void wide(const float4* x, float4* y) {
  y[threadIdx.x] = x[threadIdx.x];
}

template <typename T, int N>
__global__ void narrow(const T* x, T* y) {
  __shared__ T shared[N];
  shared[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = shared[N - 1 - threadIdx.x];
}
template __global__ void narrow<__half, 256>(const __half*, __half*);
template __global__ void narrow<double, 512>(const double*, double*);

namespace {
__global__ void counted(int* x) {
  atomicAdd(x, 1);
}
}

// More values at once than 32 registers hold.
__global__ void __launch_bounds__(1024, 2) spilling(const float* x, float* y) {
  float values[64];
#pragma unroll
  for (int i = 0; i < 64; ++i) {
    values[i] = x[i * 1024 + threadIdx.x];
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 64; ++i) {
    y[i * 1024 + threadIdx.x] = values[63 - i] * values[i];
  }
}

void launch(const float* x, float* y, int* z) {
  wide<<<1, 32>>>(reinterpret_cast<const float4*>(x), reinterpret_cast<float4*>(y));
  counted<<<1, 32>>>(z);
  spilling<<<1, 1024>>>(x, y);
}
"""


@pytest.fixture(scope="module")
def nvdisasm():
    """The disassembler, where the machine has it and nvcc."""
    if cuda.find_toolkit() is None:
        pytest.skip("there is no nvcc")
    try:
        return cuda_code.find_nvdisasm()
    except RuntimeError:
        pytest.skip("there is no nvdisasm")


@pytest.fixture(scope="module")
def compiled(nvdisasm, tmp_path_factory):
    """By architecture and name, what is read of the kernels above."""
    folder = tmp_path_factory.mktemp("cuda_code")
    (folder / "kernels.cu").write_text(KERNELS)
    command = {"sources": ["kernels.cu"], "include_dirs": [], "macros": [], "flags": ["-O3"]}
    (folder / "command.json").write_text(json.dumps(command))
    codes = compile_kernels(folder / "command.json", folder, ["80", "90"])
    found = cuda_code.read(codes, nvdisasm)
    return {(kernel.architecture, kernel.kernel): kernel for kernel in found}


@pytest.mark.parametrize("architecture", ["80", "90"])
def test_the_widths_of_accesses_are_read(compiled, architecture):
    assert compiled[architecture, "wide"].loads == {16: 1}
    assert compiled[architecture, "wide"].stores == {16: 1}
    assert compiled[architecture, "narrow<__half, 256>"].loads == {2: 1}
    assert compiled[architecture, "narrow<double, 512>"].stores == {8: 1}
    assert compiled[architecture, "counted"].atomics == 1
    assert compiled[architecture, "wide"].atomics == 0


@pytest.mark.parametrize("architecture", ["80", "90"])
def test_registers_spills_and_shared_memory_are_read(compiled, architecture):
    spilling = compiled[architecture, "spilling"]
    assert spilling.registers == 32
    assert spilling.spill_bytes > 0
    assert spilling.stack_bytes > 0
    assert compiled[architecture, "wide"].spill_bytes == 0
    assert 8 <= compiled[architecture, "wide"].registers <= 32
    assert compiled[architecture, "narrow<__half, 256>"].shared_bytes == 512
    assert compiled[architecture, "narrow<double, 512>"].shared_bytes == 4096


def test_occupancy_is_that_of_the_occupancy_calculator(nvdisasm):
    # The limits of the programming guide, one after the other: threads, registers (which are given
    # to a warp by 256), blocks, shared memory with the 1 KiB that is taken from each block.
    known = {
        ("90", 32, 0, 1024, 0): 1.0,
        ("90", 64, 0, 256, 0): 0.5,
        ("90", 33, 0, 1024, 0): 0.5,
        ("90", 255, 0, 512, 0): 0.0,
        ("90", 16, 0, 32, 0): 0.5,
        ("90", 32, 0, 256, 113 << 10): 0.25,
        ("90", 32, 0, 256, 114 << 10): 0.125,
        ("80", 32, 0, 256, 81 << 10): 0.25,
        ("80", 32, 0, 256, 164 << 10): 0.0,
        ("89", 32, 0, 1024, 0): 2 / 3,
    }
    assert cuda_code.occupancies(list(known)) == pytest.approx(list(known.values()))


def test_a_file_that_nvcc_refuses_is_named(nvdisasm, tmp_path):
    (tmp_path / "wrong.cu").write_text("__global__ void f() { undeclared(); }\n")
    command = {"sources": ["wrong.cu"], "include_dirs": [], "macros": [], "flags": []}
    (tmp_path / "command.json").write_text(json.dumps(command))
    with pytest.raises(RuntimeError, match=r'(?s)failed with wrong.cu for sm_90:.*"undeclared"'):
        compile_kernels(tmp_path / "command.json", tmp_path, ["90"])


def test_flags_that_choose_architectures_give_way(nvdisasm, tmp_path):
    (tmp_path / "empty.cu").write_text("__global__ void f() {}\n")
    flags = ["-gencode", "arch=compute_80,code=sm_80", "-O2", "-arch=sm_75"]
    command = {"sources": ["empty.cu"], "include_dirs": [], "macros": [], "flags": flags}
    (tmp_path / "command.json").write_text(json.dumps(command))
    [code] = compile_kernels(tmp_path / "command.json", tmp_path, ["90"])
    assert [kernel.kernel for kernel in cuda_code.read([code], nvdisasm)] == ["f"]


@pytest.mark.slow
def test_the_command_prints_the_table_of_a_library(nvdisasm, tmp_path):
    out = tmp_path / "out.json"
    words = ["torchext.testing.cuda_code", "torchext", "--architectures", "90"]
    words += ["--sources", "softmax.cu", "--json", str(out)]
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=ROOT, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    line = r"softmax_rows<4, 4, float> +90 +\d+ +0 +0 .*%  16:\d+ +16:\d+\n"
    assert re.search(line, done.stdout)
    assert {row["source"] for row in json.loads(out.read_text())} == {"csrc/cuda/softmax.cu"}


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--architectures", "91"], "the architecture '91' is not known: 75, 80"),
        (["--sources", "absent.cu"], "none of csrc/cuda/cumsum.cu, .* is absent.cu"),
        (["--project", "/"], "there is no setup.py in /: call this in its folder"),
    ],
)
def test_what_cannot_be_made_is_one_sentence(nvdisasm, capsys, arguments, error):
    assert cuda_code.main(["torchext", *arguments]) == 1
    assert re.search(error, capsys.readouterr().err)


def test_a_machine_without_the_tools_is_told_where_they_are(monkeypatch, capsys):
    monkeypatch.setattr(cuda_code, "find_nvdisasm", lambda: shutil.which("true"))
    monkeypatch.setattr(cuda, "find_toolkit", lambda: None)
    assert cuda_code.main(["torchext", "--project", str(ROOT)]) == 1
    assert "error: there is no nvcc: install the CUDA toolkit" in capsys.readouterr().err


# -- the table that is kept


@pytest.fixture(scope="module")
def kept():
    return json.loads((ROOT / "benchmarks" / "results" / "cuda_code.json").read_text())


def test_the_table_is_of_these_kernels(kept):
    from cuda_code import digest  # of benchmarks/

    assert kept["digest"] == digest(), "run python benchmarks/cuda_code.py, which needs nvcc"
    names = {path.name for path in (ROOT / "csrc" / "cuda").glob("*.cu")}
    elementwise = {"mul.cu", "muladd.cu"}
    assert {Path(row["source"]).name for row in kept["kernels"]} == names - elementwise
    assert {row["architecture"] for row in kept["kernels"]} == {"80", "90", "100"}


def test_no_kernel_spills(kept):
    assert [row for row in kept["kernels"] if row["spill_bytes"]] == []


def test_kernels_of_packs_read_and_write_16_bytes_at_once(kept):
    packs = re.compile(r"(?:softmax_rows|partial_dot)<(\d+)")
    seen = set()
    for row in kept["kernels"]:
        found = packs.search(row["kernel"])
        if found is None or int(found[1]) == 1:
            continue
        name = row["kernel"].split("<")[0]
        seen.add(name)
        wide = {kind: max(map(int, row[kind]), default=0) for kind in ("loads", "stores")}
        assert wide["loads"] >= 16, row
        assert wide["stores"] >= 16 or name == "partial_dot", row  # which writes one number
        if name != "partial_dot":  # where numbers are behind the last pack
            assert min(map(int, row["loads"])) >= 16, row
            assert min(map(int, row["stores"])) >= 16, row
    assert seen == {"softmax_rows", "partial_dot"}


def test_every_kernel_has_room_for_the_blocks_that_it_is_launched_with(kept):
    launched = {}
    for row in kept["traffic"]:
        for launch in row["launches"]:
            name = launch["kernel"].split("<")[0]
            threads = launch["block"][0] * launch["block"][1] * launch["block"][2]
            launched[name] = max(threads, launched.get(name, 0))
    own = {row["kernel"].split("<")[0] for row in kept["kernels"]}
    assert own <= set(launched)
    for row in kept["kernels"]:
        least = next(n for n in (128, 256, 512) if n >= launched[row["kernel"].split("<")[0]])
        assert row["occupancy"][str(least)] >= 0.25, row


def test_what_is_written_is_the_results_alone(kept):
    for row in kept["traffic"]:
        if row["operator"] != "dot":  # of partial sums
            assert row["written_bytes"] == row["result_bytes"], row["call"]
        assert row["read_bytes"] >= row["argument_bytes"], row["call"]
        assert row["ratio"] <= 2.5, row["call"]
