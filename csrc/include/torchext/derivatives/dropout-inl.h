// SPDX-License-Identifier: BSD-3-Clause
//
// The definitions of dropout.h.
#pragma once

#include <torchext/derivatives/dropout.h>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

namespace torchext {
inline namespace v1 {
namespace derivatives {

at::Tensor _fused_dropout_backward(const at::Tensor& grad, const at::Tensor& mask, double p1m) {
  return infinitely_differentiable_native_dropout_backward(
      grad, mask.to(grad.scalar_type()), 1 / p1m);
}

at::Tensor infinitely_differentiable_native_dropout_backward(
    const at::Tensor& grad, const at::Tensor& mask, double scale) {
  return grad * mask * scale;
}

at::Tensor native_dropout_double_backward(
    const at::Tensor& ggI, const at::Tensor& grad, const at::Tensor& mask, double scale) {
  const auto dtype = grad.scalar_type();
  return infinitely_differentiable_native_dropout_backward(ggI.to(dtype), mask.to(dtype), scale);
}

} // namespace derivatives
} // namespace v1
} // namespace torchext
