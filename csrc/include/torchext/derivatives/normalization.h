// SPDX-License-Identifier: BSD-3-Clause
//
// Derivatives of batch, layer and RMS normalization.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymIntArrayRef.h>

#include <array>
#include <optional>
#include <tuple>

namespace torchext {
inline namespace v1 {
namespace derivatives {

/// Tangent of the normalized tensor of batch norm, with the batch's statistics if `train` and the
/// running ones otherwise. An undefined tangent counts as zero.
at::Tensor batch_norm_jvp(
    const at::Tensor& input_p,
    const at::Tensor& input_t,
    const at::Tensor& weight_p,
    const at::Tensor& weight_t,
    const at::Tensor& bias_p,
    const at::Tensor& bias_t,
    const std::optional<at::Tensor>& running_mean,
    const std::optional<at::Tensor>& running_var,
    const at::Tensor& saved_mean,
    const at::Tensor& saved_invstd,
    bool train,
    double eps);

/// Gradients of `input`, `gamma` and `gO` in the backward of batch norm, given those of its three
/// results (any may be undefined). Undefined where nothing contributes.
std::tuple<at::Tensor, at::Tensor, at::Tensor> batchnorm_double_backward(
    const at::Tensor& input,
    const std::optional<at::Tensor>& gamma,
    const at::Tensor& ggI,
    const at::Tensor& ggG,
    const at::Tensor& ggB,
    const at::Tensor& gO,
    const std::optional<at::Tensor>& running_mean,
    const std::optional<at::Tensor>& running_var,
    bool training,
    double eps,
    const std::optional<at::Tensor>& save_mean,
    const std::optional<at::Tensor>& save_invstd,
    std::array<bool, 3> output_mask);

/// Tangent of the normalized tensor of layer norm. An undefined tangent counts as zero.
at::Tensor layer_norm_jvp(
    const at::Tensor& input_p,
    const at::Tensor& input_t,
    const at::Tensor& weight_p,
    const at::Tensor& weight_t,
    const at::Tensor& bias_p,
    const at::Tensor& bias_t,
    const at::Tensor& saved_mean,
    const at::Tensor& saved_invstd,
    c10::SymIntArrayRef normalized_shape);

/// Gradients of `input`, `gamma` and `gO` in the backward of layer norm, given those of its three
/// results (any may be undefined). Undefined where nothing contributes.
std::tuple<at::Tensor, at::Tensor, at::Tensor> layer_norm_double_backward(
    const at::Tensor& input,
    const std::optional<at::Tensor>& gamma,
    const at::Tensor& ggI,
    const at::Tensor& ggG,
    const at::Tensor& ggB,
    const at::Tensor& gO,
    const at::Tensor& save_mean,
    const at::Tensor& save_invstd,
    c10::SymIntArrayRef normalized_shape,
    std::array<bool, 3> output_mask);

/// Tangent of the normalized tensor of RMS norm. An undefined tangent counts as zero.
at::Tensor rms_norm_jvp(
    const at::Tensor& input_p,
    const at::Tensor& input_t,
    const at::Tensor& weight_p,
    const at::Tensor& weight_t,
    const at::Tensor& saved_rstd,
    at::IntArrayRef normalized_shape);

/// Tangent of the reciprocal root mean square of RMS norm; undefined where `input_t` is.
at::Tensor rms_norm_rstd_jvp(
    const at::Tensor& input_p,
    const at::Tensor& input_t,
    const at::Tensor& saved_rstd,
    at::IntArrayRef normalized_shape);

/// Gradients of the input and the weight of RMS norm, given those of its two results (each may be
/// undefined); differentiable in all arguments if `rstd` is a differentiable function of `input`.
std::tuple<at::Tensor, at::Tensor> infinitely_differentiable_native_rms_norm_backward(
    const at::Tensor& dY,
    const at::Tensor& drstd,
    const at::Tensor& input,
    at::IntArrayRef normalized_shape,
    const at::Tensor& rstd,
    const std::optional<at::Tensor>& weight_opt,
    std::array<bool, 2> grad_input_mask);

} // namespace derivatives
} // namespace v1
} // namespace torchext
