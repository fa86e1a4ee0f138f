# SPDX-License-Identifier: BSD-3-Clause
"""Programs that leave the process: torch.export, TorchScript, torch.fx."""

import io

import pytest
import torch
from cases import (
    first_call,
    function_of_tensors,
    gradients,
    loss_of,
    operator_of,
    over_operators,
    parts,
    requiring_grad,
    run,
)
from samples import SAMPLES, tensor
from torch.export import Dim


def as_tuple(result) -> tuple:
    return result if isinstance(result, tuple) else (result,)


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


def scripted(sample, call):
    """A TorchScript function of the call's tensors, its other arguments written as constants."""
    names = [f"t{index}" for index, _ in enumerate(call.tensors)]
    remaining = iter(names)
    arguments = [
        next(remaining) if isinstance(value, torch.Tensor) else repr(value) for value in call.args
    ]
    arguments += [f"{name}={value!r}" for name, value in call.kwargs.items()]
    operator = f"torch.ops.myns.{operator_of(sample).base_name}"
    source = f"def call({', '.join(names)}):\n    return {operator}({', '.join(arguments)})\n"
    return torch.jit.CompilationUnit(source).call


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
@over_operators()
def test_a_scripted_function_is_saved_loaded_and_run(sample):
    for call in sample.calls(sample.small_shape, torch.float32):
        if None in (results := as_tuple(run(sample, call))):
            continue  # TorchScript returns no undefined tensor, of torch's own operators neither
        loaded = saved_and_loaded(torch.jit.save, torch.jit.load, scripted(sample, call))
        torch.testing.assert_close(as_tuple(loaded(*call.tensors)), results)


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
@pytest.mark.parametrize("name", ["mul.Tensor", "softmax", "rms_norm", "silu_and_mul"])
def test_a_scripted_function_has_gradients(name):
    call = requiring_grad(first_call(SAMPLES[name]))
    script = scripted(SAMPLES[name], call)
    for _ in range(3):  # the profiling executor optimizes from the second call on
        actual = torch.autograd.grad(loss_of(script(*call.tensors)), call.tensors)
        torch.testing.assert_close(actual, gradients(SAMPLES[name], call))


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_a_function_with_an_operator_is_scripted_from_python():
    def function(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return torch.ops.myns.rms_norm(x, weight, 0.5)

    x, weight = tensor((3, 4), torch.float32), tensor((4,), torch.float32)
    torch.testing.assert_close(torch.jit.script(function)(x, weight), function(x, weight))


@over_operators()
def test_fx_traces_the_operator_as_one_node(sample):
    call = first_call(sample)

    def function(tensors):
        return run(sample, call.with_tensors([tensors[i] for i, _ in enumerate(call.tensors)]))

    traced = torch.fx.symbolic_trace(function)
    targets = [node.target for node in traced.graph.nodes if node.op == "call_function"]
    assert targets.count(operator_of(sample).call) == 1
    torch.testing.assert_close(parts(traced(call.tensors)), parts(run(sample, call)))


def test_make_fx_traces_backward():
    def function(x):
        result = torch.ops.myns.silu_and_mul(x)
        return torch.autograd.grad(result.sum(), x)[0]

    x = tensor((3, 4), torch.float64).requires_grad_()
    traced = torch.fx.experimental.proxy_tensor.make_fx(function)(x)
    targets = [node.target for node in traced.graph.nodes]
    assert torch.ops.myns.silu_and_mul_backward.default in targets
    torch.testing.assert_close(traced(x), function(x))
