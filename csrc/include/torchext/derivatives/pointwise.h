// SPDX-License-Identifier: BSD-3-Clause
//
// Derivatives of arithmetic and of pointwise functions.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

#include <array>
#include <optional>
#include <string_view>
#include <tuple>

namespace torchext {
inline namespace v1 {
namespace derivatives {

/// Gradient of the numerator, of dtype `self_st`, of a quotient by `other`; zero if it is rounded.
at::Tensor div_tensor_self_backward(
    const at::Tensor& grad,
    const at::Tensor& other,
    at::ScalarType self_st,
    const std::optional<std::string_view>& rounding_mode = std::nullopt);

/// The same for a denominator that is a scalar.
at::Tensor div_tensor_self_backward(
    const at::Tensor& grad,
    const at::Scalar& other,
    at::ScalarType self_st,
    const std::optional<std::string_view>& rounding_mode = std::nullopt);

/// Gradient of the denominator of `self / other`; zero if the quotient is rounded.
at::Tensor div_tensor_other_backward(
    const at::Tensor& grad,
    const at::Tensor& self,
    const at::Tensor& other,
    const std::optional<std::string_view>& rounding_mode = std::nullopt);

/// Gradient of the base of `self ** exponent`, a scalar exponent; an exponent of zero makes it zero.
at::Tensor pow_backward(at::Tensor grad, const at::Tensor& self, const at::Scalar& exponent);

/// Gradient of the base of `self ** exponent`; zero where the exponent is zero.
at::Tensor pow_backward_self(
    const at::Tensor& grad, const at::Tensor& self, const at::Tensor& exponent);

/// Gradient of the exponent of `result = self ** exponent`; zero where `self` is zero and the
/// exponent real and not negative.
at::Tensor pow_backward_exponent(
    const at::Tensor& grad,
    const at::Tensor& self,
    const at::Tensor& exponent,
    const at::Tensor& result);

/// The same for a base that is a scalar.
at::Tensor pow_backward_exponent(
    const at::Tensor& grad,
    const at::Scalar& base,
    const at::Tensor& exponent,
    const at::Tensor& result);

/// Gradient of `self` in clamp: passes between the bounds. What a tie does follows torch: up to
/// 2.13 it passes, from 2.14 it does not.
at::Tensor clamp_backward(
    const at::Tensor& grad,
    const at::Tensor& self,
    const std::optional<at::Scalar>& min,
    const std::optional<at::Scalar>& max);

/// The same with bounds that are tensors, undefined where there is none. From torch 2.14 a tie is
/// shared with the bound.
at::Tensor clamp_backward(
    const at::Tensor& grad, const at::Tensor& self, const at::Tensor& min, const at::Tensor& max);

/// Gradients of the bounds of clamp; undefined for a bound that is or that the mask leaves out.
std::tuple<at::Tensor, at::Tensor> clamp_backward_min_max(
    const at::Tensor& grad,
    const at::Tensor& self,
    const at::Tensor& min,
    const at::Tensor& max,
    const std::array<bool, 2>& grad_input_mask);

/// Tangent of clamp: that of whichever argument is the result. An undefined tangent is zero.
at::Tensor clamp_jvp(
    const at::Tensor& self_p,
    const at::Tensor& self_t,
    const at::Tensor& min_p,
    const at::Tensor& min_t,
    const at::Tensor& max_p,
    const at::Tensor& max_t);

/// Gradient of angle: zero for a real `self` and at zero.
at::Tensor angle_backward(const at::Tensor& grad, const at::Tensor& self);

/// Gradients of `atan2(self, other)`, zero at the origin; undefined where the mask says so.
std::tuple<at::Tensor, at::Tensor> atan2_backward(
    const at::Tensor& grad,
    const at::Tensor& self,
    const at::Tensor& other,
    std::array<bool, 2> output_mask);

/// Gradients of modulus and angle of `result = polar(abs, angle)`; undefined if `grad` is.
std::tuple<at::Tensor, at::Tensor> polar_backward(const at::Tensor& grad, const at::Tensor& result);

/// Gradient of deg2rad.
at::Tensor deg2rad_backward(const at::Tensor& grad);

/// Gradient of rad2deg.
at::Tensor rad2deg_backward(const at::Tensor& grad);

/// Gradient of `result = special_i1(self)`.
at::Tensor i1_backward(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& result);

/// Gradient of `result = special_i1e(self)`.
at::Tensor i1e_backward(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& result);

/// Gradient of log1p; raises for a sparse `self`, whose gradient would be dense.
at::Tensor log1p_backward(const at::Tensor& grad, const at::Tensor& self);

/// Gradient of the multivariate log-gamma function of dimension `p`.
at::Tensor mvlgamma_backward(const at::Tensor& grad, const at::Tensor& self, int64_t p);

/// Gradient of logit in functions that differentiate again. Outside [eps, 1 - eps] it is zero;
/// without eps, outside [0, 1] it is NaN.
at::Tensor infinitely_differentiable_logit_backward(
    const at::Tensor& grad, const at::Tensor& self, std::optional<double> eps);

/// Gradient of `sgn = sgn(x)` and, as the derivative is its own adjoint, the tangent for the
/// tangent `gx`; zero for a real `x` and at zero.
at::Tensor sgn_backward(const at::Tensor& x, const at::Tensor& gx, const at::Tensor& sgn);

/// Gradient of sinc; zero at zero.
at::Tensor sinc_backward(const at::Tensor& grad, const at::Tensor& self);

} // namespace derivatives
} // namespace v1
} // namespace torchext
