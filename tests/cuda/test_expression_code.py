# SPDX-License-Identifier: BSD-3-Clause
"""What nvcc makes of the kernels of expressions, for every architecture that is promised."""

import re
import sys
from pathlib import Path

import pytest
from library_build import build

from torchext.testing import cuda_code
from torchext.toolchain import cuda

pytestmark = pytest.mark.slow

NAME = re.compile(
    r"fused::(\w+)_kernel<.*expressions::(\w+), (?:c10::)?(\w+)(?:, (\w+))?(?:, (\w+))?>"
)
BYTES = {"float": 4, "BFloat16": 2, "double": 8}


@pytest.fixture(scope="module")
def kernels():
    """The machine code of every kernel of operators_of_rows."""
    if cuda.find_toolkit() is None:
        pytest.skip("there is no nvcc")
    try:
        cuda_code.find_nvdisasm()
    except RuntimeError:
        pytest.skip("there is no nvdisasm")
    project = build(Path(__file__).parent / "operators_of_rows")
    sys.path.append(str(project))  # what was built in place
    return cuda_code.kernels("code_of_rows", project=project)


def test_every_operator_has_kernels_for_its_dtypes(kernels):
    found = {}
    for kernel in kernels:
        loop, operator, dtype, *_ = NAME.search(kernel.kernel).groups()
        found.setdefault((loop, operator), set()).add(dtype)
    assert {kernel.architecture for kernel in kernels} == {"80", "90", "100"}
    assert found["dense", "swiglu_backward"] == found["rows", "layer_norm"] == {"float", "BFloat16"}
    assert found["rows", "softmax_backward"] == {"float", "BFloat16", "double"}
    # float32 stands beside 16 bits of several dtypes
    assert found["rows", "cross_entropy"] == {"BFloat16", "float", "double"}


def test_no_kernel_spills(kernels):
    assert [kernel for kernel in kernels if kernel.spill_bytes] == []


# Whose results are numbers of rows, or bytes.
NARROW = {
    "cross_entropy",
    "cross_entropy_jvp",
    "quantize",
    "quantize_jvp",
    "quantize_double_backward",
}


def test_rows_are_read_and_written_16_bytes_at_once(kernels):
    narrow = set()
    for kernel in kernels:
        loop, operator, dtype, width, _ = NAME.search(kernel.kernel).groups()
        if loop == "strided" or int(width) == 1:
            continue
        assert int(width) == 16 // BYTES[dtype], kernel
        assert max(kernel.loads) == 16, kernel
        if max(kernel.stores) < 16:
            narrow.add(operator)
    assert narrow == NARROW


# Those that need more than 128 registers, by architecture.
CROWDED = {
    ("90", "layer_norm_double_backward"),
    ("100", "layer_norm_backward"),
    ("100", "layer_norm_double_backward"),
    ("100", "layer_norm_jvp"),
}


def test_two_blocks_have_room(kernels):
    """Of 256 threads on a multiprocessor, but for those of which one has."""
    crowded = [kernel for kernel in kernels if kernel.occupancy[256] < 0.25]
    found = {(kernel.architecture, NAME.search(kernel.kernel).group(2)) for kernel in crowded}
    assert found == CROWDED
    assert all(kernel.occupancy[256] == 0.125 for kernel in crowded)
