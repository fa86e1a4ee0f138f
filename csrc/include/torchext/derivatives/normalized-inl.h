// SPDX-License-Identifier: BSD-3-Clause
//
// What the definitions of normalization.h and group_normalization.h share; no topic of its own. All
// normalizations are x̂ = (x - mean) * rstd, times a weight, plus a bias; they differ in the
// dimensions of the statistics and in what these are.
#pragma once

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace torchext {
inline namespace v1 {
namespace derivatives {

namespace {

using at::Tensor;

enum class Statistics {
  kFixed,          // not functions of x: the running ones
  kRootMeanSquare, // no mean is subtracted
  kMeanAndDeviation,
};

/// The normalized tensor and how it depends on x.
struct Normalized {
  Statistics statistics;
  Tensor xhat;
  Tensor rstd;               // broadcasts to x̂
  std::vector<int64_t> dims; // the ones that statistics are taken over

  Tensor mean(const Tensor& t) const {
    return t.mean(dims, /*keepdim=*/true);
  }

  /// The derivative of x̂ by x is rstd times this linear map, which is symmetric. From
  /// d(rstd) = -rstd^2 mean(x̂ dx) and d(mean) = mean(dx).
  Tensor project(const Tensor& t) const {
    if (statistics == Statistics::kFixed) {
      return t;
    }
    const Tensor centered = statistics == Statistics::kRootMeanSquare ? t : t - mean(t);
    return centered - xhat * mean(t * xhat);
  }

  Tensor tangent(const Tensor& x_t) const {
    return rstd * project(x_t);
  }

  Tensor rstd_tangent(const Tensor& x_t) const {
    return -rstd.square() * mean(xhat * x_t);
  }

  /// The gradient of <u, rstd * project(v)> with respect to x.
  Tensor projection_backward(const Tensor& u, const Tensor& v) const {
    const Tensor projected = project(v);
    return -rstd.square() *
           (xhat * mean(u * projected) + mean(v * xhat) * project(u) + mean(u * xhat) * projected);
  }
};

Tensor scaled(const Tensor& t, const Tensor& weight) {
  return weight.defined() ? t * weight : t;
}

/// The sum, where an undefined tensor counts as zero.
Tensor sum_of(const Tensor& a, const Tensor& b) {
  return a.defined() && b.defined() ? a + b : a.defined() ? a : b;
}

Tensor to_dtype_of(const Tensor& other, const Tensor& t) {
  return t.defined() ? t.to(other.scalar_type()) : t;
}

Tensor or_undefined(const std::optional<Tensor>& t) {
  return t.has_value() ? *t : Tensor();
}

/// The tangent of x̂ * weight + bias. All have shapes that broadcast to that of x̂.
Tensor affine_jvp(
    const Normalized& normalized,
    const Tensor& input_t,
    const Tensor& weight_p,
    const Tensor& weight_t,
    const Tensor& bias_t) {
  Tensor result;
  if (input_t.defined()) {
    result = scaled(normalized.tangent(input_t), weight_p);
  }
  if (weight_t.defined()) {
    result = sum_of(result, normalized.xhat * weight_t);
  }
  if (bias_t.defined()) {
    result = sum_of(result, bias_t.expand_as(normalized.xhat));
  }
  return result;
}

} // namespace
} // namespace derivatives
} // namespace v1
} // namespace torchext
