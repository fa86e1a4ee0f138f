// SPDX-License-Identifier: BSD-3-Clause

#include "rms_norm.h"

#include <ATen/ops/empty.h>
#include <myns/kernels/rms_norm.h>

at::Tensor myns::native::rms_norm_meta(
    const at::Tensor& input, const std::optional<at::Tensor>& weight, double /*eps*/) {
  check_rms_norm("myns::rms_norm", input, weight);
  return at::empty_symint(input.sym_sizes(), input.options());
}
