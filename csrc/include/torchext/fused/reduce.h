// SPDX-License-Identifier: BSD-3-Clause
//
// How many values become one, on the CPU and on CUDA.
#pragma once

#include <torchext/fused/functions.h>
#include <torchext/fused/rows.h>

#include <limits>

namespace torchext {
inline namespace v1 {
namespace fused {

template <Reduce how, typename V>
C10_HOST_DEVICE TORCHEXT_ALWAYS_INLINE V reduced(V a, V b) {
  if constexpr (how == Reduce::kSum) {
    return Primitives<V>::add(a, b);
  } else if constexpr (how == Reduce::kProduct) {
    return Primitives<V>::multiply(a, b);
  } else if constexpr (how == Reduce::kLargest) {
    return Primitives<V>::maximum(a, b);
  } else {
    return Primitives<V>::minimum(a, b);
  }
}

/// What changes no value that it is reduced with.
template <Reduce how, typename S>
C10_HOST_DEVICE TORCHEXT_ALWAYS_INLINE S neutral() {
  constexpr S infinity = std::numeric_limits<S>::infinity();
  switch (how) {
    case Reduce::kSum:
      return S(0);
    case Reduce::kProduct:
      return S(1);
    case Reduce::kLargest:
      return -infinity;
    default:
      return infinity;
  }
}

} // namespace fused
} // namespace v1
} // namespace torchext
