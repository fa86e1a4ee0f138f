// SPDX-License-Identifier: BSD-3-Clause
//
// No Meta kernel of its own: built of ATen operators, for every device and every order of autograd.

#include "checks.h"

#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <myns/kernels/silu_and_mul_double_backward.h>

at::Tensor myns::native::silu_and_mul_double_backward(
    const at::Tensor& grad_grad_input, const at::Tensor& grad_output, const at::Tensor& input) {
  constexpr auto op = "myns::silu_and_mul_double_backward";
  check_even_rows(op, "input", input);
  check_shape(op, "grad_grad_input", grad_grad_input, input.sym_sizes());
  const at::ScalarType dtype = at::toOpMathType(input.scalar_type());
  const std::vector<at::Tensor> halves = input.to(dtype).chunk(2, -1);
  const std::vector<at::Tensor> grads = grad_grad_input.to(dtype).chunk(2, -1);
  const at::Tensor grad = grad_output.to(dtype);
  const at::Tensor& gate = halves[0];
  const at::Tensor s = gate.sigmoid();
  const at::Tensor slope = s * (1 + gate * (1 - s)); // of silu
  const at::Tensor curvature = s * (1 - s) * (2 + gate * (1 - 2 * s));
  const at::Tensor for_gate = grad * (grads[0] * curvature * halves[1] + grads[1] * slope);
  const at::Tensor for_up = grad * grads[0] * slope;
  return at::cat({for_gate, for_up}, -1).to(input.scalar_type());
}
