// SPDX-License-Identifier: BSD-3-Clause
//
// What a declaration of shared memory is rewritten to.
#pragma once

#include <torchext/cuda_on_host/threads.h>

#include <algorithm>
#include <cstddef>

namespace torchext::cuda_on_host {

/// The variable of a block that belongs to `key`, an object of each declaration's own.
template <typename T>
T& shared(const void* key, size_t alignment) {
  return *static_cast<T*>(shared_variable(key, sizeof(T), std::max(alignment, alignof(T))));
}

/// The memory that a launch gives a block.
template <typename T>
T* dynamic_array() {
  return static_cast<T*>(dynamic_shared());
}

} // namespace torchext::cuda_on_host
