// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>

namespace myns::native {

inline void check_neg(const at::Tensor& self) {
  TORCH_CHECK(
      self.scalar_type() != at::kBool,
      "myns::neg: self must not be bool, got bool (logical_not inverts a mask)");
}

} // namespace myns::native
