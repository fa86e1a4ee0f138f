# SPDX-License-Identifier: BSD-3-Clause
"""The autograd graph: nodes and edges, what is saved and for how long, when nothing is recorded."""

import gc
import weakref

import pytest
import torch
from cases import (
    first_call,
    gradients,
    has_kernels,
    is_differentiable,
    loss_of,
    operator_of,
    over_operators,
    parts,
    requiring_grad,
    run,
)
from samples import SAMPLES
from torch._dynamo import compiled_autograd
from torch._dynamo.utils import counters

ops = torch.ops.myns


def leaf(value):
    return torch.tensor(value, requires_grad=True)


def saved_by(function, *arguments) -> list:
    """The tensors that a call saves for backward."""
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t):
        function(*arguments)
    return saved


def saves_tensors(sample) -> bool:
    return has_kernels(sample) and sample.name not in ("add.Tensor", "neg", "cumsum", "zero_out")


def test_a_product_of_three_has_the_value_and_gradients_of_calculus():
    a, b, c = leaf(2.0), leaf(3.0), leaf(4.0)
    y = ops.mul(ops.mul(a, b), c)
    assert y.item() == 24
    y.backward()
    assert (a.grad.item(), b.grad.item(), c.grad.item()) == (12, 8, 6)


def test_edges_lead_to_the_leaves():
    a, b, c = leaf(2.0), leaf(3.0), leaf(4.0)
    node = ops.mul(ops.mul(a, b), c).grad_fn
    assert node.name() == "MulBackward0"
    (inner, inner_index), (of_c, _) = node.next_functions
    assert (inner.name(), inner_index) == ("MulBackward0", 0)
    (of_a, _), (of_b, _) = inner.next_functions
    for accumulate, variable in ((of_a, a), (of_b, b), (of_c, c)):
        assert accumulate.name() == "torch::autograd::AccumulateGrad"
        assert accumulate.variable is variable


@over_operators(has_kernels)
def test_the_node_is_named_after_the_operator(sample):
    for part in parts(run(sample, requiring_grad(first_call(sample)))):
        assert part.grad_fn.name() == operator_of(sample).node_name


@over_operators(has_kernels)
def test_an_input_without_gradient_has_no_edge(sample):
    call = first_call(sample)
    for index, _ in enumerate(call.tensors):
        inputs = [t.detach().requires_grad_(i == index) for i, t in enumerate(call.tensors)]
        node = parts(run(sample, call.with_tensors(inputs)))[0].grad_fn
        edges = [edge.variable is inputs[index] for edge, _ in node.next_functions if edge]
        assert edges == [True]


def test_results_of_one_call_share_a_node():
    grad_input, grad_weight = run(
        SAMPLES["rms_norm_backward"], requiring_grad(first_call(SAMPLES["rms_norm_backward"]))
    )
    assert grad_input.grad_fn is grad_weight.grad_fn
    assert (grad_input.output_nr, grad_weight.output_nr) == (0, 1)


@pytest.mark.parametrize("shape", [(6,), (1,), (2, 6)], ids=str)
@pytest.mark.parametrize("requires", [(True, True), (True, False), (False, True)], ids=str)
def test_the_graph_of_a_product_holds_as_many_bytes_as_torchs(requires, shape):
    a, b = (torch.ones(s).requires_grad_(r) for s, r in zip(((6,), shape), requires))
    ours, torchs = (
        {t.data_ptr(): t.untyped_storage().nbytes() for t in saved_by(mul, a, b)}
        for mul in (ops.mul, torch.mul)
    )
    assert ours == torchs
    assert len(ours) == sum(requires)


def test_only_what_a_needed_gradient_uses_is_saved():
    a, b = leaf([1.0, 2.0]), torch.tensor([3.0, 4.0])
    assert [t.tolist() for t in saved_by(ops.mul, a, b)] == [[3.0, 4.0]]
    assert [t.tolist() for t in saved_by(ops.mul, b, a)] == [[3.0, 4.0]]
    assert len(saved_by(ops.mul, a, a)) == 2
    assert saved_by(ops.mul, b, b) == []
    assert saved_by(ops.add, a, a) == []
    assert saved_by(ops.neg, a) == []
    assert saved_by(ops.zero_out, a) == []


def test_an_operator_whose_gradient_uses_its_result_saves_the_result():
    x = leaf([1.0, 2.0])
    (saved,) = saved_by(ops.sigmoid, x)
    torch.testing.assert_close(saved, torch.sigmoid(x))


@over_operators(saves_tensors)
def test_a_second_backward_finds_saved_tensors_freed(sample):
    call = requiring_grad(first_call(sample))
    loss = sum(part.sum() for part in parts(run(sample, call)))
    loss.backward()
    with pytest.raises(RuntimeError, match="[Bb]ackward through the graph a second time"):
        loss.backward()


def test_saved_tensors_are_released_by_backward():
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: saved.append(weakref.ref(copy := t.clone())) or copy, lambda t: t
    ):
        loss = ops.sin(leaf([1.0, 2.0])).sum()
    assert [reference() is not None for reference in saved] == [True]
    loss.backward()
    assert [reference() is None for reference in saved] == [True]


@over_operators(is_differentiable)
def test_retain_graph_lets_backward_run_twice(sample):
    call = requiring_grad(first_call(sample))
    loss = loss_of(run(sample, call))
    first = torch.autograd.grad(loss, call.tensors, retain_graph=True, materialize_grads=True)
    second = torch.autograd.grad(loss, call.tensors, materialize_grads=True)
    torch.testing.assert_close(first, second, rtol=0, atol=0)


@pytest.mark.parametrize("index", [0, 1], ids=["first", "second"])
def test_changing_a_saved_argument_in_place_is_detected(index):
    arguments = [leaf([1.0, 2.0]), leaf([3.0, 4.0])]
    values = [argument * 1 for argument in arguments]
    result = ops.mul(*values)
    with torch.no_grad():
        values[index].add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


def test_changing_a_saved_result_in_place_is_detected():
    result = ops.sigmoid(leaf([1.0, 2.0]))
    with torch.no_grad():
        result.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


def test_changing_an_argument_that_is_not_saved_is_harmless():
    x = leaf([1.0, 2.0])
    value = x * 1
    result = ops.neg(value)
    with torch.no_grad():
        value.zero_()
    result.sum().backward()
    assert x.grad.tolist() == [-1.0, -1.0]


def test_a_result_changed_in_place_keeps_its_history():
    x = leaf([1.0, 2.0])
    result = ops.mul(x, torch.tensor([3.0, 4.0]))
    result.mul_(2)
    result.sum().backward()
    assert x.grad.tolist() == [6.0, 8.0]


def test_a_result_saved_by_its_own_node_makes_no_cycle():
    x = leaf([1.0, 2.0])
    result = ops.sigmoid(x)
    alive = weakref.ref(result)
    gc.disable()
    try:
        del result
        assert alive() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@over_operators()
def test_nothing_is_recorded_where_gradients_are_off(sample, mode):
    call = requiring_grad(first_call(sample))
    with mode():
        results = parts(run(sample, call))
    assert all(result.grad_fn is None and not result.requires_grad for result in results)
    assert all(result.is_inference() == (mode is torch.inference_mode) for result in results)


@over_operators()
def test_nothing_is_recorded_for_inputs_without_gradient(sample):
    for part in parts(run(sample, first_call(sample))):
        assert part.grad_fn is None and not part.requires_grad


@over_operators(lambda sample: torch.int64 in sample.dtypes)
def test_integers_record_nothing(sample):
    result = run(sample, first_call(sample, torch.int64))
    assert not result.requires_grad


def test_an_integer_beside_a_float_gets_no_edge():
    x, n = leaf([1.0, 2.0]), torch.tensor([3, 4])
    result = ops.mul(x, n)
    result.sum().backward()
    assert x.grad.tolist() == [3.0, 4.0]
    assert [edge is not None for edge, _ in result.grad_fn.next_functions] == [True, False]


def test_inference_tensors_cannot_be_saved_for_backward():
    with torch.inference_mode():
        constant = torch.ones(2)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        ops.mul(leaf([1.0, 2.0]), constant)


def test_a_gradient_used_twice_is_accumulated():
    x = leaf([1.0, 2.0])
    ops.mul(x, x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_hooks_see_the_gradient():
    x = leaf([1.0, 2.0])
    seen = []
    result = ops.neg(x)
    result.grad_fn.register_prehook(lambda grads: seen.append(grads[0].tolist()))
    x.register_hook(lambda grad: seen.append(grad.tolist()))
    result.sum().backward()
    assert seen == [[1.0, 1.0], [-1.0, -1.0]]


# ---- compiled autograd: backward itself is traced


def compiled_gradients(sample, call):
    """Gradients by compiled autograd, with whatever graphs it has captured before."""
    loss = loss_of(run(sample, call))
    with compiled_autograd._enable(lambda graph: torch.compile(graph, backend="aot_eager")):
        return torch.autograd.grad(loss, call.tensors, materialize_grads=True)


@pytest.fixture
def fresh_captures(fresh_dynamo):
    compiled_autograd.reset()
    counters.clear()
    yield
    compiled_autograd.reset()


@pytest.mark.usefixtures("fresh_captures")
@over_operators(has_kernels)  # composite ones have torch's nodes
def test_a_compiled_backward_gives_the_gradients_of_eager(sample):
    for call in sample.calls(sample.small_shape, torch.float64):
        call = requiring_grad(call)
        torch.testing.assert_close(compiled_gradients(sample, call), gradients(sample, call))
    assert counters["compiled_autograd"]["captures"] >= 1


@pytest.mark.usefixtures("fresh_captures")
@over_operators(has_kernels)  # composite ones have torch's nodes
def test_one_graph_of_a_backward_serves_several_sizes(sample):
    shapes = ((6,), (10,), (14,)) if len(sample.small_shape) == 1 else ((3, 4), (5, 8), (7, 12))
    for shape in shapes:
        call = requiring_grad(next(iter(sample.calls(shape, torch.float64))))
        torch.testing.assert_close(compiled_gradients(sample, call), gradients(sample, call))
    assert counters["compiled_autograd"]["captures"] == 1


@pytest.mark.usefixtures("fresh_captures")
@over_operators(has_kernels)
def test_another_set_of_needed_gradients_is_another_graph(sample):
    call = first_call(sample)
    for index, _ in enumerate(call.tensors):
        inputs = [t.detach().requires_grad_(i == index) for i, t in enumerate(call.tensors)]
        alone = call.with_tensors(inputs)
        loss = loss_of(run(sample, alone))
        with compiled_autograd._enable(lambda graph: torch.compile(graph, backend="eager")):
            loss.backward()
        torch.testing.assert_close((inputs[index].grad,), gradients(sample, alone, [inputs[index]]))
        assert all(t.grad is None for i, t in enumerate(inputs) if i != index)
    assert counters["compiled_autograd"]["captures"] == len(call.tensors)
