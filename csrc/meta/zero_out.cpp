// SPDX-License-Identifier: BSD-3-Clause

#include <ATen/ops/empty.h>
#include <myns/kernels/zero_out.h>

at::Tensor myns::native::zero_out_meta(const at::Tensor& input) {
  return at::empty_symint(input.sym_sizes(), input.options());
}
