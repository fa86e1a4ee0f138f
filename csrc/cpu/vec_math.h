// SPDX-License-Identifier: BSD-3-Clause
//
// Elementary functions without branches or table look-ups, which compilers vectorise for whatever
// instruction set they build for. Accurate to about one unit in the last place.
#pragma once

#include <c10/macros/Macros.h>
#include <c10/util/bit_cast.h>

#include <cstdint>

namespace myns::native {

template <typename T>
struct ExpConstants;

template <>
struct ExpConstants<float> {
  using Bits = uint32_t;
  static constexpr float kLow = -105.0f, kHigh = 89.0f; // exp is 0 below, infinite above
  static constexpr float kLn2High = 0.693145751953125f, kLn2Low = 1.42860682030941723212e-6f;
  static constexpr float kRound = 12582912.0f; // 1.5 * 2^23: adding it rounds to an integer
  static constexpr int kBias = 127, kMantissaBits = 23, kTerms = 7;
};

template <>
struct ExpConstants<double> {
  using Bits = uint64_t;
  static constexpr double kLow = -746.0, kHigh = 710.0;
  static constexpr double kLn2High = 6.93145751953125e-1, kLn2Low = 1.42860682030941723212e-6;
  static constexpr double kRound = 6755399441055744.0; // 1.5 * 2^52
  static constexpr int kBias = 1023, kMantissaBits = 52, kTerms = 13;
};

/// 2^n for an integral `n` within the exponents of normal numbers.
template <typename T>
C10_ALWAYS_INLINE T pow2(T n) {
  using C = ExpConstants<T>;
  // The sum has n + bias in its lowest bits, which the shift makes the exponent.
  const auto bits = c10::bit_cast<typename C::Bits>(n + (C::kRound + C::kBias));
  return c10::bit_cast<T>(bits << C::kMantissaBits);
}

template <typename T>
C10_ALWAYS_INLINE T vec_exp(T x) {
  using C = ExpConstants<T>;
  constexpr T kLog2E = static_cast<T>(1.44269504088896340736);
  x = x < C::kLow ? C::kLow : x; // NaN passes both
  x = x > C::kHigh ? C::kHigh : x;
  const T n = (x * kLog2E + C::kRound) - C::kRound;
  const T r = (x - n * C::kLn2High) - n * C::kLn2Low; // |r| <= ln(2) / 2
  T sum = 1;
  for (int k = C::kTerms; k > 0; --k) { // Taylor's, from the smallest term
    sum = sum * r * (T(1) / k) + 1;
  }
  // Two factors: 2^n itself is out of range where the result is denormal or infinite.
  const T half = (n * T(0.5) + C::kRound) - C::kRound;
  return sum * pow2(half) * pow2(n - half);
}

} // namespace myns::native
