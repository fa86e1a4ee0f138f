// SPDX-License-Identifier: BSD-3-Clause
//
// No Meta kernel of its own: built of ATen operators, for every device and every order of autograd.

#include <torchext/precompiled.h>

#include "rms_norm.h"

#include <ATen/ExpandUtils.h>
#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros_like.h>
#include <myns/kernels/rms_norm_double_backward.h>
#include <myns/kernels/rms_norm_jvp.h>

namespace {

at::Tensor row_mean(const at::Tensor& t) {
  return t.mean(-1, /*keepdim=*/true);
}

// The tensors in the dtype of the computation; u, v and w may be undefined.
struct Values {
  at::Tensor grad; // grad_output
  at::Tensor x;
  at::Tensor r; // 1 / rms(x)
  at::Tensor u; // gradient of grad_input
  at::Tensor v; // gradient of grad_weight
  at::Tensor w;
};

Values compute_values(
    const std::optional<at::Tensor>& u,
    const std::optional<at::Tensor>& v,
    const at::Tensor& grad_output,
    const at::Tensor& input,
    const std::optional<at::Tensor>& weight,
    double eps) {
  const at::ScalarType dtype = at::toOpMathType(input.scalar_type());
  const auto convert = [dtype](const std::optional<at::Tensor>& t) {
    return t.has_value() && t->defined() ? t->to(dtype) : at::Tensor();
  };
  Values values;
  values.grad = grad_output.to(dtype);
  values.x = input.to(dtype);
  values.r = (row_mean(values.x * values.x) + eps).rsqrt();
  values.u = convert(u);
  values.v = convert(v);
  values.w = convert(weight);
  return values;
}

// With g = grad * w, the loss <u, grad_input> + <v, grad_weight> of a row of n columns is
//   n * (r * mean(g * u) - r^3 * mean(g * x) * mean(x * u) + r * mean(grad * v * x)).
at::Tensor gradient_for_input(const Values& t) {
  const at::Tensor r3 = t.r.pow(3);
  at::Tensor result = at::zeros_like(t.x);
  if (t.u.defined()) {
    const at::Tensor g = t.w.defined() ? t.grad * t.w : t.grad;
    const at::Tensor gx = row_mean(g * t.x);
    const at::Tensor xu = row_mean(t.x * t.u);
    const at::Tensor along_x = 3 * gx * xu * t.r.pow(2) - row_mean(g * t.u);
    result = r3 * (along_x * t.x - xu * g - gx * t.u);
  }
  if (t.v.defined()) {
    const at::Tensor gv = t.grad * t.v;
    result = result + t.r * gv - r3 * row_mean(gv * t.x) * t.x;
  }
  return result;
}

at::Tensor gradient_for_weight(const Values& t) {
  if (!t.u.defined()) {
    return at::zeros_like(t.w);
  }
  const at::Tensor direction = t.r * t.u - t.r.pow(3) * row_mean(t.x * t.u) * t.x;
  return at::sum_to(t.grad * direction, t.w.sym_sizes());
}

} // namespace

std::tuple<at::Tensor, at::Tensor, at::Tensor> myns::native::rms_norm_double_backward(
    const std::optional<at::Tensor>& grad_grad_input,
    const std::optional<at::Tensor>& grad_grad_weight,
    const at::Tensor& grad_output,
    const at::Tensor& input,
    const std::optional<at::Tensor>& weight,
    double eps,
    std::array<bool, 3> output_mask) {
  const Values values =
      compute_values(grad_grad_input, grad_grad_weight, grad_output, input, weight, eps);
  if (!values.u.defined() && !values.v.defined()) {
    return {};
  }
  at::Tensor grad_grad_output;
  at::Tensor grad_input;
  at::Tensor grad_weight;
  if (output_mask[0]) {
    const at::Tensor u = values.u.defined() ? values.u : at::zeros_like(values.x);
    grad_grad_output =
        rms_norm_jvp(values.x, u, values.w, values.v, eps).to(grad_output.scalar_type());
  }
  if (output_mask[1]) {
    grad_input = gradient_for_input(values).to(input.scalar_type());
  }
  if (output_mask[2] && values.w.defined()) {
    grad_weight = gradient_for_weight(values).to(weight->scalar_type());
  }
  return {grad_grad_output, grad_input, grad_weight};
}
