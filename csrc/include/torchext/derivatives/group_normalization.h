// SPDX-License-Identifier: BSD-3-Clause
//
// Derivatives of group normalization.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymInt.h>

#include <array>
#include <optional>
#include <tuple>

namespace torchext {
inline namespace v1 {
namespace derivatives {

/// Tangent of the normalized tensor of group norm. An undefined tangent counts as zero.
at::Tensor group_norm_jvp(
    const at::Tensor& input_p,
    const at::Tensor& input_t,
    const at::Tensor& weight_p,
    const at::Tensor& weight_t,
    const at::Tensor& bias_p,
    const at::Tensor& bias_t,
    const at::Tensor& saved_mean,
    const at::Tensor& saved_invstd,
    int64_t groups);

/// Tangent of the means of group norm; undefined where `input_t` is.
at::Tensor group_norm_mean_jvp(const at::Tensor& input_t, const at::Tensor& mean_p, int64_t groups);

/// Tangent of the reciprocal standard deviations of group norm; undefined where `input_t` is.
at::Tensor group_norm_invstd_jvp(
    const at::Tensor& input_p,
    const at::Tensor& input_t,
    const at::Tensor& mean_p,
    const at::Tensor& invstd_p,
    int64_t groups);

/// Gradients of the input, weight and bias of group norm, given those of its three results (each
/// may be undefined); differentiable in all arguments if `mean` and `rstd` are differentiable
/// functions of `X`.
std::tuple<at::Tensor, at::Tensor, at::Tensor> infinitely_differentiable_native_group_norm_backward(
    const at::Tensor& dY,
    const at::Tensor& dmean,
    const at::Tensor& drstd,
    const at::Tensor& X,
    const at::Tensor& mean,
    const at::Tensor& rstd,
    const std::optional<at::Tensor>& gamma,
    const c10::SymInt& N,
    const c10::SymInt& C,
    const c10::SymInt& HxW,
    int64_t group,
    double eps,
    std::array<bool, 3> grad_input_mask);

/// The same, under the name that formulas of PyTorch 2.14 call, which have no need of `eps`.
std::tuple<at::Tensor, at::Tensor, at::Tensor> native_group_norm_backward_dispatcher(
    const at::Tensor& dY,
    const at::Tensor& dmean,
    const at::Tensor& drstd,
    const at::Tensor& X,
    const at::Tensor& mean,
    const at::Tensor& rstd,
    const std::optional<at::Tensor>& gamma,
    const c10::SymInt& N,
    const c10::SymInt& C,
    const c10::SymInt& HxW,
    int64_t group,
    std::array<bool, 3> grad_input_mask);

} // namespace derivatives
} // namespace v1
} // namespace torchext
