// SPDX-License-Identifier: BSD-3-Clause
//
// Derivatives of recurrent networks.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

namespace torchext {
inline namespace v1 {
namespace derivatives {

using MkldnnRnnGradients =
    std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

/// Gradients of mkldnn_rnn_layer, one LSTM layer in one direction, in functions that differentiate
/// again: of the input (T, N, F), the weights (4 H, F) and (4 H, H), their biases, and the states
/// at the start. Undefined if all gradients of results are.
MkldnnRnnGradients mkldnn_rnn_layer_differentiable_backward(
    const at::Tensor& input,
    const at::Tensor& weight0,
    const at::Tensor& weight1,
    const at::Tensor& weight2,
    const at::Tensor& weight3,
    const at::Tensor& hx_,
    const at::Tensor& cx_tmp,
    const at::Tensor& output,
    const at::Tensor& hy_,
    const at::Tensor& cy_,
    const std::optional<at::Tensor>& grad_output_r_opt,
    const std::optional<at::Tensor>& grad_hy_r_opt,
    const std::optional<at::Tensor>& grad_cy_r_opt,
    bool reverse,
    int64_t mode,
    int64_t hidden_size,
    int64_t num_layers,
    bool has_biases,
    bool train,
    bool bidirectional,
    at::IntArrayRef batch_sizes,
    bool batch_first,
    const at::Tensor& workspace);

} // namespace derivatives
} // namespace v1
} // namespace torchext
