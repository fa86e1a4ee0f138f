// SPDX-License-Identifier: BSD-3-Clause

#include "checks.h"

#include <ATen/ops/empty.h>
#include <c10/core/WrapDimMinimal.h>
#include <myns/kernels/softmax.h>

at::Tensor myns::native::softmax_meta(const at::Tensor& self, int64_t dim) {
  check_floating("myns::softmax", "self", self);
  c10::maybe_wrap_dim(dim, self.dim()); // raises where dim is out of range
  return at::empty_symint(self.sym_sizes(), self.options());
}
