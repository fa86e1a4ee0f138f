# SPDX-License-Identifier: BSD-3-Clause
"""torch.export: every operator in a program that is saved and loaded."""

import io

import pytest
import torch
from cases import (
    first_call,
    function_of_tensors,
    over_operators,
    parts,
    run,
)
from samples import SAMPLES
from torch.export import Dim


class OperatorModule(torch.nn.Module):
    """Calls an operator on tensors; its other arguments are constants of the module."""

    def __init__(self, sample, call):
        super().__init__()
        self.function = function_of_tensors(sample, call)

    def forward(self, *tensors):
        return self.function(*tensors)


def saved_and_loaded(save, load, program):
    buffer = io.BytesIO()
    save(program, buffer)
    buffer.seek(0)
    return load(buffer)


@over_operators()
def test_an_exported_program_is_saved_loaded_and_run(sample):
    for call in sample.calls(sample.small_shape, torch.float32):
        program = torch.export.export(OperatorModule(sample, call), tuple(call.tensors))
        loaded = saved_and_loaded(torch.export.save, torch.export.load, program)
        result = loaded.module()(*call.tensors)
        torch.testing.assert_close(parts(result), parts(run(sample, call)))


@pytest.mark.parametrize("name", ["mul.Tensor", "softmax", "rms_norm", "silu_and_mul", "zero_out"])
def test_an_exported_program_keeps_a_dynamic_size(name):
    sample = SAMPLES[name]
    call = first_call(sample)
    rows = Dim("rows", min=2, max=64)
    shapes = (tuple({0: rows} if t.dim() == 2 else None for t in call.tensors),)
    program = torch.export.export(
        OperatorModule(sample, call), tuple(call.tensors), dynamic_shapes=shapes
    )
    other = next(iter(sample.calls((9, 4), torch.float64)))
    result = program.module()(*other.tensors)
    torch.testing.assert_close(parts(result), parts(run(sample, other)))


def test_an_exported_program_names_the_operator():
    sample = SAMPLES["rms_norm"]
    call = first_call(sample)
    program = torch.export.export(OperatorModule(sample, call), tuple(call.tensors))
    assert torch.ops.myns.rms_norm.default in [node.target for node in program.graph.nodes]
