// SPDX-License-Identifier: BSD-3-Clause
//
// The definitions of cumulative.h.
//
// cumprod and logcumsumexp have tangents (and the latter a gradient) that are linear recurrences
// along the dim. They are solved by doubling (Hillis and Steele 1986, Data parallel algorithms):
// after the step of width w, each element accounts for 2w of its predecessors, so log2(n) steps of
// elementwise operations suffice. Beside a closed form with divisions or logarithms of the gradient
// this is exact at zeros, linear in the gradient and differentiable any number of times.
#pragma once

#include <torchext/derivatives/cumulative.h>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <limits>

namespace torchext {
inline namespace v1 {
namespace derivatives {
namespace {

/// The number of elements along `dim`; a scalar is one element. How many steps the doubling takes
/// depends on it, so that a symbolic size becomes a concrete one here.
int64_t scan_length(const at::Tensor& self, int64_t dim) {
  return self.dim() == 0 ? 1 : self.sym_size(dim).guard_int(__FILE__, __LINE__);
}

/// exp(level) of an element relative to the one `width` later, zero where `level` is -inf.
at::Tensor decay(const at::Tensor& level, int64_t dim, int64_t width, int64_t length) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const at::Tensor earlier = level.narrow(dim, 0, length - width);
  const at::Tensor later = level.narrow(dim, width, length - width);
  return (earlier - later).masked_fill(at::real(earlier) == -kInf, -kInf).exp();
}

/// exp(self - level): the share of each element in its own cumulative sum, zero where `level` is
/// -inf.
at::Tensor own_share(const at::Tensor& self, const at::Tensor& level) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  return (self - level).masked_fill(at::real(level) == -kInf, -kInf).exp();
}

} // namespace

at::Tensor cumsum_backward(const at::Tensor& grad, int64_t dim) {
  // Inductor of torch 2.11 cannot flip a tensor without dimensions.
  return grad.dim() == 0 ? grad : grad.flip(dim).cumsum(dim).flip(dim);
}

// A stretch of elements is described by its product p and that product's tangent t; two stretches
// in a row have (p1 p2, t1 p2 + p1 t2).
at::Tensor cumprod_jvp(
    const at::Tensor& self_t, const at::Tensor& self_p, const at::Tensor& /*result*/, int64_t dim) {
  const int64_t length = scan_length(self_p, dim);
  at::Tensor product = self_p;
  at::Tensor tangent = self_t;
  for (int64_t width = 1; width < length; width *= 2) {
    const int64_t rest = length - width;
    const at::Tensor p1 = product.narrow(dim, 0, rest);
    const at::Tensor p2 = product.narrow(dim, width, rest);
    const at::Tensor t1 = tangent.narrow(dim, 0, rest);
    const at::Tensor t2 = tangent.narrow(dim, width, rest);
    tangent = at::cat({tangent.narrow(dim, 0, width), t1 * p2 + p1 * t2}, dim);
    product = at::cat({product.narrow(dim, 0, width), p1 * p2}, dim);
  }
  return tangent;
}

// With y = logcumsumexp(x): grad_x[i] = sum over j >= i of exp(x[i] - y[j]) grad[j]
//                                     = exp(x[i] - y[i]) sum over j >= i of exp(y[i] - y[j]) grad[j].
at::Tensor logcumsumexp_backward(
    const at::Tensor& grad, const at::Tensor& self, const at::Tensor& result, int64_t dim) {
  if (self.dim() == 0) {
    return grad;
  }
  const int64_t length = scan_length(self, dim);
  at::Tensor sum = grad;
  for (int64_t width = 1; width < length; width *= 2) {
    const int64_t rest = length - width;
    const at::Tensor earlier = sum.narrow(dim, 0, rest);
    const at::Tensor later = sum.narrow(dim, width, rest);
    const at::Tensor carried = decay(result, dim, width, length).conj() * later;
    sum = at::cat({earlier + carried, sum.narrow(dim, rest, width)}, dim);
  }
  return own_share(self, result).conj() * sum;
}

// The transpose of the above: sum over i <= j of exp(y[i] - y[j]) exp(x[i] - y[i]) self_t[i].
at::Tensor logcumsumexp_jvp(const at::Tensor& self_p, const at::Tensor& self_t, int64_t dim) {
  const int64_t length = scan_length(self_p, dim);
  const at::Tensor level = at::logcumsumexp(self_p, dim);
  at::Tensor sum = own_share(self_p, level) * self_t;
  for (int64_t width = 1; width < length; width *= 2) {
    const int64_t rest = length - width;
    const at::Tensor earlier = sum.narrow(dim, 0, rest);
    const at::Tensor later = sum.narrow(dim, width, rest);
    const at::Tensor carried = decay(level, dim, width, length) * earlier;
    sum = at::cat({sum.narrow(dim, 0, width), later + carried}, dim);
  }
  return sum;
}

} // namespace derivatives
} // namespace v1
} // namespace torchext
