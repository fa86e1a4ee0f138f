// SPDX-License-Identifier: BSD-3-Clause
#include "lanes.h"

#include <ATen/cpu/vec/vec.h>

namespace CPU_CAPABILITY {

void add_capability(float* values, int64_t size) {
  using V = at::vec::Vectorized<float>;
#if defined(CPU_CAPABILITY_AVX512)
  const V own(2);
#elif defined(CPU_CAPABILITY_AVX2)
  const V own(1);
#else
  const V own(0);
#endif
  for (int64_t i = 0; i < size; i += V::size()) {
    const int64_t left = std::min<int64_t>(V::size(), size - i);
    (V::loadu(values + i, left) + own).store(values + i, static_cast<int>(left));
  }
}

} // namespace CPU_CAPABILITY
