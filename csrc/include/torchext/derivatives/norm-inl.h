// SPDX-License-Identifier: BSD-3-Clause
//
// The definitions of norm.h.
#pragma once

#include <torchext/derivatives/norm.h>
#include <torchext/derivatives/reduction.h>

#include <ATen/Functions.h>
#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <ATen/WrapDimUtils.h>

#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

namespace torchext {
inline namespace v1 {
namespace derivatives {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// `reduced`, which has the shape of the norm, in one that broadcasts against `self`.
at::Tensor align_norm(
    const at::Tensor& reduced, const at::Tensor& self, at::IntArrayRef dim, bool keepdim) {
  return self.dim() == 0 ? reduced : restore_reduced_dims(reduced, dim, keepdim);
}

/// d norm / d self for p other than zero; `norm` broadcasts against `self`, which is reduced along
/// `dim`.
///
/// From norm^p = sum |x|^p: d norm / d x = sgn(x) (|x| / norm)^(p - 1). The power is taken with a
/// positive exponent, and where a denominator or the base is zero it is replaced before the
/// operation, not masked after it, so that second derivatives are free of NaN.
at::Tensor norm_slope(
    const at::Tensor& self, double p, const at::Tensor& norm, at::IntArrayRef dim) {
  if (p == 1) {
    return self.sgn();
  }
  if (std::isinf(p)) {
    const at::Tensor magnitude = self.abs();
    const at::Tensor attains = at::logical_or(magnitude == norm, magnitude.isnan());
    return self.sgn() * attains / attains.sum(dim, /*keepdim=*/true);
  }
  const at::Tensor is_zero = self == 0;
  if (p < 1) {
    const at::Tensor inverse_ratio = norm / self.abs().masked_fill(is_zero, kInfinite);
    return self.sgn() * inverse_ratio.masked_fill(is_zero, 1).pow(1 - p);
  }
  const at::Tensor divisor = norm.masked_fill(norm == 0, kInfinite);
  if (p == 2) {
    return self / divisor;
  }
  return self.sgn() * (self.abs() / divisor).masked_fill(is_zero, 1).pow(p - 1);
}

/// The real inner products of `a` and `b` along `dim`.
at::Tensor real_dot(const at::Tensor& a, const at::Tensor& b, at::IntArrayRef dim, bool keepdim) {
  return at::real(a.conj() * b).sum(dim, keepdim);
}

/// What the derivatives of renorm share: for each slice its norm, where it exceeds the maximum, the
/// factor that scales it, and that factor's derivative by the norm.
struct Renormalisation {
  std::vector<int64_t> dims;
  at::Tensor norm;
  at::Tensor exceeds;
  at::Tensor factor;
  at::Tensor factor_slope;
};

Renormalisation renormalise(
    const at::Tensor& self, const c10::Scalar& p, int64_t dim, const c10::Scalar& maxnorm) {
  constexpr double kEpsilon = 1e-7; // what the operator adds to the norm
  Renormalisation parts;
  const int64_t kept = at::maybe_wrap_dim(dim, self.dim());
  for (int64_t i = 0; i < self.dim(); ++i) {
    if (i != kept) {
      parts.dims.push_back(i);
    }
  }
  // Half types are summed in float, as the operator does.
  const at::ScalarType dtype = at::toOpMathType(self.scalar_type());
  parts.norm = at::linalg_vector_norm(self, p, parts.dims, /*keepdim=*/true, dtype);
  parts.exceeds = parts.norm > maxnorm;
  const at::Tensor inverse = (parts.norm + kEpsilon).reciprocal();
  parts.factor = inverse * maxnorm;
  parts.factor_slope = -parts.factor * inverse;
  return parts;
}

} // namespace

at::Tensor norm_backward(
    const at::Tensor& grad,
    const at::Tensor& self,
    const std::optional<c10::Scalar>& p,
    const at::Tensor& norm) {
  return norm_backward(grad, self, p, norm, at::IntArrayRef(), /*keepdim=*/true);
}

at::Tensor norm_backward(
    const at::Tensor& grad,
    const at::Tensor& self,
    const std::optional<c10::Scalar>& p,
    const at::Tensor& norm,
    at::IntArrayRef dim,
    bool keepdim) {
  const double order = p.value_or(2).toDouble();
  if (order == 0) {
    return at::Tensor();
  }
  const at::Tensor slope = norm_slope(self, order, align_norm(norm, self, dim, keepdim), dim);
  return slope * align_norm(grad, self, dim, keepdim);
}

at::Tensor norm_jvp(
    const at::Tensor& self_p,
    const at::Tensor& self_t,
    const std::optional<c10::Scalar>& p,
    const at::Tensor& norm) {
  return norm_jvp(self_p, self_t, p, norm, at::IntArrayRef(), /*keepdim=*/false);
}

at::Tensor norm_jvp(
    const at::Tensor& self_p,
    const at::Tensor& self_t,
    const std::optional<c10::Scalar>& p,
    const at::Tensor& norm,
    at::IntArrayRef dim,
    bool keepdim) {
  const double order = p.value_or(2).toDouble();
  if (order == 0) {
    return at::zeros_like(norm);
  }
  const at::Tensor slope = norm_slope(self_p, order, align_norm(norm, self_p, dim, keepdim), dim);
  return real_dot(slope, self_t, dim, keepdim);
}

at::Tensor linalg_vector_norm_backward(
    const at::Tensor& grad,
    const at::Tensor& self,
    const c10::Scalar& ord,
    const at::Tensor& norm,
    at::OptionalIntArrayRef dim,
    bool keepdim) {
  return norm_backward(grad, self, ord, norm, dim.value_or(at::IntArrayRef()), keepdim);
}

at::Tensor linalg_vector_norm_jvp(
    const at::Tensor& self_p,
    const at::Tensor& self_t,
    const c10::Scalar& ord,
    const at::Tensor& norm,
    at::OptionalIntArrayRef dim,
    bool keepdim) {
  return norm_jvp(self_p, self_t, ord, norm, dim.value_or(at::IntArrayRef()), keepdim);
}

// renorm is x f(n) with n = norm(x): its transposed derivative applied to g is
// g f + n'(x) f'(n) <x, g>.
at::Tensor renorm_backward(
    const at::Tensor& grad,
    const at::Tensor& self,
    const c10::Scalar& p,
    int64_t dim,
    const c10::Scalar& maxnorm) {
  const Renormalisation r = renormalise(self, p, dim, maxnorm);
  const at::Tensor along = real_dot(self, grad, r.dims, /*keepdim=*/true);
  const at::Tensor slope = norm_slope(self, p.toDouble(), r.norm, r.dims);
  const at::Tensor scaled = grad * r.factor + slope * (r.factor_slope * along);
  return at::where(r.exceeds, scaled.to(grad.scalar_type()), grad);
}

at::Tensor renorm_jvp(
    const at::Tensor& self_p,
    const at::Tensor& self_t,
    const c10::Scalar& p,
    int64_t dim,
    const c10::Scalar& maxnorm) {
  const Renormalisation r = renormalise(self_p, p, dim, maxnorm);
  const at::Tensor slope = norm_slope(self_p, p.toDouble(), r.norm, r.dims);
  const at::Tensor norm_t = real_dot(slope, self_t, r.dims, /*keepdim=*/true);
  const at::Tensor scaled = self_t * r.factor + self_p * (r.factor_slope * norm_t);
  return at::where(r.exceeds, scaled.to(self_t.scalar_type()), self_t);
}

} // namespace derivatives
} // namespace v1
} // namespace torchext
