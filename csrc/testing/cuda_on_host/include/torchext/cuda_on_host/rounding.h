// SPDX-License-Identifier: BSD-3-Clause
//
// Results and conversions that are rounded another way than C++ does it, which is to the nearest.
#pragma once

#include <torchext/cuda_on_host/threads.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace torchext::cuda_on_host {

/// The suffixes of CUDA's names: _rn, _rz, _rd, _ru.
enum class Rounding { kNearest, kZero, kDown, kUp };

enum class Operation { kAdd, kSubtract, kMultiply, kDivide, kMultiplyAdd, kSquareRoot };

TORCHEXT_CUDA_ON_HOST_API float rounded(
    Operation operation, Rounding rounding, float a, float b = 0, float c = 0);
TORCHEXT_CUDA_ON_HOST_API double rounded(
    Operation operation, Rounding rounding, double a, double b = 0, double c = 0);
TORCHEXT_CUDA_ON_HOST_API float to_float(Rounding rounding, double value);
TORCHEXT_CUDA_ON_HOST_API float to_float(Rounding rounding, long long value);
TORCHEXT_CUDA_ON_HOST_API float to_float(Rounding rounding, unsigned long long value);
TORCHEXT_CUDA_ON_HOST_API double to_double(Rounding rounding, long long value);
TORCHEXT_CUDA_ON_HOST_API double to_double(Rounding rounding, unsigned long long value);

/// The same, which calls nothing where C++ rounds so.
template <Operation operation, Rounding rounding, typename Real>
Real result_of(Real a, Real b = 0, Real c = 0) {
  if constexpr (rounding != Rounding::kNearest) {
    return rounded(operation, rounding, a, b, c);
  } else if constexpr (operation == Operation::kAdd) {
    return a + b;
  } else if constexpr (operation == Operation::kSubtract) {
    return a - b;
  } else if constexpr (operation == Operation::kMultiply) {
    return a * b;
  } else if constexpr (operation == Operation::kDivide) {
    return a / b;
  } else if constexpr (operation == Operation::kMultiplyAdd) {
    return std::fma(a, b, c);
  } else {
    return std::sqrt(a);
  }
}

template <typename To, typename From>
To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(To));
  return to;
}

/// Rounded to odd: what is inexact ends in a one, so that rounding it again, to a type with two bits
/// less or fewer, gives what rounding once would have (Boldo and Melquiond, "Emulation of FMA and
/// Correctly Rounded Sums: Proved Algorithms Using Rounding to Odd").
template <typename Real, typename Bits>
Real odd(Real nearest, bool is_exact, bool is_too_far) {
  const auto bits = bit_cast<Bits>(nearest);
  return is_exact ? nearest : bit_cast<Real>((is_too_far ? bits - 1 : bits) | 1);
}

inline float odd_float(double value) {
  const auto nearest = static_cast<float>(value);
  const bool is_exact = nearest == value || value != value;
  const double distance = static_cast<double>(nearest) < 0 ? -nearest : nearest;
  return odd<float, uint32_t>(nearest, is_exact, distance > (value < 0 ? -value : value));
}

inline float odd_float(float value) {
  return value;
}

/// Of an integer.
template <typename Integer>
std::enable_if_t<std::is_integral_v<Integer>, float> odd_float(Integer value) {
  const auto nearest = static_cast<double>(value);
  const auto back = static_cast<__int128>(nearest);
  const auto exact = static_cast<__int128>(value);
  const bool is_too_far = (back < 0 ? -back : back) > (exact < 0 ? -exact : exact);
  return odd_float(odd<double, uint64_t>(nearest, back == exact, is_too_far));
}

/// a * b + c of numbers whose products a double holds.
inline float odd_multiply_add(float a, float b, float c) {
  const double product = static_cast<double>(a) * b;
  const double addend = c;
  const double sum = product + addend;
  const double part = sum - product;
  const double error = (product - (sum - part)) + (addend - part);
  const bool is_exact = error == 0 || error != error; // not a number where something is infinite
  return odd_float(odd<double, uint64_t>(sum, is_exact, (error < 0) != (sum < 0)));
}

/// Kept in the range of an integer, once it is whole; 0 for nan.
template <typename Integer, typename Real>
Integer to_integer(Real value) {
  using Limits = std::numeric_limits<Integer>;
  if (value != value) {
    return 0;
  }
  if (value <= static_cast<Real>(Limits::min())) {
    return Limits::min();
  }
  return value >= static_cast<Real>(Limits::max()) ? Limits::max() : static_cast<Integer>(value);
}

} // namespace torchext::cuda_on_host
