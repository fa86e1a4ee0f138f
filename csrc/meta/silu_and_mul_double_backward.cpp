// SPDX-License-Identifier: BSD-3-Clause
//
// No Meta kernel of its own: built of ATen operators, for every device and every order of autograd.

#include <torchext/precompiled.h>

#include "checks.h"
#include "halves.h"

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
  const auto [gate, up] = halves_of(input.to(dtype));
  const auto [grad_gate, grad_up] = halves_of(grad_grad_input.to(dtype));
  const at::Tensor grad = grad_output.to(dtype);
  const at::Tensor s = gate.sigmoid();
  const at::Tensor slope = s * (1 + gate * (1 - s)); // of silu
  const at::Tensor curvature = s * (1 - s) * (2 + gate * (1 - 2 * s));
  const at::Tensor for_gate = grad * (grad_gate * curvature * up + grad_up * slope);
  const at::Tensor for_up = grad * grad_gate * slope;
  return at::cat({for_gate, for_up}, -1).to(input.scalar_type());
}
