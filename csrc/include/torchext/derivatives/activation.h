// SPDX-License-Identifier: BSD-3-Clause
//
// Derivatives of activation functions, most of them second ones. `grad` is the gradient of the
// result of the function's own backward, `grad_output` what that took.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

#include <string_view>

namespace torchext {
inline namespace v1 {
namespace derivatives {

/// Gradient of silu in functions that differentiate again.
at::Tensor infinitely_differentiable_silu_backward(
    const at::Tensor& grad_output, const at::Tensor& input);

/// Gradient of mish in functions that differentiate again.
at::Tensor infinitely_differentiable_mish_backward(
    const at::Tensor& grad_output, const at::Tensor& input);

/// Gradient of `input` in gelu_backward(gO, input); `approximate` is "none" or "tanh".
at::Tensor gelu_double_backward(
    const at::Tensor& ggI,
    const at::Tensor& gO,
    const at::Tensor& input,
    std::string_view approximate);

/// Gradient of `self_or_result` in elu_backward.
at::Tensor elu_double_backward(
    const at::Tensor& grad,
    const at::Tensor& grad_output,
    const at::Scalar& alpha,
    const at::Scalar& scale,
    const at::Scalar& input_scale,
    bool is_result,
    const at::Tensor& self_or_result);

/// Gradient of `input` in log_sigmoid_backward; `grad` includes the factor grad_output.
at::Tensor log_sigmoid_double_backward(const at::Tensor& grad, const at::Tensor& input);

/// Gradient of `input` in softplus_backward; `grad` includes the factor grad_output.
at::Tensor softplus_double_backward(
    const at::Tensor& grad,
    const at::Tensor& input,
    const at::Scalar& beta,
    const at::Scalar& threshold);

/// Gradient of `output` in _softmax_backward_data.
at::Tensor softmax_double_backward(
    const at::Tensor& grad, const at::Tensor& grad_output, int64_t dim, const at::Tensor& output);

/// Gradient of `input` in glu_backward.
at::Tensor glu_double_backward(
    const at::Tensor& grad, const at::Tensor& grad_output, const at::Tensor& input, int64_t dim);

/// Gradient of grad_output in glu_backward; half as long as `input` in `dim`.
at::Tensor glu_double_backward_grad_output(
    const at::Tensor& grad, const at::Tensor& input, int64_t dim);

} // namespace derivatives
} // namespace v1
} // namespace torchext
