# SPDX-License-Identifier: BSD-3-Clause
"""LSTMs and GRUs on a device whose backend is the fallback, against the CPU."""

import copy

import pytest
import torch
from torch import nn

import torchext

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


@pytest.mark.parametrize(
    "make",
    [
        MODULES["lstm"],
        MODULES["gru of two layers"],
        lambda: nn.LSTM(3, 4, num_layers=2, bidirectional=True, proj_size=2),
    ],
    ids=["lstm", "gru", "projected"],
)
@pytest.mark.parametrize("lengths", [(5, 3, 2), (2, 5, 3)], ids=["sorted", "unsorted"])
def test_packed_sequences(make, lengths, device):
    torch.manual_seed(0)
    module = make().double()
    there = copy.deepcopy(module).to(device)
    x = nn.utils.rnn.pad_sequence([torch.randn(n, 3, dtype=torch.double) for n in lengths])

    def results_and_gradients(module, x):
        x = x.detach().requires_grad_()
        packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor(lengths), enforce_sorted=False)
        results = tensors(module(packed))
        loss = sum((r * r).sum() for r in results)
        return [*results, *torch.autograd.grad(loss, [x, *module.parameters()])]

    found = results_and_gradients(there, x.to(device))
    torch.testing.assert_close([t.cpu() for t in found], results_and_gradients(module, x))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_an_initial_state_in_half_precision(dtype, device):
    torch.manual_seed(0)
    module = nn.LSTM(3, 4).to(dtype)
    there = copy.deepcopy(module).to(device)
    x, h, c = (torch.randn(n, 2, m).to(dtype) for n, m in ((5, 3), (1, 4), (1, 4)))
    found = tensors(there(x.to(device), (h.to(device), c.to(device))))
    # of which the CPU rounds in other places, to results of at most 1
    torch.testing.assert_close(
        [t.cpu() for t in found], tensors(module(x, (h, c))), atol=torch.finfo(dtype).eps, rtol=0
    )


@pytest.mark.parametrize(
    ("op", "sizes", "words"),
    [
        ("lstm", [(3, 16), (3, 16), (1, 4)], r"gates of the input of size \[1, 16\]"),
        ("lstm", [(3, 16), (1, 16), (3, 4)], "gates of the hidden state of size"),
        ("gru", [(2, 4), (2, 4), (2, 1)], r"size \[2, 3\], but got \[2, 4\]"),
        ("gru", [(2, 3), (2, 3), (1,)], "a hidden state of 2 dimensions, but got 1"),
    ],
)
def test_sizes_that_do_not_fit_are_errors(op, sizes, words, device):
    cell = getattr(torch.ops.aten, f"_thnn_fused_{op}_cell")
    with pytest.raises(RuntimeError, match=words):
        cell(*(torch.ones(size, device=device) for size in sizes))


def test_a_workspace_that_does_not_fit_is_an_error(device):
    state, workspace = torch.ones(2, 4, device=device), torch.ones(2, 6, device=device)
    with pytest.raises(RuntimeError, match="what the forward keeps of size"):
        torch.ops.aten._thnn_fused_gru_cell_backward(state, workspace, True)
    with pytest.raises(RuntimeError, match="gates of size"):
        torch.ops.aten._thnn_fused_lstm_cell_backward_impl(
            state, state, state, state, workspace, True
        )


def test_one_bias_alone_is_an_error_for_it_would_have_no_gradient(device):
    x, h, w = (torch.ones(size, device=device) for size in ((2, 3), (2, 4), (12, 4)))
    bias = torch.ones(12, device=device)
    with pytest.raises(RuntimeError, match="both biases of a cell, or none"):
        torch.gru_cell(x, h, torch.ones(12, 3, device=device), w, None, bias)


def test_a_backend_that_has_one_half_of_a_cell_keeps_it(device):
    """Its forward keeps what another's backward does not understand."""
    library = torch.library.Library("aten", "IMPL")
    torchext.fallback.disable(device.type)
    try:
        library.impl("_thnn_fused_lstm_cell", lambda *arguments: None, "PrivateUse1")
        torchext.fallback.enable(device.type)
        has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
        names = ["lstm_cell_backward_impl", "gru_cell", "gru_cell_backward"]
        found = [has_kernel(f"aten::_thnn_fused_{name}", "PrivateUse1") for name in names]
        assert found == [False, True, True]
    finally:
        torchext.fallback.disable(device.type)
        library._destroy()
        torchext.fallback.enable(device.type)
