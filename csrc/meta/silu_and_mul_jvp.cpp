// SPDX-License-Identifier: BSD-3-Clause
//
// No Meta kernel of its own: built of ATen operators, for every device and every order of autograd.

#include "checks.h"

#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <myns/kernels/silu_and_mul_jvp.h>

at::Tensor myns::native::silu_and_mul_jvp(const at::Tensor& input, const at::Tensor& input_t) {
  constexpr auto op = "myns::silu_and_mul_jvp";
  check_even_rows(op, "input", input);
  check_shape(op, "input_t", input_t, input.sym_sizes());
  const at::ScalarType dtype = at::toOpMathType(input.scalar_type());
  const std::vector<at::Tensor> halves = input.to(dtype).chunk(2, -1);
  const std::vector<at::Tensor> tangents = input_t.to(dtype).chunk(2, -1);
  const at::Tensor& gate = halves[0];
  const at::Tensor s = gate.sigmoid();
  const at::Tensor slope = s * (1 + gate * (1 - s)); // of silu
  const at::Tensor result = tangents[0] * slope * halves[1] + gate * s * tangents[1];
  return result.to(input.scalar_type());
}
