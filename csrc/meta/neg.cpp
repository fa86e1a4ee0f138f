// SPDX-License-Identifier: BSD-3-Clause

#include <myns/kernels/neg.h>

void myns::meta::structured_neg::meta(const at::Tensor& self) {
  TORCH_CHECK(
      self.scalar_type() != at::kBool,
      "myns::neg: self must not be bool, got bool (logical_not inverts a mask)");
  build_borrowing_unary_op(maybe_get_output(), self);
}
