// SPDX-License-Identifier: BSD-3-Clause
//
// CUB's functors, of two values of any types.
#pragma once

#include <type_traits>
#include <utility>

namespace cub {

struct Sum {
  template <typename T>
  T operator()(const T& a, const T& b) const {
    return a + b;
  }
};
struct Difference {
  template <typename T>
  T operator()(const T& a, const T& b) const {
    return a - b;
  }
};
struct Max {
  template <typename T>
  T operator()(const T& a, const T& b) const {
    return a < b ? b : a;
  }
};
struct Min {
  template <typename T>
  T operator()(const T& a, const T& b) const {
    return b < a ? b : a;
  }
};
struct Equality {
  template <typename T>
  bool operator()(const T& a, const T& b) const {
    return a == b;
  }
};
struct Inequality {
  template <typename T>
  bool operator()(const T& a, const T& b) const {
    return !(a == b);
  }
};

template <typename Key, typename Value>
struct KeyValuePair {
  Key key;
  Value value;

  KeyValuePair() = default;
  KeyValuePair(const Key& key_, const Value& value_) : key(key_), value(value_) {}
  bool operator!=(const KeyValuePair& other) const {
    return !(key == other.key && value == other.value);
  }
};

/// The pair with the larger value; of equal ones that with the smaller key.
struct ArgMax {
  template <typename Pair>
  Pair operator()(const Pair& a, const Pair& b) const {
    return a.value < b.value || (a.value == b.value && b.key < a.key) ? b : a;
  }
};
struct ArgMin {
  template <typename Pair>
  Pair operator()(const Pair& a, const Pair& b) const {
    return b.value < a.value || (a.value == b.value && b.key < a.key) ? b : a;
  }
};

} // namespace cub

/// Whether a function can be called with a value: of a block's total, what comes before the block.
#define TORCHEXT_IF_CALLED(F, T) std::enable_if_t<std::is_invocable_v<F&, const T&>, int> = 0
