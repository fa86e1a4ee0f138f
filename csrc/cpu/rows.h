// SPDX-License-Identifier: BSD-3-Clause
//
// Sums that the kernels over rows share.
#pragma once

#include <torchext/vectorize.h> // first

#include <c10/macros/Macros.h>

#include <algorithm>
#include <cstdint>

namespace myns::native {

constexpr int64_t kGrain = 32768; // elements that are worth a thread of their own

/// Folds `term(i)` for i < n with `combine`. The independent lanes are what lets a compiler
/// vectorise it: it may not reorder floating point additions by itself.
template <typename Acc, typename Term, typename Combine>
C10_ALWAYS_INLINE Acc fold(int64_t n, Acc initial, const Term& term, const Combine& combine) {
  constexpr int kLanes = 16;
  Acc lanes[kLanes];
  std::fill(lanes, lanes + kLanes, initial);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int j = 0; j < kLanes; ++j) {
      lanes[j] = combine(lanes[j], term(i + j));
    }
  }
  for (int j = 0; i < n; ++i, ++j) {
    lanes[j] = combine(lanes[j], term(i));
  }
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int j = 0; j < width; ++j) {
      lanes[j] = combine(lanes[j], lanes[j + width]);
    }
  }
  return lanes[0];
}

template <typename Acc, typename Term>
C10_ALWAYS_INLINE Acc sum(int64_t n, const Term& term) {
  return fold(n, Acc(0), term, [](Acc a, Acc b) { return a + b; });
}

} // namespace myns::native
