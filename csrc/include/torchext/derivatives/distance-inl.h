// SPDX-License-Identifier: BSD-3-Clause
//
// The definitions of distance.h.
#pragma once

#include <torchext/derivatives/distance.h>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>
#include <limits>

namespace torchext {
inline namespace v1 {
namespace derivatives {
namespace {

/// The slope of the p-norm `distance` of the vectors `difference` (last dim), as the gradient of
/// cdist and pdist reads it: a function of both, zero at a distance of zero. With its derivatives.
struct DistanceSlope {
  at::Tensor value;         // shape of difference
  at::Tensor by_difference; // likewise, elementwise; undefined means zero
  at::Tensor by_distance;   // likewise; undefined means zero
};

// slope = sgn(d) (|d| / distance)^(p - 1). Its own derivatives are left infinite nowhere: where
// |d|^(p - 2) is infinite at d = 0 they are zero, as the slope is masked there.
DistanceSlope slope_of_distance(
    const at::Tensor& difference, const at::Tensor& distance, double p) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const at::Tensor sign = difference.sgn();
  if (p == 0) {
    return {at::zeros_like(difference), {}, {}};
  }
  if (p == 1) {
    return {sign, {}, {}};
  }
  const at::Tensor length = distance.unsqueeze(-1);
  if (std::isinf(p)) {
    return {sign * (difference.abs() == length), {}, {}};
  }
  const at::Tensor inverse = length.masked_fill(length == 0, kInf).reciprocal();
  if (p == 2) {
    const at::Tensor value = difference * inverse;
    return {value, inverse.expand_as(difference), -value * inverse};
  }
  // A ratio of zero is replaced before a power is taken, so that no derivative of it is NaN.
  const at::Tensor is_zero = difference == 0;
  const at::Tensor ratio = (difference.abs() * inverse).masked_fill(is_zero, 1);
  const at::Tensor value = sign * ratio.pow(p - 1);
  const at::Tensor curvature = (ratio.pow(p - 2) * inverse).masked_fill(is_zero, 0);
  return {value, curvature * (p - 1), value * inverse * (1 - p)};
}

/// Sum over the last dim of the products of `direction` with `derivative`, times `weight`.
at::Tensor contract(
    const at::Tensor& weight, const at::Tensor& direction, const at::Tensor& derivative) {
  if (!derivative.defined()) {
    return at::zeros_like(weight);
  }
  return weight * (direction * derivative).sum(-1);
}

/// For each pair, the second derivative along `direction`, times `weight`.
at::Tensor bend(
    const at::Tensor& weight, const at::Tensor& direction, const at::Tensor& derivative) {
  if (!derivative.defined()) {
    return at::zeros_like(direction);
  }
  return weight.unsqueeze(-1) * direction * derivative;
}

} // namespace

// d dist[i,j] / d x1[i] = (x1[i] - x2[j]) / dist[i,j], and its negative by x2[j].
std::tuple<at::Tensor, at::Tensor> _euclidean_dist_backward(
    const at::Tensor& grad, const at::Tensor& x1, const at::Tensor& x2, const at::Tensor& res) {
  if (!grad.defined()) {
    return {};
  }
  // Division by infinity gives the zero at distance zero, in second derivatives too.
  const at::Tensor weight =
      grad / res.masked_fill(res == 0, std::numeric_limits<double>::infinity());
  const at::Tensor of_x1 = x1 * weight.sum(-1, /*keepdim=*/true) - weight.matmul(x2);
  const at::Tensor of_x2 = x2 * weight.sum(-2).unsqueeze(-1) - weight.mT().matmul(x1);
  return {of_x1, of_x2};
}

// _cdist_backward returns sum over j of grad_output[i,j] slope(x1[i] - x2[j], cdist[i,j]).
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> _cdist_backward_backward(
    const at::Tensor& grad,
    const at::Tensor& grad_output,
    const at::Tensor& x1,
    const at::Tensor& x2,
    double p,
    const at::Tensor& cdist,
    const std::array<bool, 4>& output_mask) {
  std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> result;
  if (!grad.defined()) {
    return result;
  }
  const at::Tensor difference = x1.unsqueeze(-2) - x2.unsqueeze(-3);
  const DistanceSlope slope = slope_of_distance(difference, cdist, p);
  const at::Tensor direction = grad.unsqueeze(-2).expand_as(difference);
  if (output_mask[0]) {
    std::get<0>(result) = (direction * slope.value).sum(-1);
  }
  if (output_mask[1] || output_mask[2]) {
    const at::Tensor bent = bend(grad_output, direction, slope.by_difference);
    std::get<1>(result) = bent.sum(-2);
    std::get<2>(result) = -bent.sum(-3);
  }
  if (output_mask[3]) {
    std::get<3>(result) = contract(grad_output, direction, slope.by_distance);
  }
  return result;
}

// _pdist_backward returns, for the pairs i < j, the sum of grad_output[i,j] slope[i,j] over those
// that an i begins less that over those that it ends.
std::tuple<at::Tensor, at::Tensor, at::Tensor> _pdist_backward_backward(
    const at::Tensor& grad,
    const at::Tensor& grad_output,
    const at::Tensor& self,
    double p,
    const at::Tensor& pdist,
    const std::array<bool, 3>& output_mask) {
  std::tuple<at::Tensor, at::Tensor, at::Tensor> result;
  if (!grad.defined()) {
    return result;
  }
  const int64_t points = self.sym_size(0).guard_int(__FILE__, __LINE__);
  const at::Tensor pairs =
      at::triu_indices(points, points, /*offset=*/1, self.options().dtype(at::kLong));
  const at::Tensor begin = pairs.select(0, 0);
  const at::Tensor end = pairs.select(0, 1);
  const at::Tensor difference = self.index_select(0, begin) - self.index_select(0, end);
  const DistanceSlope slope = slope_of_distance(difference, pdist, p);
  const at::Tensor direction = grad.index_select(0, begin) - grad.index_select(0, end);
  if (output_mask[0]) {
    std::get<0>(result) = (direction * slope.value).sum(-1);
  }
  if (output_mask[1]) {
    const at::Tensor bent = bend(grad_output, direction, slope.by_difference);
    std::get<1>(result) = at::zeros_like(self).index_add(0, begin, bent).index_add(0, end, -bent);
  }
  if (output_mask[2]) {
    std::get<2>(result) = contract(grad_output, direction, slope.by_distance);
  }
  return result;
}

} // namespace derivatives
} // namespace v1
} // namespace torchext
