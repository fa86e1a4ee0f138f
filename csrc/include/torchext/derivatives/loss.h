// SPDX-License-Identifier: BSD-3-Clause
//
// Derivatives of losses. `reduction` is at::Reduction's: none, mean or sum. In second derivatives
// `grad` is the gradient of the result of the loss's own backward, `grad_output` what that took;
// a factor of both arguments' product is given as one `grad`.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace torchext {
inline namespace v1 {
namespace derivatives {

/// The loss of the losses of elements.
at::Tensor apply_loss_reduction(const at::Tensor& unreduced, int64_t reduction);

/// Gradient of `target` in binary_cross_entropy; `weight` may be missing or undefined.
at::Tensor binary_cross_entropy_target_backward(
    const at::Tensor& grad,
    const at::Tensor& self,
    const at::Tensor& target,
    const std::optional<at::Tensor>& weight,
    int64_t reduction);

/// Gradient of `input` in binary_cross_entropy_with_logits; the weights may be missing or undefined.
at::Tensor binary_cross_entropy_with_logits_backward(
    const at::Tensor& grad,
    const at::Tensor& input,
    const at::Tensor& target,
    const std::optional<at::Tensor>& weight,
    const std::optional<at::Tensor>& pos_weight,
    int64_t reduction);

/// Gradient of `target` in binary_cross_entropy_with_logits.
at::Tensor binary_cross_entropy_with_logits_target_backward(
    const at::Tensor& grad_output,
    const at::Tensor& self,
    const at::Tensor& target,
    const std::optional<at::Tensor>& weight,
    const std::optional<at::Tensor>& pos_weight,
    int64_t reduction);

/// Gradient of `input` in binary_cross_entropy_backward.
at::Tensor binary_cross_entropy_double_backward(
    const at::Tensor& grad_output,
    const at::Tensor& grad,
    const at::Tensor& input,
    const at::Tensor& target,
    const std::optional<at::Tensor>& weight,
    int64_t reduction);

/// Gradient of `target` in binary_cross_entropy_backward.
at::Tensor binary_cross_entropy_double_backward_target(
    const at::Tensor& grad,
    const at::Tensor& grad_output,
    const at::Tensor& self,
    const at::Tensor& target,
    const std::optional<at::Tensor>& weight,
    int64_t reduction);

/// Gradient of grad_output in binary_cross_entropy_backward; of one element where it is reduced.
at::Tensor binary_cross_entropy_double_backward_grad_output(
    const at::Tensor& grad,
    const at::Tensor& input,
    const at::Tensor& target,
    const std::optional<at::Tensor>& weight,
    int64_t reduction);

/// Gradient of `input` in mse_loss_backward; that of the target is its negative.
at::Tensor mse_loss_double_backward(
    const at::Tensor& grad, const at::Tensor& input, int64_t reduction);

/// Gradient of `input` in smooth_l1_loss_backward; that of the target is its negative.
at::Tensor smooth_l1_loss_double_backward(
    const at::Tensor& grad,
    const at::Tensor& input,
    const at::Tensor& target,
    int64_t reduction,
    double beta);

/// Gradient of `input` in huber_loss_backward; that of the target is its negative.
at::Tensor huber_loss_double_backward(
    const at::Tensor& grad,
    const at::Tensor& input,
    const at::Tensor& target,
    int64_t reduction,
    double delta);

/// Gradient of grad_output in huber_loss_backward.
at::Tensor huber_loss_double_backward_grad_output(
    const at::Tensor& grad,
    const at::Tensor& grad_output,
    const at::Tensor& input,
    const at::Tensor& target,
    int64_t reduction,
    double delta);

/// Gradient of `input` in soft_margin_loss_backward.
at::Tensor soft_margin_loss_double_backward(
    const at::Tensor& grad, const at::Tensor& input, const at::Tensor& target, int64_t reduction);

/// Gradient of grad_output in soft_margin_loss_backward.
at::Tensor soft_margin_loss_double_backward_grad_output(
    const at::Tensor& grad,
    const at::Tensor& grad_output,
    const at::Tensor& input,
    const at::Tensor& target,
    int64_t reduction);

/// Gradient of the log-probabilities (T, N, C) in the CTC loss (N), from the gradient of each
/// sequence's loss, which cuDNN's forward computes. `zero_infinity` drops sequences without loss.
at::Tensor _cudnn_ctc_loss_backward(
    const at::Tensor& grad_out,
    const at::Tensor& loss,
    const at::Tensor& raw_grad,
    bool zero_infinity);

/// The same for MIOpen's.
at::Tensor _miopen_ctc_loss_backward(
    const at::Tensor& grad_out,
    const at::Tensor& loss,
    const at::Tensor& raw_grad,
    bool zero_infinity);

} // namespace derivatives
} // namespace v1
} // namespace torchext
