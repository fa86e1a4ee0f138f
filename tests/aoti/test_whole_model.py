# SPDX-License-Identifier: BSD-3-Clause
"""The model of examples/aoti_cpp under torch.export and torch.compile: one graph, any batch."""

import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend
from torch._dynamo.utils import counters

BATCHES = (4, 9, 13)


@pytest.fixture
def model(example):
    return example.LanguageModel()


@pytest.fixture
def fresh_counters():
    torch._dynamo.reset()
    counters.clear()
    yield
    torch._dynamo.reset()


def loss_and_gradients(function, model, tokens) -> tuple:
    loss = function(tokens).logsumexp(-1).sum()
    return loss, torch.autograd.grad(loss, list(model.parameters()))


def compiled_on_all_batches(example, model, backend, dynamic) -> list:
    """Compare with eager on each batch; returns how many graphs there were after each."""
    counter = CompileCounterWithBackend(backend)
    compiled = torch.compile(model, backend=counter, fullgraph=True, dynamic=dynamic)
    counts = []
    for batch in BATCHES:
        tokens = example.random_tokens(batch)
        actual = loss_and_gradients(compiled, model, tokens)
        torch.testing.assert_close(actual, loss_and_gradients(model, model, tokens))
        counts.append(counter.frame_count)
    assert not counters["graph_break"]
    return counts


@pytest.mark.usefixtures("fresh_counters")
@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_one_graph_of_forward_and_backward_serves_every_batch(example, model, backend):
    counts = compiled_on_all_batches(example, model, backend, dynamic=True)
    assert counts == counts[:1] * 3


@pytest.mark.usefixtures("fresh_counters")
def test_a_batch_that_changes_compiles_once_more(example, model):
    assert compiled_on_all_batches(example, model, "aot_eager", dynamic=None) == [1, 2, 2]


@pytest.mark.usefixtures("fresh_counters")
def test_dynamo_explains_that_there_is_nothing_to_break(example, model):
    explained = torch._dynamo.explain(model)(example.random_tokens(4))
    assert (explained.graph_count, explained.graph_break_count) == (1, 0)
    called = {str(node.target) for node in explained.graphs[0].graph.nodes}
    assert {"myns.rms_norm", "myns.softmax", "myns.silu_and_mul", "myns.add_"} <= called


def test_the_exported_program_calls_the_operators_with_every_batch(example, model):
    predictor = example.Predictor(model)
    program = example.export(predictor)
    called = {str(node.target) for node in program.graph.nodes}
    assert {"myns.rms_norm.default", "myns.add_.Tensor", "myns.softmax.out"} <= called
    for batch in (1, 2, 9, example.LARGEST_BATCH):
        tokens = example.random_tokens(batch)
        torch.testing.assert_close(program.module()(tokens), predictor(tokens))


def test_the_decomposed_program_writes_to_nothing(example, model):
    program = example.export(example.Predictor(model)).run_decompositions()
    called = [node.target for node in program.graph.nodes if node.op == "call_function"]
    schemas = [target._schema for target in called if isinstance(target, torch._ops.OpOverload)]
    assert torch.ops.myns.softmax.default in called
    assert not any(schema.is_mutable for schema in schemas)
