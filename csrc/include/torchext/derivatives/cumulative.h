// SPDX-License-Identifier: BSD-3-Clause
//
// Derivatives of cumulative sums, products and log-sum-exps.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace torchext {
inline namespace v1 {
namespace derivatives {

/// Gradient of `cumsum`: the cumulative sum of `grad` from the end.
at::Tensor cumsum_backward(const at::Tensor& grad, int64_t dim);

/// Tangent of `cumprod`. Exact with any number of zeros; `result` is not read.
at::Tensor cumprod_jvp(
    const at::Tensor& self_t, const at::Tensor& self_p, const at::Tensor& result, int64_t dim);

/// Gradient of `logcumsumexp`, whose value is `result`; zero where that is -inf.
at::Tensor logcumsumexp_backward(
    const at::Tensor& grad, const at::Tensor& self, const at::Tensor& result, int64_t dim);

/// Tangent of `logcumsumexp`; zero where that is -inf.
at::Tensor logcumsumexp_jvp(const at::Tensor& self_p, const at::Tensor& self_t, int64_t dim);

} // namespace derivatives
} // namespace v1
} // namespace torchext
