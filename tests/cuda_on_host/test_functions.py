# SPDX-License-Identifier: BSD-3-Clause
"""CUDA's functions and its runtime on the host, against torch and what they are said to do."""

import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
import torch

from torchext.toolchain import csrc, cuda

HERE = Path(__file__).parent
TOOLKIT = Path(cuda.find_toolkit() or "/no/toolkit") / "include"


@pytest.fixture
def run(device, order):
    """Launches a kernel of functions.cu."""

    def run_on_device(kernel, x, n=0):
        return torch.ops.cuda_kernels.functions(kernel, x.to(device), n).cpu()

    return run_on_device


@pytest.mark.skipif(
    not (TOOLKIT / "cuda_fp16.h").exists(), reason="compares with the headers of a CUDA toolkit"
)
def test_numbers_of_16_and_8_bits_are_those_of_the_toolkits_own_headers(tmp_path):
    """Its functions run on the host too: bit by bit, for all arguments or thousands of pairs."""
    ours = csrc.folder("testing") / "cuda_on_host" / "include"
    printed = []
    for flags in ([f"-I{TOOLKIT}"], [f"-I{ours}", "-DTORCHEXT_CUDA_ON_HOST"]):
        program = tmp_path / f"numbers{len(printed)}"
        source = HERE / "numbers" / "numbers.cpp"
        compiler = shutil.which("g++") or "c++"
        subprocess.run(
            [compiler, "-std=c++17", "-O1", "-w", *flags, source, "-o", program], check=True
        )
        printed.append(subprocess.run([program], check=True, capture_output=True, text=True).stdout)
    assert len(printed[0].splitlines()) > 140
    assert printed[1].splitlines() == printed[0].splitlines()


OPERATIONS = [torch.add, torch.mul, torch.div, lambda a, b: a.abs().sqrt()]


@pytest.mark.parametrize("number", range(4), ids=["add", "mul", "div", "sqrt"])
def test_results_are_rounded_in_each_direction(run, number):
    x = torch.randn(60) * torch.logspace(-3, 3, 60)
    nearest, zero, down, up = run("rounded", x, number).unbind(1)
    other = x.roll(-1)
    exact = OPERATIONS[number](x.double(), other.double())
    assert torch.equal(nearest, exact.float())
    assert (down.double() <= exact).all() and (exact <= up.double()).all()
    inexact = down != up
    assert inexact.sum() > 20
    infinity = torch.tensor(torch.inf)
    assert torch.equal(torch.nextafter(down, infinity)[inexact], up[inexact])
    assert torch.equal(zero, torch.where(exact > 0, down, up))


def test_inverse_functions_undo_theirs(run):
    x = torch.linspace(-0.999, 0.999, 60)
    erf, erfc, normal, erfcx = run("inverse", x).unbind(1)
    torch.testing.assert_close(erf, x, rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(erfc, x, rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(normal, x, rtol=1e-5, atol=1e-6)


def words(count):
    return torch.randint(-(2**31), 2**31, (count,), dtype=torch.int64).int()


def of_bytes(x, signed):
    lanes = torch.stack([x.long() >> 8 * i & 0xFF for i in range(4)], 1)
    return torch.where(lanes > 127, lanes - 256, lanes) if signed else lanes


def halfwords(x, signed):
    lanes = torch.stack([x.long() >> 16 * i & 0xFFFF for i in range(2)], 1)
    return torch.where(lanes > 32767, lanes - 65536, lanes) if signed else lanes


def joined(lanes):
    word = sum((lanes[:, i] & 0xFF) << 8 * i for i in range(4))
    return torch.where(word >= 2**31, word - 2**32, word).int()


def by_lane(f, signed=False, least=None, most=None):
    def expected(a, b):
        return joined(f(of_bytes(a, signed), of_bytes(b, signed)).clamp(least, most))

    least = -(2**40) if least is None else least
    most = 2**40 if most is None else most
    return expected


def word(x):
    x = x & 0xFFFFFFFF
    return torch.where(x >= 2**31, x - 2**32, x).int()


LANES = {
    "vadd4": by_lane(torch.add),
    "vaddss4": by_lane(torch.add, True, -128, 127),
    "vaddus4": by_lane(torch.add, False, 0, 255),
    "vsubss4": by_lane(torch.sub, True, -128, 127),
    "vsubus4": by_lane(torch.sub, False, 0, 255),
    "vmaxs4": by_lane(torch.maximum, True),
    "vminu4": by_lane(torch.minimum),
    "vabsdiffu4": by_lane(lambda a, b: (a - b).abs()),
    "vcmpgts4": by_lane(lambda a, b: -(a > b).long(), True),
    "vsetleu4": by_lane(lambda a, b: (a <= b).long()),
    "vavgu4": by_lane(lambda a, b: (a + b + 1) >> 1),
    "vhaddu4": by_lane(lambda a, b: (a + b) >> 1),
    "vabsss4": by_lane(lambda a, b: a.abs(), True, -128, 127),
    "vnegss4": by_lane(lambda a, b: -a, True, -128, 127),
    "vsads4": lambda a, b: word((of_bytes(a, True) - of_bytes(b, True)).abs().sum(1)),
    # half a step goes away from zero
    "vavgs4": by_lane(lambda a, b: torch.where(a + b >= 0, (a + b + 1) >> 1, (a + b) >> 1), True),
    "dp4a": lambda a, b: word(5 + (of_bytes(a, True) * of_bytes(b, True)).sum(1)),
    "dp4a, unsigned": lambda a, b: word(5 + (of_bytes(a, False) * of_bytes(b, False)).sum(1)),
    "dp2a_lo": lambda a, b: word(7 + (halfwords(a, True) * of_bytes(b, True)[:, :2]).sum(1)),
    "dp2a_hi, unsigned": (
        lambda a, b: word(7 + (halfwords(a, False) * of_bytes(b, False)[:, 2:]).sum(1))
    ),
    "hadd": lambda a, b: word((a.long() + b.long()) >> 1),
    "urhadd": lambda a, b: word(((a.long() & 0xFFFFFFFF) + (b.long() & 0xFFFFFFFF) + 1) >> 1),
    "funnelshift_lc, by too much": lambda a, b: a,
    "funnelshift_rc": lambda a, b: word((a.long() & 0xFFFFFFFF) >> 8 | b.long() << 24),
}


@pytest.mark.parametrize("name", LANES)
def test_functions_of_words_and_their_lanes(run, name):
    x = words(60)
    x[:4] = torch.tensor([0, -1, -(2**31), 0x7F80FF81 - 0])
    found = run("lanes", x, list(LANES).index(name))
    assert torch.equal(found, LANES[name](x, x.roll(-1)))


@pytest.mark.parametrize("count", [5, 192, 700])
def test_cub_scans_several_numbers_a_thread_behind_a_prefix(run, count):
    x = torch.randint(-9, 9, (count,)).float()
    assert torch.equal(run("cub_items", x), x.cumsum(0))


@pytest.mark.parametrize("block", [0, 1, 2], ids=["32", "8 x 8", "48"])
@pytest.mark.parametrize("is_exclusive", [False, True])
@pytest.mark.parametrize("count", [1, 63, 700])
def test_scans_compose_in_order_in_blocks_of_any_shape(run, count, is_exclusive, block):
    x = torch.rand(count) + 0.3
    values = [0.0]
    for factor in x.tolist():
        values.append(factor * values[-1] + 1)
    expected = torch.tensor(values[:-1] if is_exclusive else values[1:])
    torch.testing.assert_close(run("compositions", x, block + 10 * is_exclusive), expected)


@pytest.mark.parametrize("size", [2, 4, 8, 16])
@pytest.mark.parametrize("count", [33, 80, 150])
def test_tiles_of_blocks_whose_last_warp_is_not_whole(run, count, size):
    x = torch.randint(-5, 6, (count,)).float()
    rows = torch.nn.functional.pad(x, (0, -count % 80)).view(-1, size)
    up = torch.cat([rows[:, :1], rows[:, :-1]], 1)
    down = torch.cat([rows[:, 1:], rows[:, -1:]], 1)
    other = rows[:, torch.arange(size) ^ (size // 2)]
    of_all = rows.sum(1, keepdim=True) + (rows > 0).sum(1, keepdim=True)
    sums = rows.cumsum(1)
    expected = (sums, sums - rows, up + down + other, of_all.expand_as(rows))
    found = run("tiles", x, size)
    assert torch.equal(found, torch.stack([t.flatten()[:count] for t in expected], 1))


def test_cub_reduces_pairs_and_several_numbers_a_thread(run):
    x = torch.randn(50)
    x[33] = x[20] = 7.0
    assert run("cub_largest", x)[:3].tolist() == [20.0, 7.0, 7.0]


def test_cub_scans_over_warps(run):
    x = torch.randint(-9, 9, (50,)).float()
    rows = torch.nn.functional.pad(x, (0, 14)).view(2, 32)
    expected = rows.cumsum(1) - rows + rows.sum(1, keepdim=True)
    assert torch.equal(run("cub_of_warps", x), expected.flatten()[:50])


def test_cooperative_groups_are_parted_and_reduced(run):
    x = torch.randint(-9, 9, (64,)).float()
    parts, signs, before, first = run("groups", x).unbind(1)
    rows = x.view(2, 32)
    assert torch.equal(parts, x.view(8, 8).sum(1).repeat_interleave(8))
    of_negative = (rows * (rows < 0)).sum(1, keepdim=True)
    of_others = (rows * (rows >= 0)).sum(1, keepdim=True)
    assert torch.equal(signs, torch.where(rows < 0, of_negative, of_others).flatten())
    assert torch.equal(before, (rows.cumsum(1) - rows).flatten())
    leads = torch.arange(32) == 0
    assert torch.equal(first, (leads + torch.arange(32) // 8).float().repeat(2))


def test_a_librarys_own_operators_of_halves_and_numbers_that_are_too_large(run):
    x = torch.tensor([0.25, -1.0, 3.0, torch.nan])
    sums, largest, small, compared = run("halves", x).unbind(1)
    assert torch.equal(sums[:3], torch.zeros(3))  # the library's + subtracts
    assert torch.equal(largest[:3], x[:3].abs())
    assert small[:3].tolist() == [
        256.0,
        -448.0,
        448.0,
    ]  # and not nan, which torch's type makes of it
    assert compared.tolist() == [3.0, 2.0, 3.0, 2.0]


def as_half(x):
    """Numbers of 64 bits, each rounded once to one of 16."""
    return torch.tensor([struct.unpack("<e", struct.pack("<e", v))[0] for v in x.tolist()])


def test_halves_are_multiplied_and_added_with_one_rounding(run):
    x = torch.randn(60)
    found, positive, of_pair, whole = run("fused halves", x).unbind(1)
    a = x.half().double()
    b, c = a.roll(-1), a.roll(-2)
    assert torch.equal(found, as_half(a * b + c))
    assert not torch.equal(found, (a.float() * b.float()).half().float() + c.float())
    assert torch.equal(positive, as_half(a * b + c).clamp(min=0))
    assert torch.equal(of_pair, as_half(a * c + b))
    assert torch.equal(whole, (a.ceil() + b.round()).float())


def test_complex_numbers_and_code_for_a_device_alone(run):
    x = torch.randn(20)
    real, imaginary, distance, target = run("complex", x).unbind(1)
    a = torch.complex(x, torch.full_like(x, 2.0))
    b = torch.complex(torch.full_like(x, 0.5), x.roll(-1))
    torch.testing.assert_close(torch.complex(real, imaginary), (a * b + a.conj()) / b)
    torch.testing.assert_close(distance, a.abs())
    assert torch.equal(target, torch.ones(20))


@pytest.mark.parametrize("kernel", ["bounded", "bounded by a template"])
def test_more_threads_than_the_launch_bounds_say(run, kernel):
    x = torch.randn(30)
    assert torch.equal(run(kernel, x, 32), x * 2)
    with pytest.raises(
        RuntimeError, match=r"kernel bounded.*blocks of 96 threads, and its __launch"
    ):
        run(kernel, x, 96)


def test_each_kernel_is_given_dynamic_shared_memory_of_its_own(run):
    x = torch.randn(30)
    assert torch.equal(run("shared memory of one kernel", x), x * 2)
    with pytest.raises(RuntimeError, match=r"with_shared_too.*need cudaFuncSetAttribute"):
        run("shared memory of another", x)


@pytest.mark.parametrize(
    "way", ["launched through void*", "launched through another cast", "launched by ExC"]
)
def test_kernels_are_launched_by_their_address(run, way):
    x = torch.randn(30)
    assert torch.equal(run(way, x), x * 2)


def test_an_error_of_a_launch_with_a_configuration_names_its_line(run):
    source = (HERE / "kernels" / "functions.cu").read_text().splitlines()
    [line] = [i for i, text in enumerate(source, 1) if "__global__ void __launch_bounds__" in text]
    with pytest.raises(RuntimeError, match=rf"128 threads.*functions.cu:{line}\b"):
        run("launched by Ex", torch.randn(30))


@pytest.mark.parametrize("kind", ["pinned memory", "managed memory"])
def test_kernels_use_memory_of_the_host_that_was_given_to_both(run, kind):
    x = torch.randn(30)
    expected = x * 2
    expected[0] += 2
    torch.testing.assert_close(run(kind, x), expected)


def test_a_write_behind_pinned_memory(run):
    with pytest.raises(
        RuntimeError, match=r"4 bytes 0 behind the end of an allocation of 120 bytes"
    ):
        run("pinned memory, and behind it", torch.randn(30))


def test_memory_that_a_kernel_allocates_is_there_for_the_next(run):
    x = torch.randint(-9, 9, (200,)).float()
    expected = torch.nn.functional.pad(x, (0, 56)).view(4, 64).sum(0)
    found = run("allocated by a kernel", x)
    assert torch.equal(found[:64], expected)


def test_memory_that_a_kernel_freed(run):
    with pytest.raises(RuntimeError, match="reads memory of the device that is not allocated"):
        run("allocated by a kernel", torch.randn(64), 1)


def test_variables_of_the_device_take_no_more_than_they_hold(run):
    x = torch.randn(30)
    factors = torch.tensor([1.0, 2.0, 3.0, 4.0]).repeat(8)[:30]
    assert torch.equal(run("coefficients", x), x * factors)


def test_functions_of_the_runtime(run):
    x = torch.arange(40).float()
    expected = torch.zeros(10, 4)
    expected[:, 2:] = x.view(10, 4)[:, :2]
    assert torch.equal(run("runtime", x), expected.flatten())


def test_tensors_move_to_the_device(run):
    x = torch.randn(30)
    assert torch.equal(run("moved", x), x * 2)


def names_of(header, pattern):
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", (TOOLKIT / header).read_text(), flags=re.DOTALL)
    return set(re.findall(pattern, text))


# What the toolkit declares for kernels and is not here, beside scales of 8 bits (e8m0).
NOT_COVERED = {
    "__pm0", "__pm1", "__pm2", "__pm3", "__prof_trigger",  # a profiler's counters
}  # fmt: skip


@pytest.mark.skipif(
    not (TOOLKIT / "cuda_fp16.h").exists(), reason="compares with the headers of a CUDA toolkit"
)
def test_every_function_that_the_toolkit_declares_for_kernels_is_there(tmp_path):
    name = r"\b(\w+)\s*\("
    declared = set()
    for header, start in (
        ("crt/device_functions.h", "__DEVICE_FUNCTIONS_(?:STATIC_)?DECL__"),
        ("cuda_fp16.h", "__CUDA_(?:HOSTDEVICE_)?FP16_DECL__"),
        ("cuda_bf16.h", "__CUDA_(?:HOSTDEVICE_)?BF16_DECL__"),
        ("cuda_fp8.h", "__CUDA_(?:HOSTDEVICE_)?FP8_DECL__"),
    ):
        declared |= names_of(header, rf"{start}\s+[\w\s*]*?{name}")
    declared |= names_of(
        "crt/math_functions.h", rf"extern\s+(?:_\w+\s+)+(?:float|double|int)\s+{name}"
    )
    private = {n for n in declared if re.match(r"_(?!_)|__is(?:nan|inf|fin)|__sign|.*__$", n)}
    declared -= {n for n in declared if "e8m0" in n} | private | NOT_COVERED
    source = tmp_path / "names.cpp"
    checks = "".join(f"using ::{n};\n" for n in sorted(declared))
    source.write_text(
        "#include <torchext/cuda_on_host/device.h>\n#include <cuda_bf16.h>\n"
        f"#include <cuda_fp16.h>\n#include <cuda_fp8.h>\nnamespace names {{\n{checks}}}\n"
    )
    ours = csrc.folder("testing") / "cuda_on_host" / "include"
    command = [
        shutil.which("g++") or "c++",
        "-std=c++17",
        "-w",
        "-fsyntax-only",
        f"-I{ours}",
        source,
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    missing = sorted(set(re.findall(r"‘(?:::)?(\w+)’ has not been declared", done.stderr)))
    assert not missing, done.stderr[:2000]
    assert done.returncode == 0, done.stderr[:2000]
    assert len(declared) > 450
