// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/ops/add.h>
#include <sample_ops/kernels/shift.h>

#include "factors.h"

at::Tensor sample_ops::native::shift_cpu(const at::Tensor& self, double offset) {
  return at::add(self, offset, sample_ops::kOne);
}
