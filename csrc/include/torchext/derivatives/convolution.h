// SPDX-License-Identifier: BSD-3-Clause
//
// Derivatives of convolution and of max pooling.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymInt.h>
#include <c10/core/SymIntArrayRef.h>

#include <array>
#include <tuple>

namespace torchext {
inline namespace v1 {
namespace derivatives {

/// Tangent of convolution. An undefined tangent is zero; undefined if all are.
at::Tensor convolution_jvp(
    const at::Tensor& input_p,
    const at::Tensor& input_t,
    const at::Tensor& weight_p,
    const at::Tensor& weight_t,
    const at::Tensor& bias_p,
    const at::Tensor& bias_t,
    at::SymIntArrayRef stride,
    at::SymIntArrayRef padding,
    at::SymIntArrayRef dilation,
    bool transposed,
    at::SymIntArrayRef output_padding,
    const c10::SymInt& groups);

/// Tangent of _convolution.
at::Tensor _convolution_jvp(
    const at::Tensor& input_p,
    const at::Tensor& input_t,
    const at::Tensor& weight_p,
    const at::Tensor& weight_t,
    const at::Tensor& bias_p,
    const at::Tensor& bias_t,
    at::SymIntArrayRef stride,
    at::SymIntArrayRef padding,
    at::SymIntArrayRef dilation,
    bool transposed,
    at::SymIntArrayRef output_padding,
    const c10::SymInt& groups,
    bool benchmark,
    bool deterministic,
    bool cudnn_enabled,
    bool allow_tf32);

/// Tangent of the gradient of the bias; undefined where the gradient is.
at::Tensor convolution_backward_jvp_grad_bias(
    const at::Tensor& grad_out_t, const at::Tensor& grad_bias);

/// Gradients of input and weight of cudnn_convolution and, if `transposed`, of its transpose;
/// undefined where `grad_output` is or the mask says so.
std::tuple<at::Tensor, at::Tensor> _cudnn_convolution_backward(
    const at::Tensor& self,
    const at::Tensor& grad_output,
    const at::Tensor& weight,
    at::SymIntArrayRef padding,
    at::SymIntArrayRef output_padding,
    at::SymIntArrayRef stride,
    at::SymIntArrayRef dilation,
    bool transposed,
    c10::SymInt groups,
    std::array<bool, 2> output_mask);

/// Gradient of grad_output in the backward of max pooling over the last `dim` dimensions: what
/// `grad` has at the maxima. Also the gradient of max_unpool's input.
at::Tensor max_pool_double_backward(const at::Tensor& grad, const at::Tensor& indices, int64_t dim);

/// Raises: max_pool2d without indices does not differentiate twice.
at::Tensor error_for_max_pool2d_double_backward();

} // namespace derivatives
} // namespace v1
} // namespace torchext
