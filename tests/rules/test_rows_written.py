# SPDX-License-Identifier: BSD-3-Clause
"""Operators that write to an argument and return nothing, in compiled functions."""

import re

import pytest
import torch
from torch._inductor.utils import run_and_get_code


@pytest.fixture
def ops(rulestest):
    return rulestest


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_large_buffer_of_which_one_row_is_written_is_not_copied(ops, dynamic):
    torch._dynamo.reset()

    def function(buffer, row):
        ops.write_row(buffer, row, 3)
        ops.write_row(buffer, row + 1, 4)
        return row * 2

    buffer, row = torch.zeros(1000, 64), torch.ones(64)
    compiled = torch.compile(function, fullgraph=True, dynamic=dynamic)
    result, (code,) = run_and_get_code(compiled, buffer, row)
    assert torch.equal(result, row * 2)
    assert (buffer[3].sum(), buffer[4].sum(), buffer.sum()) == (64, 128, 192)
    allocated = re.findall(r"= empty_strided_cpu\(\(([^)]*)\)", code)
    assert allocated and all("," not in shape.rstrip(", ") for shape in allocated), allocated


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_views_and_aliases_of_a_buffer_see_what_is_written(ops, backend):
    torch._dynamo.reset()

    def function(buffer, row):
        half = buffer[2:]
        ops.write_row(half, row, 0)
        ops.write_row(buffer, half[0] + 1, 0)
        return buffer.sum(1), half * 2

    eager, compiled, row = torch.zeros(4, 3), torch.zeros(4, 3), torch.ones(3)
    expected = function(eager, row)
    actual = torch.compile(function, backend=backend, fullgraph=True)(compiled, row)
    torch.testing.assert_close((actual, compiled), (expected, eager))
    assert compiled.tolist() == [[2.0] * 3, [0.0] * 3, [1.0] * 3, [0.0] * 3]
