// SPDX-License-Identifier: BSD-3-Clause

#include "checks.h"

#include <ATen/ops/empty.h>
#include <c10/core/SymIntArrayRef.h>
#include <myns/kernels/silu_and_mul.h>

at::Tensor myns::native::silu_and_mul_meta(const at::Tensor& input) {
  constexpr auto op = "myns::silu_and_mul";
  check_even_rows(op, "input", input);
  c10::SymDimVector sizes(input.sym_sizes().begin(), input.sym_sizes().end());
  sizes.back() = input.sym_size(-1) / 2;
  return at::empty_symint(sizes, input.options());
}
