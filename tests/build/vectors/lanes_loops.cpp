// SPDX-License-Identifier: BSD-3-Clause
#include "lanes.h"

#include <ATen/cpu/vec/vec.h>

namespace CPU_CAPABILITY {

int64_t add_lanes(float* values, int64_t size) {
  using V = at::vec::Vectorized<float>;
  const V lanes(static_cast<float>(V::size()));
  for (int64_t i = 0; i < size; i += V::size()) {
    const int64_t left = std::min<int64_t>(V::size(), size - i);
    (V::loadu(values + i, left) + lanes).store(values + i, static_cast<int>(left));
  }
  return V::size();
}

} // namespace CPU_CAPABILITY
