// SPDX-License-Identifier: BSD-3-Clause
//
// Argument checks that several operators share. Messages name operator, argument, what was
// expected and what came.
#pragma once

#include <ATen/core/Tensor.h>

namespace myns::native {

inline void check_floating(const char* op, const char* argument, const at::Tensor& tensor) {
  TORCH_CHECK(
      at::isFloatingType(tensor.scalar_type()),
      op,
      ": ",
      argument,
      " must have a floating point dtype, got ",
      tensor.scalar_type());
}

inline void check_has_rows(const char* op, const char* argument, const at::Tensor& tensor) {
  TORCH_CHECK(
      tensor.dim() >= 1, op, ": ", argument, " must have at least 1 dimension, got a 0-dim tensor");
}

inline void check_shape(
    const char* op, const char* argument, const at::Tensor& tensor, c10::SymIntArrayRef expected) {
  bool same = tensor.dim() == static_cast<int64_t>(expected.size());
  for (size_t i = 0; same && i < expected.size(); ++i) {
    // On symbols a runtime assertion rather than a guard.
    same = tensor.sym_sizes()[i].sym_eq(expected[i]).expect_true(__FILE__, __LINE__);
  }
  TORCH_CHECK(
      same, op, ": ", argument, " must have shape ", expected, ", got ", tensor.sym_sizes());
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
