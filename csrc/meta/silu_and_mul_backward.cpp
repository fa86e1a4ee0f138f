// SPDX-License-Identifier: BSD-3-Clause

#include "checks.h"

#include <ATen/ops/empty.h>
#include <c10/core/SymIntArrayRef.h>
#include <myns/kernels/silu_and_mul_backward.h>

at::Tensor myns::native::silu_and_mul_backward_meta(
    const at::Tensor& grad_output, const at::Tensor& input) {
  constexpr auto op = "myns::silu_and_mul_backward";
  check_has_rows(op, "input", input);
  check_floating(op, "input", input);
  check_floating(op, "grad_output", grad_output);
  const c10::SymInt last = input.sym_size(-1);
  TORCH_CHECK(
      (last % 2).sym_eq(0).expect_true(__FILE__, __LINE__),
      op,
      ": input must have an even last dimension, got ",
      last);
  c10::SymDimVector sizes(input.sym_sizes().begin(), input.sym_sizes().end());
  sizes.back() = last / 2;
  check_shape(op, "grad_output", grad_output, sizes);
  return at::empty_symint(input.sym_sizes(), input.options());
}
