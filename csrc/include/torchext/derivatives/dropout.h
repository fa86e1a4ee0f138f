// SPDX-License-Identifier: BSD-3-Clause
//
// Derivatives of dropout.
#pragma once

#include <ATen/core/Tensor.h>

namespace torchext {
inline namespace v1 {
namespace derivatives {

/// Gradient of `self` in _fused_dropout, which keeps an element with the probability `p1m`.
at::Tensor _fused_dropout_backward(const at::Tensor& grad, const at::Tensor& mask, double p1m);

/// Gradient of the input of native_dropout, which multiplies by `mask` and `scale`.
at::Tensor infinitely_differentiable_native_dropout_backward(
    const at::Tensor& grad, const at::Tensor& mask, double scale);

/// Gradient, in the dtype of `grad`, of `grad` in native_dropout_backward(grad, mask, scale).
at::Tensor native_dropout_double_backward(
    const at::Tensor& ggI, const at::Tensor& grad, const at::Tensor& mask, double scale);

} // namespace derivatives
} // namespace v1
} // namespace torchext
