# SPDX-License-Identifier: BSD-3-Clause
"""torch.compile without graph breaks, forward and backward, with static and dynamic sizes."""

import pytest
import torch
from cases import (
    first_call,
    function_of_tensors,
    gradients,
    is_differentiable,
    loss_of,
    over_operators,
    parts,
    requiring_grad,
    run,
)
from samples import SAMPLES, tensor
from torch._dynamo.testing import CompileCounterWithBackend

# Inductor compiles C++ for each function, so it gets one operator of each kind.
WITH_INDUCTOR = ("mul.Tensor", "rms_norm", "silu_and_mul")

pytestmark = pytest.mark.usefixtures("fresh_dynamo")


def compiled_gradients(sample, call, backend, **options):
    compiled = torch.compile(
        function_of_tensors(sample, call), backend=backend, fullgraph=True, **options
    )
    result = compiled(*call.tensors)
    grads = torch.autograd.grad(loss_of(result), call.tensors, materialize_grads=True)
    return parts(result), grads


@over_operators(is_differentiable)
def test_compiled_results_and_gradients_are_those_of_eager(sample):
    for call in sample.calls(sample.small_shape, torch.float32):
        call = requiring_grad(call)
        results, grads = compiled_gradients(sample, call, "aot_eager")
        torch.testing.assert_close(results, parts(run(sample, call)))
        torch.testing.assert_close(grads, gradients(sample, call))


@over_operators(lambda sample: sample.name in WITH_INDUCTOR)
def test_inductor_results_and_gradients_are_those_of_eager(sample):
    call = requiring_grad(first_call(sample, torch.float32))
    results, grads = compiled_gradients(sample, call, "inductor")
    torch.testing.assert_close(results, parts(run(sample, call)))
    torch.testing.assert_close(grads, gradients(sample, call))


@over_operators(lambda sample: len(sample.small_shape) == 2)
def test_dynamic_sizes_do_not_recompile(sample):
    counter = CompileCounterWithBackend("aot_eager")
    static = first_call(sample)
    compiled = torch.compile(
        function_of_tensors(sample, static), backend=counter, fullgraph=True, dynamic=True
    )
    counts = []
    for shape in ((3, 4), (5, 8), (7, 12)):
        call = requiring_grad(next(iter(sample.calls(shape, torch.float64))))
        result = compiled(*call.tensors)
        torch.testing.assert_close(parts(result), parts(run(sample, call)))
        torch.autograd.grad(loss_of(result), call.tensors, materialize_grads=True)
        counts.append(counter.frame_count)
    assert counts == counts[:1] * 3


def test_a_size_that_changes_recompiles_once():
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(torch.ops.myns.rms_norm, backend=counter, fullgraph=True)
    for rows in (3, 5, 7):
        x = tensor((rows, 8), torch.float32)
        torch.testing.assert_close(compiled(x), torch.ops.myns.rms_norm(x))
    assert counter.frame_count <= 2


def test_operators_are_one_node_each_in_the_graph():
    graphs = []

    def backend(module, _):
        graphs.append(module)
        return module.forward

    def function(x, weight):
        return torch.ops.myns.rms_norm(x, weight) + torch.ops.myns.silu_and_mul(x).sum()

    x, weight = tensor((3, 4), torch.float32), tensor((4,), torch.float32)
    torch.compile(function, backend=backend, fullgraph=True)(x, weight)
    targets = [str(node.target) for graph in graphs for node in graph.graph.nodes]
    assert sum(target.startswith("myns") for target in targets) == 2


@pytest.mark.parametrize("name", WITH_INDUCTOR)
def test_compiled_autograd_gives_the_gradients_of_eager(name):
    sample = SAMPLES[name]
    call = requiring_grad(first_call(sample))
    function = function_of_tensors(sample, call)

    @torch.compile(backend="aot_eager")
    def step(*tensors):
        loss_of(function(*tensors)).backward()

    with torch._dynamo.config.patch(compiled_autograd=True):
        step(*call.tensors)
    actual = tuple(t.grad for t in call.tensors)
    torch.testing.assert_close(actual, gradients(sample, call))


def test_a_compiled_inplace_change_of_a_result_is_seen():
    def function(x):
        result = torch.ops.myns.sin(x)
        return result.mul_(2) + x

    x = tensor((5,), torch.float64)
    compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), function(x))


@over_operators(lambda sample: sample.name in ("mul.Tensor", "softmax", "rms_norm_backward"))
def test_a_graph_for_one_gradient_of_several_compiles(sample):
    for call in sample.calls(sample.small_shape, torch.float64):
        first = call.tensors[0].requires_grad_()
        compiled = torch.compile(
            function_of_tensors(sample, call), backend="aot_eager", fullgraph=True
        )
        grads = torch.autograd.grad(loss_of(compiled(*call.tensors)), first)
        torch.testing.assert_close(grads, gradients(sample, call, [first]))
