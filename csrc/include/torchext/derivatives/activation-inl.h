// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <torchext/derivatives/activation.h>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <c10/util/Exception.h>

#include <cmath>

namespace torchext {
inline namespace v1 {
namespace derivatives {

namespace {

using at::Tensor;

// The slope of the logistic function in terms of its value.
Tensor logistic_slope(const Tensor& sigmoid) {
  return sigmoid * (1 - sigmoid);
}

} // namespace

at::Tensor infinitely_differentiable_silu_backward(
    const at::Tensor& grad_output, const at::Tensor& input) {
  const Tensor sigmoid = input.sigmoid();
  return grad_output * (sigmoid + input * logistic_slope(sigmoid));
}

at::Tensor infinitely_differentiable_mish_backward(
    const at::Tensor& grad_output, const at::Tensor& input) {
  // x tanh(s(x)) with s = softplus, s' = sigmoid.
  const Tensor tanh = at::softplus(input).tanh();
  return grad_output * (tanh + input * input.sigmoid() * (1 - tanh * tanh));
}

namespace {

// x Phi(x), with the density phi: Phi' = phi and phi' = -x phi, so the curvature is (2 - x^2) phi.
Tensor gelu_curvature(const Tensor& x) {
  const double peak = 0.5 * M_SQRT1_2 * M_2_SQRTPI;
  return peak * (x.square() / -2).exp() * (2 - x.square());
}

// x (1 + tanh u) / 2 with u = a (x + b x^3).
Tensor gelu_tanh_curvature(const Tensor& x) {
  const double a = M_SQRT2 * M_2_SQRTPI * 0.5;
  const double b = 0.044715;
  const Tensor square = x.square();
  const Tensor tanh = (a * (x + b * square * x)).tanh();
  const Tensor slope = a * (1 + 3 * b * square); // u'
  // u'' = 6 a b x, and tanh'' = -2 tanh tanh'.
  const Tensor bend = x * (3 * a * b * x - tanh * slope.square());
  return (1 - tanh.square()) * (slope + bend);
}

} // namespace

at::Tensor gelu_double_backward(
    const at::Tensor& ggI,
    const at::Tensor& gO,
    const at::Tensor& input,
    std::string_view approximate) {
  TORCH_CHECK(
      approximate == "none" || approximate == "tanh",
      "gelu: approximate must be \"none\" or \"tanh\", got \"",
      approximate,
      "\"");
  const bool is_exact = approximate == "none";
  return ggI * gO * (is_exact ? gelu_curvature(input) : gelu_tanh_curvature(input));
}

at::Tensor elu_double_backward(
    const at::Tensor& grad,
    const at::Tensor& grad_output,
    const at::Scalar& alpha,
    const at::Scalar& scale,
    const at::Scalar& input_scale,
    bool is_result,
    const at::Tensor& self_or_result) {
  const Tensor is_curved = self_or_result < 0;
  Tensor curvature = grad * grad_output * input_scale;
  if (!is_result) {
    // Clamped, as the exponential of large inputs overflows and its product with zero is NaN.
    const Tensor exponential = (self_or_result.clamp_max(0) * input_scale).exp();
    curvature = curvature * exponential * input_scale * alpha * scale;
  }
  return curvature * is_curved.to(curvature.scalar_type());
}

at::Tensor log_sigmoid_double_backward(const at::Tensor& grad, const at::Tensor& input) {
  return grad * -logistic_slope(input.sigmoid());
}

at::Tensor softplus_double_backward(
    const at::Tensor& grad,
    const at::Tensor& input,
    const at::Scalar& beta,
    const at::Scalar& threshold) {
  const Tensor x = input * beta;
  const Tensor is_curved = (x < threshold).to(grad.scalar_type());
  return grad * logistic_slope(x.sigmoid()) * is_curved * beta;
}

at::Tensor softmax_double_backward(
    const at::Tensor& grad, const at::Tensor& grad_output, int64_t dim, const at::Tensor& output) {
  // <grad, y (g - <g, y>)> by y; the inner products are along `dim`.
  const Tensor g_dot_y = (grad_output * output).sum(dim, /*keepdim=*/true);
  const Tensor grad_dot_y = (grad * output).sum(dim, /*keepdim=*/true);
  return grad * (grad_output - g_dot_y) - grad_dot_y * grad_output;
}

namespace {

// The two halves of what enters glu: its linear part, and its gate with the gate's slope.
struct Halves {
  Tensor linear;
  Tensor gate;
  Tensor gate_slope;
};

Halves halves_of(const Tensor& input, int64_t dim) {
  const auto parts = input.chunk(2, dim);
  Tensor gate = parts[1].sigmoid();
  return {parts[0], gate, logistic_slope(gate)};
}

} // namespace

at::Tensor glu_double_backward(
    const at::Tensor& grad, const at::Tensor& grad_output, const at::Tensor& input, int64_t dim) {
  // glu_backward is g (s, a s') for halves a, b and s = sigmoid(b).
  const Halves of = halves_of(input, dim);
  const auto grads = grad.chunk(2, dim);
  const Tensor to_linear = grads[1] * of.gate_slope;
  const Tensor gate_curvature = of.gate_slope * (1 - 2 * of.gate);
  const Tensor to_gate = grads[0] * of.gate_slope + grads[1] * of.linear * gate_curvature;
  return at::cat({grad_output * to_linear, grad_output * to_gate}, dim);
}

at::Tensor glu_double_backward_grad_output(
    const at::Tensor& grad, const at::Tensor& input, int64_t dim) {
  const Halves of = halves_of(input, dim);
  const auto grads = grad.chunk(2, dim);
  return grads[0] * of.gate + grads[1] * of.linear * of.gate_slope;
}

} // namespace derivatives
} // namespace v1
} // namespace torchext
