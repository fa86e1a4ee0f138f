// SPDX-License-Identifier: BSD-3-Clause
//
// Argument checks that several operators share. Messages name operator, argument, what was
// expected and what came.
#pragma once

#include <ATen/core/Tensor.h>
#include <torchext/shape.h>

namespace myns::native {

using torchext::shape::check_floating;
using torchext::shape::check_shape;

inline void check_has_rows(const char* op, const char* argument, const at::Tensor& tensor) {
  TORCH_CHECK(
      tensor.dim() >= 1, op, ": ", argument, " must have at least 1 dimension, got a 0-dim tensor");
}

/// Of an operator whose last dimension holds two halves.
inline void check_even_rows(const char* op, const char* argument, const at::Tensor& tensor) {
  check_has_rows(op, argument, tensor);
  check_floating(op, argument, tensor);
  const c10::SymInt last = tensor.sym_size(-1);
  TORCH_CHECK(
      (last % 2).sym_eq(0).expect_true(__FILE__, __LINE__),
      op,
      ": ",
      argument,
      " must have an even last dimension, got ",
      last);
}

} // namespace myns::native
