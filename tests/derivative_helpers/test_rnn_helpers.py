# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of recurrent networks, against torch's own operators."""

import pytest
import torch
from aten_oracle import assert_differentiable, assert_same, gradients, sample

OPS, ATEN = torch.ops.derivative_helpers, torch.ops.aten
LSTM, HIDDEN = 2, 3
LENGTH, BATCH, FEATURES = 4, 2, 5

over_directions = pytest.mark.parametrize("reverse", [False, True])
needs_mkldnn = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(), reason="torch was built without oneDNN"
)


def problem(dtype=torch.float64, state=(BATCH, HIDDEN)):
    """Input, weights, biases and states."""
    sizes = [
        (LENGTH, BATCH, FEATURES),
        (4 * HIDDEN, FEATURES),
        (4 * HIDDEN, HIDDEN),
        (4 * HIDDEN,),
        (4 * HIDDEN,),
        state,
        state,
    ]
    return [sample(*size, dtype=dtype, seed=seed) for seed, size in enumerate(sizes)]


def lstm(inputs, reverse, has_biases=True):
    """torch's own LSTM, in steps that differentiate at any order."""
    x, w_ih, w_hh, b_ih, b_hh, h, c = inputs
    state, rows = (h.view(BATCH, HIDDEN), c.view(BATCH, HIDDEN)), []
    biases = (b_ih, b_hh) if has_biases else (None, None)
    for row in reversed(x.unbind()) if reverse else x.unbind():
        state = torch.lstm_cell(row, state, w_ih, w_hh, *biases)
        rows.append(state[0])
    output = torch.stack(rows[::-1] if reverse else rows)
    return output, state[0].view_as(h), state[1].view_as(c)


def backward(inputs, results, grads, reverse, has_biases=True, mode=LSTM, batch_sizes=()):
    options = reverse, mode, HIDDEN, 1, has_biases, True, False, list(batch_sizes), False
    workspace = torch.empty(0)
    return OPS.mkldnn_rnn_layer_differentiable_backward(
        *inputs, *results, *grads, *options, workspace
    )


@over_directions
@pytest.mark.parametrize("state", [(BATCH, HIDDEN), (1, BATCH, HIDDEN)])
@pytest.mark.parametrize("use", [(1, 1, 1), (1, 0, 0), (0, 1, 0), (0, 0, 1)])
def test_gradients(reverse, state, use):
    inputs = problem(state=state)
    results = lstm(inputs, reverse)
    grads = [sample(*r.shape, seed=9 + i) for i, r in enumerate(results)]
    grads = [g if is_used else None for g, is_used in zip(grads, use, strict=True)]
    given = [torch.zeros_like(r) if g is None else g for r, g in zip(results, grads, strict=True)]
    expected = gradients(lambda *inputs: lstm(inputs, reverse), inputs, given)
    assert_same(backward(inputs, results, grads, reverse), expected)


@over_directions
def test_gradients_without_biases(reverse):
    inputs = problem()
    results = lstm(inputs, reverse, has_biases=False)
    grads = [sample(*r.shape, seed=9) for r in results]
    expected = gradients(lambda *t: lstm([*t[:3], None, None, *t[3:]], reverse, False),
                         inputs[:3] + inputs[5:], grads)  # fmt: skip
    actual = backward(inputs, results, grads, reverse, has_biases=False)
    assert_same(actual[:3] + actual[5:], expected)


@needs_mkldnn
@over_directions
@pytest.mark.parametrize("has_biases", [False, True])
def test_gradients_of_the_operator(reverse, has_biases):
    inputs = problem(torch.float32)
    if not has_biases:
        inputs[3:5] = [torch.zeros(4 * HIDDEN)] * 2

    def layer(*inputs):
        options = reverse, [], LSTM, HIDDEN, 1, has_biases, False, False, True
        return ATEN.mkldnn_rnn_layer(*inputs, *options)[:3]

    results = layer(*inputs)
    grads = [sample(*r.shape, dtype=torch.float32, seed=9) for r in results]
    expected = gradients(layer, inputs, grads)
    assert_same(backward(inputs, results, grads, reverse, has_biases), expected)


@over_directions
def test_gradients_differentiate_again(reverse):
    inputs = problem()
    results = lstm(inputs, reverse)
    grads = [sample(*r.shape, seed=9) for r in results]

    def function(x, w_ih, h, *grads):
        given = [x, w_ih, *inputs[2:5], h, inputs[6]]
        return backward(given, results, grads, reverse)

    assert_differentiable(function, inputs[0], inputs[1], inputs[5], *grads)


def test_gradients_vmap_over_the_weights():
    inputs = problem()
    results = lstm(inputs, False)
    weights = torch.stack([inputs[1], 2 * inputs[1]])

    def function(w_ih):
        return backward([inputs[0], w_ih, *inputs[2:]], results, results, False)

    expected = [torch.stack(t) for t in zip(*map(function, weights), strict=True)]
    assert_same(torch.func.vmap(function)(weights), expected)


def test_nothing_comes_of_nothing():
    inputs = problem()
    assert backward(inputs, lstm(inputs, False), [None] * 3, False) == (None,) * 7


def test_other_networks_are_refused():
    inputs = problem()
    results = lstm(inputs, False)
    with pytest.raises(RuntimeError, match="only an LSTM has gradients, got mode 3"):
        backward(inputs, results, results, False, mode=3)
    with pytest.raises(RuntimeError, match="packed sequences have no gradients"):
        backward(inputs, results, results, False, batch_sizes=[2, 1])
