// SPDX-License-Identifier: BSD-3-Clause
//
// The cells of LSTMs and GRUs that ATen leaves to a device of PrivateUse1, made of its operators.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

namespace torchext::runtime {

using Gradients = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

/// aten::_thnn_fused_lstm_cell: gates of size [batch, 4 * hidden], for the input, to forget, of the
/// cell and for the output (torch.nn.LSTMCell). Returns hy, cy, and the gates after their functions.
std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell(
    const at::Tensor& input_gates,
    const at::Tensor& hidden_gates,
    const at::Tensor& cx,
    const std::optional<at::Tensor>& input_bias,
    const std::optional<at::Tensor>& hidden_bias);

/// aten::_thnn_fused_lstm_cell_backward_impl: gradients of the gates, of cx and of a bias.
std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell_backward(
    const std::optional<at::Tensor>& grad_hy,
    const std::optional<at::Tensor>& grad_cy,
    const at::Tensor& cx,
    const at::Tensor& cy,
    const at::Tensor& workspace,
    bool has_bias);

/// aten::_thnn_fused_gru_cell: gates of size [batch, 3 * hidden], to reset, to update and new
/// (torch.nn.GRUCell). Returns hy, and what the backward reads.
std::tuple<at::Tensor, at::Tensor> gru_cell(
    const at::Tensor& input_gates,
    const at::Tensor& hidden_gates,
    const at::Tensor& hx,
    const std::optional<at::Tensor>& input_bias,
    const std::optional<at::Tensor>& hidden_bias);

/// aten::_thnn_fused_gru_cell_backward: gradients of both gates, of hx and of both biases.
Gradients gru_cell_backward(const at::Tensor& grad_hy, const at::Tensor& workspace, bool has_bias);

} // namespace torchext::runtime
