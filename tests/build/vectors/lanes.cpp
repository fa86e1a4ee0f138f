// SPDX-License-Identifier: BSD-3-Clause
#include "lanes.h"

#include <vectors/kernels.h>

namespace vectors::native {

at::Tensor capability_cpu(const at::Tensor& self) {
  at::Tensor found = self.to(at::kFloat).clone(at::MemoryFormat::Contiguous);
  TORCHEXT_VECTORIZED(add_capability)(found.mutable_data_ptr<float>(), found.numel());
  return found;
}

} // namespace vectors::native
