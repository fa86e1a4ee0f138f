// SPDX-License-Identifier: BSD-3-Clause
//
// What a declaration of shared memory is rewritten to.
#pragma once

#include <torchext/cuda_on_host/threads.h>

#include <algorithm>
#include <cstddef>
#include <type_traits>

namespace torchext::cuda_on_host {

/// The variable of a block that belongs to a declaration: `Key` is a type of the declaration's own,
/// and what `key` returns, if anything, the alignment that it asks for.
template <typename T, typename Key>
T& shared(Key key) {
  static const char address = 0;
  size_t alignment = alignof(T);
  if constexpr (!std::is_void_v<decltype(key())>) {
    alignment = std::max(alignment, key());
  }
  return *static_cast<T*>(shared_variable(&address, sizeof(T), alignment));
}

/// The memory that a launch gives a block.
template <typename T>
T* dynamic_array() {
  return static_cast<T*>(dynamic_shared());
}

/// The same as an array that is declared outside of functions.
template <typename T>
struct DynamicArray {
  __attribute__((always_inline)) operator T*() const {
    return dynamic_array<T>();
  }
  template <typename Other>
  __attribute__((always_inline)) explicit operator Other*() const {
    return reinterpret_cast<Other*>(dynamic_array<T>());
  }
};

} // namespace torchext::cuda_on_host
