// SPDX-License-Identifier: BSD-3-Clause
//
// Integers that are known once a call, as Python computes with them: exactly, and what an int64 does
// not have, as 2 ** 64 and 2 ** -1 are, in double precision.
#pragma once

#include <torchext/fused/functions.h>

#include <cmath>
#include <cstdint>
#include <type_traits>

namespace torchext {
inline namespace v1 {
namespace fused {

struct Integer {
  Integer(bool value) : Integer(static_cast<int64_t>(value)) {}
  Integer(int64_t value) : real(static_cast<double>(value)), integer(value), is_whole(true) {}
  Integer(double value) : real(value) {}

  operator bool() const {
    return is_whole ? integer != 0 : real != 0;
  }

  double real;
  int64_t integer = 0;
  bool is_whole = false; // else it is only real
};

template <>
struct Primitives<Integer> {
  using V = Integer;
  using P = Primitives<int64_t>;
  using R = Primitives<double>;

  template <typename N>
  static V number(N value) {
    if constexpr (std::is_integral_v<N>) {
      return V(static_cast<int64_t>(value));
    } else {
      return V(value);
    }
  }

  static bool less(V a, V b) {
    return both_whole(a, b) ? a.integer < b.integer : a.real < b.real;
  }
  static bool less_equal(V a, V b) {
    return both_whole(a, b) ? a.integer <= b.integer : a.real <= b.real;
  }
  static bool greater(V a, V b) {
    return less(b, a);
  }
  static bool greater_equal(V a, V b) {
    return less_equal(b, a);
  }
  static bool equal(V a, V b) {
    return both_whole(a, b) ? a.integer == b.integer : a.real == b.real;
  }
  static bool not_equal(V a, V b) {
    return !equal(a, b);
  }
  static bool both(bool a, bool b) {
    return a && b;
  }
  static bool either(bool a, bool b) {
    return a || b;
  }
  static bool inverse(bool a) {
    return !a;
  }
  static V choose(bool condition, V then, V other) {
    return condition ? then : other;
  }
  static V as_number(bool a) {
    return V(a);
  }
  static bool isnan(V a) {
    return std::isnan(a.real);
  }
  static bool isfinite(V a) {
    return std::isfinite(a.real);
  }

  static V add(V a, V b) {
    int64_t found = 0;
    const bool has = both_whole(a, b) && !__builtin_add_overflow(a.integer, b.integer, &found);
    return has ? V(found) : V(a.real + b.real);
  }
  static V subtract(V a, V b) {
    int64_t found = 0;
    const bool has = both_whole(a, b) && !__builtin_sub_overflow(a.integer, b.integer, &found);
    return has ? V(found) : V(a.real - b.real);
  }
  static V multiply(V a, V b) {
    int64_t found = 0;
    const bool has = both_whole(a, b) && !__builtin_mul_overflow(a.integer, b.integer, &found);
    return has ? V(found) : V(a.real * b.real);
  }
  static V multiply_add(V a, V b, V c) {
    return add(multiply(a, b), c);
  }
  static V negative(V a) {
    return subtract(V(int64_t(0)), a);
  }
  static V remainder(V a, V b) {
    return both_whole(a, b) ? V(P::remainder(a.integer, b.integer))
                            : V(R::remainder(a.real, b.real));
  }
  static V floor_divide(V a, V b) {
    const bool has = both_whole(a, b) && !(b.integer == -1 && !negative(a).is_whole);
    return has ? V(P::floor_divide(a.integer, b.integer)) : V(R::floor_divide(a.real, b.real));
  }
  static V pow(V a, V b) {
    if (!both_whole(a, b) || b.integer < 0) {
      return V(std::pow(a.real, b.real));
    }
    V found(int64_t(1)), factor = a;
    for (int64_t left = b.integer; left != 0; left >>= 1) {
      found = left & 1 ? multiply(found, factor) : found;
      factor = left > 1 ? multiply(factor, factor) : factor;
    }
    return found.is_whole ? found : V(std::pow(a.real, b.real)); // rounded once
  }

  static V detach(V a) {
    return a;
  }
  static V conj(V a) {
    return a;
  }
  static bool is_below_half(V a) {
    return less(abs(a), V(0.5));
  }
  static V abs(V a) {
    return less(a, V(int64_t(0))) ? negative(a) : a;
  }
  static V sign(V a) {
    const V zero(int64_t(0));
    return V(int64_t(less(zero, a)) - int64_t(less(a, zero)));
  }
  static V maximum(V a, V b) {
    return isnan(a) ? a : isnan(b) ? b : less(a, b) ? b : a;
  }
  static V minimum(V a, V b) {
    return isnan(a) ? a : isnan(b) ? b : less(b, a) ? b : a;
  }
  static V floor(V a) {
    return a.is_whole ? a : V(std::floor(a.real));
  }
  static V ceil(V a) {
    return a.is_whole ? a : V(std::ceil(a.real));
  }
  static V round(V a) {
    return a.is_whole ? a : V(std::nearbyint(a.real));
  }
  static V trunc(V a) {
    return a.is_whole ? a : V(std::trunc(a.real));
  }

 private:
  static bool both_whole(V a, V b) {
    return a.is_whole && b.is_whole;
  }
};

} // namespace fused
} // namespace v1
} // namespace torchext
