# SPDX-License-Identifier: BSD-3-Clause
"""TorchScript: functions scripted and traced, saved, and loaded by another process."""

import io
import json
import os
import subprocess
import sys

import pytest
import torch
from cases import (
    first_call,
    function_of_tensors,
    gradients,
    is_differentiable,
    loss_of,
    operator_of,
    over_operators,
    parts,
    requiring_grad,
    run,
)
from operators import FORMS, OPERATORS, REPOSITORY
from programs import Program, as_tuple, over_everything, programs_of
from samples import tensor

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")

# Run by another process, with the folder as its argument: what goes wrong with each file
LOAD = """
import json, sys, torch
{imports}
folder = sys.argv[1]
complaints = {{}}
for name, calls in torch.load(f"{{folder}}/calls.pt").items():
    for index, (inputs, expected) in enumerate(calls):
        try:
            results = torch.jit.load(f"{{folder}}/{{name}}.{{index}}.pt")(*inputs)
            results = results if isinstance(results, tuple) else (results,)
            torch.testing.assert_close(results, expected)
        except Exception as error:
            complaints[f"{{name}} {{index}}"] = str(error)
print(json.dumps(complaints))
"""


def saved_and_loaded(function):
    buffer = io.BytesIO()
    torch.jit.save(function, buffer)
    buffer.seek(0)
    return torch.jit.load(buffer)


def complete_programs(name: str) -> list:
    """Those without undefined results: TorchScript returns none, of torch's operators neither."""
    programs = [program for program in programs_of(name) if None not in program.expected()]
    assert programs
    return programs


def takes_flags(overload) -> bool:
    """The tracer has no lists of bools, of torch's own operators neither."""
    return any(str(argument.type) == "List[bool]" for argument in overload._schema.arguments)


def is_traceable(sample) -> bool:
    return not takes_flags(operator_of(sample).call)


def assert_does_the_same(function, program):
    """Returns the same and leaves the same in its arguments."""
    actual, expected = program.inputs, program.inputs
    results = as_tuple(function(*actual)), as_tuple(program.function(*expected))
    torch.testing.assert_close(*results)
    torch.testing.assert_close(actual, expected)


@over_everything()
def test_a_scripted_function_is_saved_loaded_and_run(name):
    for program in complete_programs(name):
        assert_does_the_same(saved_and_loaded(program.script), program)


@over_everything(lambda overload: not takes_flags(overload))
def test_a_traced_function_is_saved_loaded_and_run(name):
    for program in complete_programs(name):
        traced = torch.jit.trace(program.function, tuple(program.inputs))
        kinds = [node.kind() for node in traced.graph.nodes()]
        assert kinds.count(program.overload._schema.name) == 1
        assert_does_the_same(saved_and_loaded(traced), program)


@over_everything(takes_flags)
def test_the_tracer_refuses_a_list_of_flags(name):
    program = programs_of(name)[0]
    with pytest.raises(RuntimeError, match="Tracing a list of bool"):
        torch.jit.trace(program.function, tuple(program.inputs))


@over_operators(lambda sample: len(sample.small_shape) == 2 and is_traceable(sample))
def test_a_traced_function_serves_other_sizes(sample):
    call = first_call(sample)
    function = function_of_tensors(sample, call)
    traced = torch.jit.trace(function, tuple(call.tensors))
    other = next(iter(sample.calls((5, 8), torch.float64)))
    torch.testing.assert_close(parts(traced(*other.tensors)), parts(run(sample, other)))


def assert_same_gradients(function, sample, call):
    for _ in range(3):  # the profiling executor optimizes from the second call on
        loss = loss_of(function(*call.tensors))
        actual = torch.autograd.grad(loss, call.tensors, materialize_grads=True)
        torch.testing.assert_close(actual, gradients(sample, call))


@over_operators(is_differentiable)
def test_a_scripted_function_has_gradients(sample):
    call = requiring_grad(first_call(sample))
    assert_same_gradients(Program(sample.name, call).script, sample, call)


@over_operators(lambda sample: is_differentiable(sample) and is_traceable(sample))
def test_a_traced_function_has_gradients(sample):
    call = requiring_grad(first_call(sample))
    traced = torch.jit.trace(function_of_tensors(sample, call), tuple(call.tensors))
    assert_same_gradients(traced, sample, call)


def test_a_function_with_an_operator_is_scripted_from_python():
    def function(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return torch.ops.myns.rms_norm(x, weight, 0.5)

    x, weight = tensor((3, 4), torch.float32), tensor((4,), torch.float32)
    torch.testing.assert_close(torch.jit.script(function)(x, weight), function(x, weight))


def test_a_frozen_module_calls_the_operator():
    class Gate(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.up = torch.nn.Linear(4, 6)

        def forward(self, x):
            return torch.ops.myns.silu_and_mul(self.up(x))

    gate, x = Gate().eval(), tensor((3, 4), torch.float32)
    frozen = torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.script(gate)))
    assert "myns::silu_and_mul" in str(frozen.graph)
    torch.testing.assert_close(saved_and_loaded(frozen)(x), gate(x))


# ---- another process


@pytest.fixture(scope="module")
def saved_folder(tmp_path_factory):
    """A script of every operator and form, and what each returns for which tensors."""
    folder = tmp_path_factory.mktemp("scripts")
    calls = {}
    for name in (*OPERATORS, *FORMS):
        programs = complete_programs(name)
        calls[name] = [(program.inputs, program.expected()) for program in programs]
        for index, program in enumerate(programs):
            torch.jit.save(program.script, str(folder / f"{name}.{index}.pt"))
    torch.save(calls, folder / "calls.pt")
    return folder


def complaints_of_another_process(folder, imports) -> dict:
    done = subprocess.run(
        [sys.executable, "-c", LOAD.format(imports=imports), folder],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_process_with_the_library_runs_what_another_saved(saved_folder):
    assert complaints_of_another_process(saved_folder, "import torchext.ops") == {}


def test_a_process_without_the_library_names_the_operator(saved_folder):
    complaints = complaints_of_another_process(saved_folder, "")
    scripts = [path.stem for path in saved_folder.glob("*.*.pt")]
    assert len(complaints) == len(scripts) >= len(OPERATORS) + len(FORMS)
    for call, complaint in complaints.items():
        base = call.split(".")[0].split(" ")[0]
        assert f"Unknown builtin op: myns::{base}" in complaint
