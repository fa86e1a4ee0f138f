// SPDX-License-Identifier: BSD-3-Clause
//
// No Meta kernel of its own: built of ATen operators, for every device and every order of autograd.

#include <torchext/precompiled.h>

#include "checks.h"
#include "halves.h"

#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <myns/kernels/silu_and_mul_jvp.h>

at::Tensor myns::native::silu_and_mul_jvp(const at::Tensor& input, const at::Tensor& input_t) {
  constexpr auto op = "myns::silu_and_mul_jvp";
  check_even_rows(op, "input", input);
  check_shape(op, "input_t", input_t, input.sym_sizes());
  const at::ScalarType dtype = at::toOpMathType(input.scalar_type());
  const auto [gate, up] = halves_of(input.to(dtype));
  const auto [gate_t, up_t] = halves_of(input_t.to(dtype));
  const at::Tensor s = gate.sigmoid();
  const at::Tensor slope = s * (1 + gate * (1 - s)); // of silu
  const at::Tensor result = gate_t * slope * up + gate * s * up_t;
  return result.to(input.scalar_type());
}
