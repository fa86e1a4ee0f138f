# SPDX-License-Identifier: BSD-3-Clause
"""CUDA kernels that others wrote, as their source packages have them, on the host against their CPU
kernels.

`make foreign-cuda`: fetches torch-scatter and torch-cluster, compiles both with their CUDA files
for the test device, and compares every operator in every dtype. Ends with 1 where one differs that
is not named in KNOWN, or one named there does not.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import torch

from torchext.testing import cuda_on_host

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "build" / "foreign"
PACKAGES = {"torch_scatter": "2.1.2", "torch_cluster": "1.6.3"}
# rw is a random walk, of other numbers on the CPU; the sampler has no kernel
LEFT_OUT = ("rw.cpp", "rw_cpu.cpp", "rw_cuda.cu", "sampler.cpp", "sampler_cpu.cpp")
DTYPES = [
    torch.float32, torch.float64, torch.float16, torch.bfloat16,
    torch.uint8, torch.int16, torch.int32, torch.int64,
]  # fmt: skip
# Wrong in the package: `#define OP(X, Y) Y + X` of atomics.cuh is given a conditional expression,
# so that sums of 16 bits in the upper half of a word stay as they were, and products of 8 bits that
# overflow run into their neighbours.
KNOWN = {
    (operator, torch.int16)
    for operator in (
        "scatter_sum", "scatter_mean", "scatter_mul", "segment_sum_coo", "segment_mean_coo",
    )
} | {("scatter_mul", torch.uint8)}  # fmt: skip

# Threads of its reduction read what others write in the same step: an error, as it should be. With
# the search for races off the results are compared.
RACES = {"fps"}

Call = tuple[str, torch.dtype, str, tuple, int | None]  # the last: how many results, all where None


def fetched(package: str, version: str) -> Path:
    """The folder of a source package."""
    folder = FOLDER / f"{package}-{version}"
    if not folder.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--no-build-isolation", "--no-binary", ":all:", f"{package}=={version}"]
        subprocess.run(command, cwd=FOLDER, check=True)
        shutil.unpack_archive(next(FOLDER.glob(f"{package}-{version}.tar.gz")), FOLDER)
    return folder


def loaded(package: str) -> torch.device:
    """Compile and load a package with its CUDA kernels on the host."""
    sources = fetched(package, PACKAGES[package]) / "csrc"
    files = [*sources.glob("*.cpp"), *sources.glob("cpu/*.cpp"), *sources.glob("cuda/*.cu")]
    build = FOLDER / f"build-{package}"
    return cuda_on_host.load_sources(
        f"foreign_{package}",
        sorted(path for path in files if path.name not in LEFT_OUT),
        include_dirs=[sources],
        macros=["-DWITH_CUDA"],
        build_directory=build,
    )


def numbers(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Of 16 bits such as are summed and multiplied without rounding, whatever the order."""
    if dtype in (torch.float16, torch.bfloat16):
        return torch.randint(-2, 3, shape).to(dtype)
    if dtype.is_floating_point:
        return torch.randn(shape).to(dtype)
    return torch.randint(0, 5, shape).to(dtype)


def calls_of_scatter() -> Iterator[Call]:
    for dtype in DTYPES:
        for shape, dim in (((50,), 0), ((64, 7), 0), ((5, 60), 1), ((3, 40, 5), 1)):
            x = numbers(shape, dtype)
            index = torch.randint(0, 9, (shape[dim],))
            along = [1] * dim + [-1]
            everywhere = index.view(along + [1] * (len(shape) - dim - 1)).expand(shape)
            for kind in ("sum", "mean", "mul"):
                yield f"scatter_{kind}", dtype, "", (x, everywhere, dim, None, 9), None
            for kind in ("min", "max"):
                yield f"scatter_{kind}", dtype, "", (x, everywhere, dim, None, 9), 1
            ordered = index.sort()[0]
            rows = ordered.view(along).expand(shape[: dim + 1]).contiguous()
            ends = torch.bincount(ordered, minlength=9).cumsum(0)
            ends = torch.nn.functional.pad(ends, (1, 0)).view(along)
            ends = ends.expand(*shape[:dim], 10).contiguous()
            for kind in ("sum", "mean", "min", "max"):
                count = 1 if kind in ("min", "max") else None
                yield f"segment_{kind}_coo", dtype, "", (x, rows, None, 9), count
                yield f"segment_{kind}_csr", dtype, "", (x, ends, None), count
            yield "gather_csr", dtype, "", (x.narrow(dim, 0, 9), ends, None), None
            yield "gather_coo", dtype, "", (x, rows, None), None


def calls_of_cluster() -> Iterator[Call]:
    for dtype in (torch.float32, torch.float64):
        for points, others in ((40, 9), (300, 77)):
            x, y = torch.randn(points, 3).to(dtype), torch.randn(others, 3).to(dtype)
            all_x, all_y = torch.tensor([0, points]), torch.tensor([0, others])
            halves = torch.tensor([0, points // 2, points])
            yield "fps", dtype, "", (x, halves, torch.tensor([0.3]).to(dtype), False), None
            yield "knn", dtype, "", (x, y, all_x, all_y, 4, False, 1), None
            yield "radius", dtype, "sets", (x, y, all_x, all_y, 0.9, 64, 1), None
            yield "grid", dtype, "", (x, torch.full((3,), 0.5).to(dtype), None, None), None


def equal(found: object, expected: object, how: str, dtype: torch.dtype) -> str:
    """Why two results differ, or ''."""
    if how == "sets":  # of pairs, in any order
        found, expected = (sorted(map(tuple, t.t().tolist())) for t in (found, expected))
        return "" if found == expected else "other pairs"
    wide = {"rtol": 2e-2, "atol": 2e-2} if dtype in (torch.float16, torch.bfloat16) else {}
    try:
        torch.testing.assert_close(found, expected, **wide)
    except AssertionError as error:
        return str(error).splitlines()[0]
    return ""


def main() -> int:
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    torch.manual_seed(0)
    calls = {"torch_scatter": calls_of_scatter, "torch_cluster": calls_of_cluster}
    compared, differ, races = Counter(), Counter(), Counter()
    unexpected = 0
    for package, calls_of in calls.items():
        device = loaded(package)
        for operator, dtype, how, arguments, count in calls_of():
            f = getattr(getattr(torch.ops, package), operator)
            moved = [a.to(device) if isinstance(a, torch.Tensor) else a for a in arguments]
            expected = f(*arguments)
            if operator in RACES:
                try:
                    f(*moved)
                except RuntimeError as error:
                    races[operator] += "with no barrier between the two" in str(error)
            try:
                with cuda_on_host.schedule(
                    may_read_absent_lanes=True, finds_races=operator not in RACES
                ):
                    found = f(*moved)
                found = torch.utils._pytree.tree_map(lambda t: t.cpu(), found)
                if count is not None:  # which of equal elements is named may differ
                    found, expected = found[:count], expected[:count]
                reason = equal(found, expected, how, dtype)
            except RuntimeError as error:
                reason = str(error).splitlines()[0]
            compared[package, operator] += 1
            differ[operator, dtype] += bool(reason)
            if reason and (operator, dtype) not in KNOWN:
                unexpected += 1
                print(f"{package}::{operator} of {dtype}: {reason}")
    for (package, operator), number in compared.items():
        print(f"{package}::{operator}: {number} compared")
    stale = [f"{operator} of {dtype}" for operator, dtype in KNOWN if not differ[operator, dtype]]
    stale += [f"{operator}, without a race" for operator in RACES if not races[operator]]
    print(
        f"{len(compared)} operators, {sum(compared.values())} comparisons, {sum(differ.values())} "
        f"differ, {unexpected} of them unexpectedly; {cuda_on_host.launches()} launches"
    )
    print(f"races: {dict(races)}")
    if stale:
        print(f"known to differ, and equal: {', '.join(stale)}")
    return int(unexpected > 0 or bool(stale))


if __name__ == "__main__":
    sys.exit(main())
