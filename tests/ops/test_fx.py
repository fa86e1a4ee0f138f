# SPDX-License-Identifier: BSD-3-Clause
"""torch.fx: an operator is one node of a graph, which is copied, pickled and interpreted."""

import copy
import os
import pickle
import subprocess
import sys

import pytest
import torch
from cases import first_call, operator_of, over_operators, parts, run
from operators import FORMS, OPERATORS, REPOSITORY
from programs import as_tuple, over_everything, programs_of
from samples import tensor


@over_operators()
def test_fx_traces_the_operator_as_one_node(sample):
    call = first_call(sample)

    def function(tensors):
        return run(sample, call.with_tensors([tensors[i] for i, _ in enumerate(call.tensors)]))

    traced = torch.fx.symbolic_trace(function)
    targets = [node.target for node in traced.graph.nodes if node.op == "call_function"]
    assert targets.count(operator_of(sample).call) == 1
    torch.testing.assert_close(parts(traced(call.tensors)), parts(run(sample, call)))


def through_pickle(module):
    return pickle.loads(pickle.dumps(module))


def transformed(module):
    return torch.fx.Transformer(module).transform()


def interpreted(module):
    return torch.fx.Interpreter(module).run


@pytest.mark.parametrize("remade", [copy.deepcopy, through_pickle, transformed, interpreted])
@over_everything()
def test_a_traced_module_is_remade(name, remade):
    for program in programs_of(name):
        traced = torch.fx.symbolic_trace(program.function)
        actual, expected = program.inputs, program.inputs
        results = remade(traced)(*actual), program.function(*expected)
        torch.testing.assert_close(*map(as_tuple, results))
        torch.testing.assert_close(actual, expected)


# Run by another process, with the file as its argument
LOAD = """
import pickle, sys, torch, torchext.ops
with open(sys.argv[1], "rb") as file:
    calls = pickle.load(file)
for name, (module, inputs, expected) in calls.items():
    results = module(*inputs)
    torch.testing.assert_close(results if isinstance(results, tuple) else (results,), expected)
print(*calls)
"""


def test_another_process_runs_pickled_modules(tmp_path):
    calls = {}
    for name in (*OPERATORS, *FORMS):
        program = programs_of(name)[0]
        traced = torch.fx.symbolic_trace(program.function)
        calls[name] = (traced, program.inputs, program.expected())
    (tmp_path / "calls").write_bytes(pickle.dumps(calls))
    done = subprocess.run(
        [sys.executable, "-c", LOAD, tmp_path / "calls"],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [*OPERATORS, *FORMS]


def test_make_fx_traces_backward():
    def function(x):
        result = torch.ops.myns.silu_and_mul(x)
        return torch.autograd.grad(result.sum(), x)[0]

    x = tensor((3, 4), torch.float64).requires_grad_()
    traced = torch.fx.experimental.proxy_tensor.make_fx(function)(x)
    targets = [node.target for node in traced.graph.nodes]
    assert torch.ops.myns.silu_and_mul_backward.default in targets
    torch.testing.assert_close(traced(x), function(x))
