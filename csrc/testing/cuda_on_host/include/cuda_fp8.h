// SPDX-License-Identifier: BSD-3-Clause
//
// The types of 8 bits, and two and four of them: what is too large becomes the largest number, unless
// it is asked otherwise (CUDA Math API, "FP8 Intrinsics").
#pragma once

#include <torchext/cuda_on_host/half_functions.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };
using __nv_fp8_storage_t = unsigned char;
using __nv_fp8x2_storage_t = unsigned short;
using __nv_fp8x4_storage_t = unsigned;

namespace torchext::cuda_on_host {

/// Bits of a fraction, and what the largest number, infinity and nan are. e4m3 has no infinity.
struct Fp8 {
  int fraction;
  int bias;
  unsigned char largest;
  unsigned char overflow;

  static Fp8 of(__nv_fp8_interpretation_t kind) {
    return kind == __NV_E4M3 ? Fp8{3, 7, 0x7e, 0x7f} : Fp8{2, 15, 0x7b, 0x7c};
  }

  double value(unsigned char bits) const {
    const int magnitude = bits & 0x7f;
    const int exponent = magnitude >> fraction;
    const int part = magnitude & ((1 << fraction) - 1);
    double result = exponent == 0 ? std::ldexp(part, 1 - bias - fraction)
                                  : std::ldexp(part + (1 << fraction), exponent - bias - fraction);
    if (magnitude > largest) {
      result = magnitude == overflow && overflow != 0x7f ? HUGE_VAL : NAN;
    }
    return (bits & 0x80) != 0 ? -result : result;
  }

  /// To the nearest, ties to even.
  unsigned char bits(double given, __nv_saturation_t saturation) const {
    const auto sign = static_cast<unsigned char>(std::signbit(given) ? 0x80 : 0);
    const double magnitude = std::fabs(given);
    if (magnitude != magnitude) {
      return 0x7f;
    }
    if (magnitude < std::ldexp(1.0, 17)) { // more than any of them has
      int exponent = 0;
      std::frexp(magnitude, &exponent);
      exponent = magnitude == 0 ? 1 - bias : std::max(exponent - 1, 1 - bias);
      const auto digits =
          static_cast<int>(std::nearbyint(std::ldexp(magnitude, fraction - exponent)));
      const int rounded = ((exponent + bias - 1) << fraction) + digits; // which may carry
      if (rounded <= largest) {
        return static_cast<unsigned char>(sign | rounded);
      }
    }
    return sign | (saturation == __NV_SATFINITE ? largest : overflow);
  }
};

} // namespace torchext::cuda_on_host

inline __nv_fp8_storage_t __nv_cvt_double_to_fp8(
    double a, __nv_saturation_t saturation, __nv_fp8_interpretation_t kind) {
  return ::torchext::cuda_on_host::Fp8::of(kind).bits(a, saturation);
}
inline __nv_fp8_storage_t __nv_cvt_float_to_fp8(
    float a, __nv_saturation_t saturation, __nv_fp8_interpretation_t kind) {
  return __nv_cvt_double_to_fp8(a, saturation, kind);
}
inline __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(
    __half_raw a, __nv_saturation_t saturation, __nv_fp8_interpretation_t kind) {
  return __nv_cvt_float_to_fp8(__half(a), saturation, kind);
}
inline __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(
    __nv_bfloat16_raw a, __nv_saturation_t saturation, __nv_fp8_interpretation_t kind) {
  return __nv_cvt_float_to_fp8(__nv_bfloat16(a), saturation, kind);
}
inline __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t a, __nv_fp8_interpretation_t kind) {
  return __half(::torchext::cuda_on_host::Fp8::of(kind).value(a));
}
inline __nv_fp8x2_storage_t __nv_cvt_double2_to_fp8x2(
    double2 a, __nv_saturation_t saturation, __nv_fp8_interpretation_t kind) {
  return static_cast<__nv_fp8x2_storage_t>(
      __nv_cvt_double_to_fp8(a.x, saturation, kind) | __nv_cvt_double_to_fp8(a.y, saturation, kind)
                                                          << 8);
}
inline __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(
    float2 a, __nv_saturation_t saturation, __nv_fp8_interpretation_t kind) {
  return __nv_cvt_double2_to_fp8x2({a.x, a.y}, saturation, kind);
}
inline __nv_fp8x2_storage_t __nv_cvt_halfraw2_to_fp8x2(
    __half2_raw a, __nv_saturation_t saturation, __nv_fp8_interpretation_t kind) {
  return __nv_cvt_float2_to_fp8x2(__half22float2(a), saturation, kind);
}
inline __nv_fp8x2_storage_t __nv_cvt_bfloat16raw2_to_fp8x2(
    __nv_bfloat162_raw a, __nv_saturation_t saturation, __nv_fp8_interpretation_t kind) {
  return __nv_cvt_float2_to_fp8x2(__bfloat1622float2(a), saturation, kind);
}
inline __half2_raw __nv_cvt_fp8x2_to_halfraw2(
    __nv_fp8x2_storage_t a, __nv_fp8_interpretation_t kind) {
  return {
      __nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(a), kind).x,
      __nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(a >> 8), kind).x};
}

#define TORCHEXT_FP8_FROM(Name, From, kind) \
  explicit Name(From value)                 \
      : __x(__nv_cvt_double_to_fp8(static_cast<double>(value), __NV_SATFINITE, kind)) {}
// Integers keep their range.
#define TORCHEXT_FP8_TO(To)                                                                 \
  explicit operator To() const {                                                            \
    return ::torchext::cuda_on_host::to_integer<To>(std::trunc(static_cast<float>(*this))); \
  }
#define TORCHEXT_FP8(Name, kind)                                 \
  struct Name {                                                  \
    __nv_fp8_storage_t __x;                                      \
                                                                 \
    Name() = default;                                            \
    TORCHEXT_FP8_FROM(Name, float, kind)                         \
    TORCHEXT_FP8_FROM(Name, double, kind)                        \
    TORCHEXT_FP8_FROM(Name, short, kind)                         \
    TORCHEXT_FP8_FROM(Name, unsigned short, kind)                \
    TORCHEXT_FP8_FROM(Name, int, kind)                           \
    TORCHEXT_FP8_FROM(Name, unsigned, kind)                      \
    TORCHEXT_FP8_FROM(Name, long, kind)                          \
    TORCHEXT_FP8_FROM(Name, unsigned long, kind)                 \
    TORCHEXT_FP8_FROM(Name, long long, kind)                     \
    TORCHEXT_FP8_FROM(Name, unsigned long long, kind)            \
    explicit Name(__half value) : Name(float(value)) {}          \
    explicit Name(__nv_bfloat16 value) : Name(float(value)) {}   \
    explicit operator float() const {                            \
      return __half(*this);                                      \
    }                                                            \
    explicit operator double() const {                           \
      return ::torchext::cuda_on_host::Fp8::of(kind).value(__x); \
    }                                                            \
    explicit operator __half() const {                           \
      return __half(double(*this));                              \
    }                                                            \
    explicit operator __nv_bfloat16() const {                    \
      return __nv_bfloat16(double(*this));                       \
    }                                                            \
    explicit operator bool() const {                             \
      return (__x & 0x7f) != 0;                                  \
    }                                                            \
    TORCHEXT_FP8_TO(char)                                        \
    TORCHEXT_FP8_TO(signed char)                                 \
    TORCHEXT_FP8_TO(unsigned char)                               \
    TORCHEXT_FP8_TO(short)                                       \
    TORCHEXT_FP8_TO(unsigned short)                              \
    TORCHEXT_FP8_TO(int)                                         \
    TORCHEXT_FP8_TO(unsigned)                                    \
    TORCHEXT_FP8_TO(long)                                        \
    TORCHEXT_FP8_TO(unsigned long)                               \
    TORCHEXT_FP8_TO(long long)                                   \
    TORCHEXT_FP8_TO(unsigned long long)                          \
  };
TORCHEXT_FP8(__nv_fp8_e4m3, __NV_E4M3)
TORCHEXT_FP8(__nv_fp8_e5m2, __NV_E5M2)
#undef TORCHEXT_FP8
#undef TORCHEXT_FP8_FROM
#undef TORCHEXT_FP8_TO

#define TORCHEXT_FP8_VECTORS(e, kind)                                                         \
  struct alignas(2) __nv_fp8x2_##e {                                                          \
    __nv_fp8x2_storage_t __x;                                                                 \
                                                                                              \
    __nv_fp8x2_##e() = default;                                                               \
    explicit __nv_fp8x2_##e(double2 a)                                                        \
        : __x(__nv_cvt_double2_to_fp8x2(a, __NV_SATFINITE, kind)) {}                          \
    explicit __nv_fp8x2_##e(float2 a) : __nv_fp8x2_##e(double2{a.x, a.y}) {}                  \
    explicit __nv_fp8x2_##e(__half2 a) : __nv_fp8x2_##e(__half22float2(a)) {}                 \
    explicit __nv_fp8x2_##e(__nv_bfloat162 a) : __nv_fp8x2_##e(__bfloat1622float2(a)) {}      \
    explicit operator __half2() const {                                                       \
      return __nv_cvt_fp8x2_to_halfraw2(__x, kind);                                           \
    }                                                                                         \
    explicit operator float2() const {                                                        \
      return __half22float2(__half2(*this));                                                  \
    }                                                                                         \
  };                                                                                          \
  struct alignas(4) __nv_fp8x4_##e {                                                          \
    __nv_fp8x4_storage_t __x;                                                                 \
                                                                                              \
    __nv_fp8x4_##e() = default;                                                               \
    explicit __nv_fp8x4_##e(double4 a)                                                        \
        : __x(__nv_cvt_double2_to_fp8x2({a.x, a.y}, __NV_SATFINITE, kind) |                   \
              static_cast<__nv_fp8x4_storage_t>(                                              \
                  __nv_cvt_double2_to_fp8x2({a.z, a.w}, __NV_SATFINITE, kind))                \
                  << 16) {}                                                                   \
    explicit __nv_fp8x4_##e(float4 a) : __nv_fp8x4_##e(double4{a.x, a.y, a.z, a.w}) {}        \
    explicit __nv_fp8x4_##e(__half2 low, __half2 high)                                        \
        : __nv_fp8x4_##e(float4{low.x, low.y, high.x, high.y}) {}                             \
    explicit __nv_fp8x4_##e(__nv_bfloat162 low, __nv_bfloat162 high)                          \
        : __nv_fp8x4_##e(float4{low.x, low.y, high.x, high.y}) {}                             \
    explicit operator float4() const {                                                        \
      const float2 low =                                                                      \
          __half22float2(__nv_cvt_fp8x2_to_halfraw2(static_cast<unsigned short>(__x), kind)); \
      const float2 high = __half22float2(                                                     \
          __nv_cvt_fp8x2_to_halfraw2(static_cast<unsigned short>(__x >> 16), kind));          \
      return {low.x, low.y, high.x, high.y};                                                  \
    }                                                                                         \
  };
TORCHEXT_FP8_VECTORS(e4m3, __NV_E4M3)
TORCHEXT_FP8_VECTORS(e5m2, __NV_E5M2)
#undef TORCHEXT_FP8_VECTORS
