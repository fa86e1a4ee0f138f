// SPDX-License-Identifier: BSD-3-Clause

#include "checks.h"

#include <ATen/ops/empty.h>
#include <myns/kernels/dot.h>

at::Tensor myns::native::dot_meta(const at::Tensor& self, const at::Tensor& tensor) {
  TORCH_CHECK(self.dim() == 1, "myns::dot: self must have 1 dimension, got ", self.dim());
  TORCH_CHECK(tensor.dim() == 1, "myns::dot: tensor must have 1 dimension, got ", tensor.dim());
  TORCH_CHECK(
      tensor.scalar_type() == self.scalar_type(),
      "myns::dot: tensor must have the dtype of self, ",
      self.scalar_type(),
      ", got ",
      tensor.scalar_type());
  TORCH_CHECK(
      self.scalar_type() != at::kBool, "myns::dot: self must have a numeric dtype, got bool");
  check_shape("myns::dot", "tensor", tensor, self.sym_sizes());
  return at::empty({}, self.options());
}
