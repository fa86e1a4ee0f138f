# SPDX-License-Identifier: BSD-3-Clause
"""LSTMs and GRUs on a device whose backend is the fallback, against the CPU."""

import copy

import pytest
import torch
from torch import nn

MODULES = {
    "lstm": lambda: nn.LSTM(3, 4),
    "lstm of two layers": lambda: nn.LSTM(3, 4, num_layers=2, bidirectional=True),
    "lstm without biases": lambda: nn.LSTM(3, 4, bias=False, batch_first=True),
    "lstm with a projection": lambda: nn.LSTM(3, 4, proj_size=2),
    "gru": lambda: nn.GRU(3, 4),
    "gru of two layers": lambda: nn.GRU(3, 4, num_layers=2, bidirectional=True),
    "gru without biases": lambda: nn.GRU(3, 4, bias=False, batch_first=True),
    "rnn": lambda: nn.RNN(3, 4, num_layers=2),
}
CELLS = {
    "lstm cell": lambda: nn.LSTMCell(3, 4),
    "gru cell": lambda: nn.GRUCell(3, 4),
    "gru cell without biases": lambda: nn.GRUCell(3, 4, bias=False),
    "rnn cell": lambda: nn.RNNCell(3, 4),
}


def tensors(results):
    """The tensors of nested results, in their order."""
    if isinstance(results, torch.Tensor):
        return [results]
    if isinstance(results, nn.utils.rnn.PackedSequence):
        return [results.data]
    return [tensor for result in results for tensor in tensors(result)]


def results_and_gradients(module, x, use=lambda results: results):
    """The results, first derivatives of them by everything, and second ones of these."""
    leaves = [x, *module.parameters()]
    results = use(tensors(module(x)))
    loss = sum((r * r).sum() for r in results)
    plain = torch.autograd.grad(loss, leaves, retain_graph=True)
    first = torch.autograd.grad(loss, leaves, create_graph=True)
    second = torch.autograd.grad(sum((g * g).sum() for g in first), leaves)
    return [*results, *plain, *first, *second]


def compare(make, x, device, use=lambda results: results):
    torch.manual_seed(0)
    module = make().double()
    there = copy.deepcopy(module).to(device)
    expected = results_and_gradients(module, x, use)
    found = results_and_gradients(there, x.detach().to(device).requires_grad_(), use)
    assert all(t.device == device for t in found)
    torch.testing.assert_close([t.cpu() for t in found], expected)


@pytest.fixture
def x(device):
    torch.manual_seed(1)
    return torch.randn(5, 2, 3, dtype=torch.double, requires_grad=True)


@pytest.mark.parametrize("name", MODULES)
def test_modules_give_what_they_give_on_the_cpu(name, x, device):
    compare(MODULES[name], x, device)


@pytest.mark.parametrize("name", CELLS)
def test_cells_give_what_they_give_on_the_cpu(name, x, device):
    compare(CELLS[name], x[0].detach().requires_grad_(), device)


@pytest.mark.parametrize("part", [0, 1, 2], ids=["output", "h_n", "c_n"])
def test_gradients_of_some_results_only(part, x, device):
    compare(MODULES["lstm"], x, device, use=lambda results: results[part : part + 1])


def test_a_gradient_of_the_cell_state_alone(x, device):
    x = x[0].detach().requires_grad_()
    compare(CELLS["lstm cell"], x, device, use=lambda results: results[1:])


@pytest.mark.parametrize("make", [MODULES["lstm"], MODULES["gru of two layers"]])
def test_packed_sequences(make, device):
    torch.manual_seed(0)
    module = make()
    there = copy.deepcopy(module).to(device)
    sequences = [torch.randn(n, 3) for n in (5, 3, 2)]
    packed = nn.utils.rnn.pack_sequence(sequences)
    found, expected = tensors(there(packed.to(device))), tensors(module(packed))
    torch.testing.assert_close([t.cpu() for t in found], expected)
