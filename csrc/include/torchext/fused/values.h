// SPDX-License-Identifier: BSD-3-Clause
//
// What the loops of expressions compute with: numbers as values, and functions of values that may be
// real where others are complex.
#pragma once

#include <torchext/fused/call.h>
#include <torchext/fused/complex.h>

namespace torchext {
inline namespace v1 {
namespace fused {

/// A number that all elements share.
template <typename V>
C10_HOST_DEVICE TORCHEXT_ALWAYS_INLINE V value_of(const Number& given) {
  using P = Primitives<V>;
  if (given.is_integral) {
    return P::number(given.integer);
  }
  if constexpr (P::is_complex) {
    return P::number(c10::complex<double>(given.real, given.imaginary));
  } else {
    return P::number(given.real);
  }
}

/// What a function makes of values, with the functions that it is given; is_real: of real numbers,
/// which are values of complex ones here.
template <typename V, typename F, typename... Values>
C10_HOST_DEVICE TORCHEXT_ALWAYS_INLINE V
computed([[maybe_unused]] bool is_real, const F& function, const Values&... values) {
  if constexpr (Primitives<V>::is_complex) {
    if (is_real) {
      return Primitives<V>::of_reals(function, values...);
    }
  }
  return function(Functions<V>(), values...);
}

} // namespace fused
} // namespace v1
} // namespace torchext
