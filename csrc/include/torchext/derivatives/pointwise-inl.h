// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <torchext/derivatives/pointwise.h>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torchext/compat.h>
#include <torchext/derivatives/basic.h>

#include <cmath>
#include <limits>

namespace torchext {
inline namespace v1 {
namespace derivatives {

namespace {

using at::Tensor;

// A zero that `at::where` broadcasts and that leaves the dtype of the other branch alone.
Tensor zero_like_scalar(const Tensor& t) {
  return at::zeros({}, t.options());
}

template <typename T>
Tensor quotient_self_gradient(
    const Tensor& grad,
    const T& other,
    at::ScalarType self_st,
    const std::optional<std::string_view>& rounding_mode) {
  if (rounding_mode.has_value()) {
    return at::zeros_like(grad, grad.options().dtype(self_st));
  }
  return handle_r_to_c(self_st, grad / other.conj());
}

} // namespace

at::Tensor div_tensor_self_backward(
    const at::Tensor& grad,
    const at::Tensor& other,
    at::ScalarType self_st,
    const std::optional<std::string_view>& rounding_mode) {
  return quotient_self_gradient(grad, other, self_st, rounding_mode);
}

at::Tensor div_tensor_self_backward(
    const at::Tensor& grad,
    const at::Scalar& other,
    at::ScalarType self_st,
    const std::optional<std::string_view>& rounding_mode) {
  return quotient_self_gradient(grad, other, self_st, rounding_mode);
}

at::Tensor div_tensor_other_backward(
    const at::Tensor& grad,
    const at::Tensor& self,
    const at::Tensor& other,
    const std::optional<std::string_view>& rounding_mode) {
  if (rounding_mode.has_value()) {
    return at::zeros_like(grad, grad.options().dtype(other.scalar_type()));
  }
  // Dividing twice instead of by the square, which over- and underflows sooner.
  const Tensor slope = (self / other) / other;
  return handle_r_to_c(other, -grad * slope.conj());
}

at::Tensor pow_backward(at::Tensor grad, const at::Tensor& self, const at::Scalar& exponent) {
  const bool is_complex = exponent.isComplex();
  // One type for integers, floating point and symbolic numbers.
  const at::Scalar power = is_complex ? exponent : at::Scalar(exponent.toDouble());
  if (power.equal(0.0)) {
    return at::zeros_like(self);
  }
  const at::Scalar lower = is_complex ? at::Scalar(exponent.toComplexDouble() - 1.0)
                                      : at::Scalar(exponent.toDouble() - 1.0);
  return handle_r_to_c(self, grad * (self.pow(lower) * power).conj());
}

at::Tensor pow_backward_self(
    const at::Tensor& grad, const at::Tensor& self, const at::Tensor& exponent) {
  const Tensor gradient = grad * (exponent * self.pow(exponent - 1)).conj();
  // At self = 0 the power below is infinite where the exponent is zero.
  const Tensor masked = at::where(exponent == 0, zero_like_scalar(gradient), gradient);
  return handle_r_to_c(self, masked);
}

namespace {

// The exponents e with 0 ** e defined as a constant on one side at least.
Tensor is_real_not_negative(const Tensor& exponent) {
  if (!exponent.is_complex()) {
    return exponent >= 0;
  }
  return at::logical_and(at::imag(exponent) == 0, at::real(exponent) >= 0);
}

} // namespace

at::Tensor pow_backward_exponent(
    const at::Tensor& grad,
    const at::Tensor& self,
    const at::Tensor& exponent,
    const at::Tensor& result) {
  // In the dtype of the result: the logarithm of a negative base is complex where the exponent is.
  // The slope is masked and not its product with the gradient, whose derivative by that would be
  // zero times minus infinity.
  const Tensor logarithm = self.to(result.scalar_type()).log();
  const Tensor constant = at::logical_and(self == 0, is_real_not_negative(exponent));
  const Tensor slope = result * logarithm;
  const Tensor masked = at::where(constant, zero_like_scalar(slope), slope);
  return handle_r_to_c(exponent, grad * masked.conj());
}

at::Tensor pow_backward_exponent(
    const at::Tensor& grad,
    const at::Scalar& base,
    const at::Tensor& exponent,
    const at::Tensor& result) {
  // The logarithm of a negative base is complex where the exponent is.
  const bool widens = exponent.is_complex() && !base.isComplex();
  const at::Scalar known = widens ? at::Scalar(base.toComplexDouble()) : base;
  Tensor slope = result * known.log();
  if (known.equal(0.0)) {
    slope = at::where(is_real_not_negative(exponent), zero_like_scalar(slope), slope);
  }
  return handle_r_to_c(exponent, grad * slope.conj());
}

namespace {

// Which elements of `self` lie between bounds of either type.
template <typename Min, typename Max>
Tensor is_between(const Tensor& self, const Min* min, const Max* max) {
  const auto above = [&] { return kClampSharesTies ? self > *min : self >= *min; };
  const auto below = [&] { return kClampSharesTies ? self < *max : self <= *max; };
  if (min != nullptr && max != nullptr) {
    return at::logical_and(above(), below());
  }
  return min != nullptr ? above() : below();
}

template <typename T>
const T* address_of(const std::optional<T>& value) {
  return value.has_value() ? &*value : nullptr;
}

const Tensor* address_of(const Tensor& value) {
  return value.defined() ? &value : nullptr;
}

template <typename Bound>
Tensor gradient_between(
    const Tensor& grad, const Tensor& self, const Bound& min, const Bound& max) {
  const auto* const min_p = address_of(min);
  const auto* const max_p = address_of(max);
  if (min_p == nullptr && max_p == nullptr) {
    return grad;
  }
  return at::where(is_between(self, min_p, max_p), grad, zero_like_scalar(grad));
}

// Where `self` meets a bound and so does not by itself decide the result: both bounds in the same
// place leave no choice, and the gradient is not shared.
Tensor is_tie(const Tensor& self, const Tensor& bound, const Tensor& min, const Tensor& max) {
  const Tensor meets = self == bound;
  return min.defined() && max.defined() ? at::logical_and(meets, min < max) : meets;
}

// `grad`, of which elements in `ties` keep a half and those in `out` nothing.
Tensor share(const Tensor& grad, const Tensor& ties, const Tensor& out) {
  const Tensor shared = at::where(ties, grad / 2, grad);
  return at::where(out, zero_like_scalar(grad), shared);
}

// Gradient of `self` where ties are shared. A NaN is out of no bound.
Tensor shared_self_gradient(
    const Tensor& grad, const Tensor& self, const Tensor& min, const Tensor& max) {
  Tensor ties;
  Tensor out;
  if (min.defined()) {
    ties = is_tie(self, min, min, max);
    out = self < min;
  }
  if (max.defined()) {
    const Tensor upper_ties = is_tie(self, max, min, max);
    const Tensor above = self > max;
    ties = ties.defined() ? at::logical_or(ties, upper_ties) : upper_ties;
    out = out.defined() ? at::logical_or(out, above) : above;
  }
  return out.defined() ? share(grad, ties, out) : grad;
}

// Which elements of the result are the bound's alone. `max` wins over a `min` above it.
Tensor is_min_result(const Tensor& self, const Tensor& min, const Tensor& max) {
  const Tensor below = self < min;
  if (!max.defined()) {
    return below;
  }
  return at::logical_and(below, kClampSharesTies ? min <= max : min < max);
}

Tensor is_max_result(const Tensor& self, const Tensor& min, const Tensor& max) {
  const Tensor above = self > max;
  if (!min.defined()) {
    return above;
  }
  if (kClampSharesTies) { // a NaN among the bounds takes no gradient
    return at::logical_or(at::logical_and(above, min <= max), max < min);
  }
  return at::logical_or(above, max < min);
}

Tensor bound_gradient(
    const Tensor& grad,
    const Tensor& self,
    const Tensor& bound,
    const Tensor& min,
    const Tensor& max,
    bool is_max) {
  const bool alone = !(min.defined() && max.defined());
  if (kClampSharesTies && alone) {
    return share(grad, self == bound, is_max ? self < bound : self > bound);
  }
  const Tensor takes = is_max ? is_max_result(self, min, max) : is_min_result(self, min, max);
  const Tensor zero = zero_like_scalar(grad);
  const Tensor otherwise =
      kClampSharesTies ? at::where(is_tie(self, bound, min, max), grad / 2, zero) : zero;
  return at::where(takes, grad, otherwise);
}

Tensor or_zeros(const Tensor& tangent, const Tensor& primal) {
  return tangent.defined() ? tangent : at::zeros_like(primal);
}

// `tangent`, replaced by the bound's where `beyond`, and by their mean in ties if those are shared.
Tensor bound_tangent(
    const Tensor& tangent, const Tensor& bound_t, const Tensor& beyond, const Tensor& ties) {
  const Tensor chosen = at::where(beyond, bound_t, tangent);
  return kClampSharesTies ? at::where(ties, (tangent + bound_t) / 2, chosen) : chosen;
}

} // namespace

at::Tensor clamp_backward(
    const at::Tensor& grad,
    const at::Tensor& self,
    const std::optional<at::Scalar>& min,
    const std::optional<at::Scalar>& max) {
  return gradient_between(grad, self, min, max);
}

at::Tensor clamp_backward(
    const at::Tensor& grad, const at::Tensor& self, const at::Tensor& min, const at::Tensor& max) {
  return kClampSharesTies ? shared_self_gradient(grad, self, min, max)
                          : gradient_between(grad, self, min, max);
}

std::tuple<at::Tensor, at::Tensor> clamp_backward_min_max(
    const at::Tensor& grad,
    const at::Tensor& self,
    const at::Tensor& min,
    const at::Tensor& max,
    const std::array<bool, 2>& grad_input_mask) {
  std::tuple<Tensor, Tensor> gradients;
  if (!grad.defined()) {
    return gradients;
  }
  if (grad_input_mask[0] && min.defined()) {
    std::get<0>(gradients) = bound_gradient(grad, self, min, min, max, /*is_max=*/false);
  }
  if (grad_input_mask[1] && max.defined()) {
    std::get<1>(gradients) = bound_gradient(grad, self, max, min, max, /*is_max=*/true);
  }
  return gradients;
}

at::Tensor clamp_jvp(
    const at::Tensor& self_p,
    const at::Tensor& self_t,
    const at::Tensor& min_p,
    const at::Tensor& min_t,
    const at::Tensor& max_p,
    const at::Tensor& max_t) {
  const bool both = min_p.defined() && max_p.defined();
  Tensor tangent = or_zeros(self_t, self_p);
  // A lone bound takes whatever it does not lose: ties (unless shared) and NaN. Between two bounds
  // those stay with `self`.
  if (max_p.defined()) {
    const Tensor beyond = both ? self_p > max_p : at::logical_not(self_p < max_p);
    const Tensor ties = is_tie(self_p, max_p, min_p, max_p);
    tangent = bound_tangent(tangent, or_zeros(max_t, max_p), beyond, ties);
  }
  if (min_p.defined()) {
    const Tensor beyond = both ? self_p < min_p : at::logical_not(self_p > min_p);
    const Tensor ties = is_tie(self_p, min_p, min_p, max_p);
    tangent = bound_tangent(tangent, or_zeros(min_t, min_p), beyond, ties);
  }
  // `max` wins over a `min` above it.
  return both ? at::where(min_p > max_p, or_zeros(max_t, max_p), tangent) : tangent;
}

at::Tensor angle_backward(const at::Tensor& grad, const at::Tensor& self) {
  if (!self.is_complex()) {
    return at::zeros_like(self);
  }
  // The angle grows fastest at a right angle to z, at the rate 1 / |z|: i z / |z|^2.
  const at::Scalar i(c10::complex<double>(0.0, 1.0));
  const Tensor gradient = grad * (self / self.abs().square()) * i;
  return at::where(self == 0, zero_like_scalar(gradient), gradient);
}

std::tuple<at::Tensor, at::Tensor> atan2_backward(
    const at::Tensor& grad,
    const at::Tensor& self,
    const at::Tensor& other,
    std::array<bool, 2> output_mask) {
  std::tuple<Tensor, Tensor> gradients;
  if (!grad.defined()) {
    return gradients;
  }
  const Tensor square = self * self + other * other;
  const Tensor inverse = square.reciprocal().masked_fill(square == 0, 0);
  if (output_mask[0]) {
    std::get<0>(gradients) = grad * (other * inverse);
  }
  if (output_mask[1]) {
    std::get<1>(gradients) = grad * (-self * inverse);
  }
  return gradients;
}

std::tuple<at::Tensor, at::Tensor> polar_backward(
    const at::Tensor& grad, const at::Tensor& result) {
  if (!grad.defined()) {
    return {};
  }
  // d result = (result / |result|) d abs + i result d angle, and both inputs are real.
  const Tensor grad_conj = grad.conj();
  const at::Scalar i(c10::complex<double>(0.0, 1.0));
  return {at::real(grad_conj * at::sgn(result)), at::real(grad_conj * (result * i))};
}

at::Tensor deg2rad_backward(const at::Tensor& grad) {
  return grad * at::Scalar(M_PI / 180.0);
}

at::Tensor rad2deg_backward(const at::Tensor& grad) {
  return grad * at::Scalar(180.0 / M_PI);
}

namespace {

// Where i1(x) / x is 1/2 to the last digit, and dividing by x only loses digits.
Tensor is_tiny(const Tensor& x) {
  const bool is_double = x.scalar_type() == at::kDouble;
  const double epsilon =
      is_double ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  return x.abs() <= epsilon;
}

} // namespace

at::Tensor i1_backward(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& result) {
  // I1' = I0 - I1 / x (Abramowitz and Stegun, 9.6.28).
  const Tensor tiny = is_tiny(self);
  const Tensor divisor = self.masked_fill(tiny, 1);
  const Tensor slope = at::i0(divisor) - result / divisor;
  return grad * slope.masked_fill(tiny, 0.5);
}

at::Tensor i1e_backward(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& result) {
  // The same times exp(-|x|), whose own slope adds -sgn(x).
  const Tensor tiny = is_tiny(self);
  const Tensor divisor = self.masked_fill(tiny, 1);
  const Tensor slope = at::special_i0e(divisor) - result * (divisor.sgn() + divisor.reciprocal());
  return grad * slope.masked_fill(tiny, 0.5);
}

at::Tensor log1p_backward(const at::Tensor& grad, const at::Tensor& self) {
  const at::Layout layout = self.layout();
  const bool is_sparse = layout == at::kSparse || layout == at::kSparseCsr ||
                         layout == at::kSparseCsc || layout == at::kSparseBsr ||
                         layout == at::kSparseBsc;
  TORCH_CHECK(
      !is_sparse,
      "log1p: a sparse tensor has no gradient here, because that would be dense; ",
      "convert the tensor with to_dense() first");
  return grad / (self + 1).conj();
}

at::Tensor mvlgamma_backward(const at::Tensor& grad, const at::Tensor& self, int64_t p) {
  // mvlgamma is a constant plus the sum of lgamma(self - i / 2) over i < p.
  const Tensor shifts = at::arange(p, self.options()) / 2;
  return grad * (self.unsqueeze(-1) - shifts).digamma().sum(-1);
}

at::Tensor infinitely_differentiable_logit_backward(
    const at::Tensor& grad, const at::Tensor& self, std::optional<double> eps) {
  const Tensor gradient = grad / (self * (1.0 - self));
  const double low = eps.value_or(0.0);
  const Tensor inside = at::logical_and(self >= low, self <= 1.0 - low);
  const double outside = eps.has_value() ? 0.0 : std::numeric_limits<double>::quiet_NaN();
  return at::where(inside, gradient, at::full({}, outside, gradient.options()));
}

at::Tensor sgn_backward(const at::Tensor& x, const at::Tensor& gx, const at::Tensor& sgn) {
  if (!x.is_complex()) {
    return at::zeros_like(gx);
  }
  // y = z / |z| moves on the unit circle: dz / |z| without its part along y.
  const Tensor along = at::real(sgn.conj() * gx);
  const Tensor abs = x.abs();
  return ((gx - along * sgn) / abs).masked_fill(abs == 0, 0);
}

at::Tensor sinc_backward(const at::Tensor& grad, const at::Tensor& self) {
  const Tensor angle = self * M_PI;
  const Tensor square = angle * self;
  const Tensor slope = (angle * angle.cos() - angle.sin()) / square;
  const Tensor gradient = grad * slope.conj();
  return at::where(square == 0, zero_like_scalar(gradient), gradient);
}

} // namespace derivatives
} // namespace v1
} // namespace torchext
