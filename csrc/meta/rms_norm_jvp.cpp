// SPDX-License-Identifier: BSD-3-Clause
//
// No Meta kernel of its own: built of ATen operators, for every device and every order of autograd.

#include <torchext/precompiled.h>

#include "rms_norm.h"

#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <myns/kernels/rms_norm_jvp.h>

// With r = 1 / rms(x): d(x * r) = dx * r - x * r^3 * mean(x * dx).
at::Tensor myns::native::rms_norm_jvp(
    const at::Tensor& input,
    const at::Tensor& input_t,
    const std::optional<at::Tensor>& weight,
    const std::optional<at::Tensor>& weight_t,
    double eps) {
  check_rms_norm("myns::rms_norm_jvp", input, weight);
  check_shape("myns::rms_norm_jvp", "input_t", input_t, input.sym_sizes());
  const at::ScalarType dtype = at::toOpMathType(input.scalar_type());
  const at::Tensor x = input.to(dtype);
  const at::Tensor dx = input_t.to(dtype);
  const at::Tensor r = ((x * x).mean(-1, /*keepdim=*/true) + eps).rsqrt();
  at::Tensor result = dx * r - x * (r.pow(3) * (x * dx).mean(-1, /*keepdim=*/true));
  if (weight.has_value() && weight->defined()) {
    result = result * weight->to(dtype);
  }
  if (weight_t.has_value() && weight_t->defined()) {
    result = result + x * r * weight_t->to(dtype);
  }
  return result.to(input.scalar_type());
}
