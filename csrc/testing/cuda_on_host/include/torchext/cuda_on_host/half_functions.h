// SPDX-License-Identifier: BSD-3-Clause
//
// What CUDA does with numbers of 16 bits and pairs of them (CUDA Math API, "Half Precision Intrinsics"
// and "Bfloat16 Precision Intrinsics"). The fast ones are the exact ones here.
#pragma once

#include <torchext/cuda_on_host/half.h>

#include <cmath>

namespace torchext::cuda_on_host {

/// Between 0 and 1; 0 for nan.
template <typename T>
T saturated_half(T a) {
  const float value = a;
  return T(value > 0.0f ? (value < 1.0f ? value : 1.0f) : 0.0f);
}

/// The larger of two, or the smaller: what is a number, or nan where `kNan` and either is; +0 is
/// larger than -0.
template <bool kLarger, bool kNan, typename T>
T extreme(T a, T b) {
  const float x = a;
  const float y = b;
  if (x != x || y != y) {
    return (x != x && y != y) || kNan ? T(NAN) : x != x ? b : a;
  }
  const bool takes_a = x == y ? std::signbit(x) != kLarger : (x > y) == kLarger;
  return takes_a ? a : b;
}

template <typename T>
T multiply_add(T a, T b, T c) {
  return T(odd_multiply_add(a, b, c));
}

template <typename T>
T positive(T a) {
  const float value = a;
  return value != value ? T(NAN) : value > 0.0f ? a : T(0.0f);
}

/// Whether a compared with b is so, or either is nan.
template <typename T>
bool is_unordered(T a, T b) {
  return static_cast<float>(a) != static_cast<float>(a) ||
         static_cast<float>(b) != static_cast<float>(b);
}

} // namespace torchext::cuda_on_host

#define TORCHEXT_ONE(One, name, expression) \
  inline One name(One a) {                  \
    return expression;                      \
  }
// Of one number and of each of two: `name` and `name2`.
#define TORCHEXT_BOTH_1(One, Two, name, name2, expression) \
  TORCHEXT_ONE(One, name, expression)                      \
  inline Two name2(Two a) {                                \
    return {name(a.x), name(a.y)};                         \
  }
#define TORCHEXT_BOTH_2(One, Two, name, name2, expression) \
  inline One name(One a, One b) {                          \
    return expression;                                     \
  }                                                        \
  inline Two name2(Two a, Two b) {                         \
    return {name(a.x, b.x), name(a.y, b.y)};               \
  }
#define TORCHEXT_BOTH_3(One, Two, name, name2, expression) \
  inline One name(One a, One b, One c) {                   \
    using namespace ::torchext::cuda_on_host;              \
    return expression;                                     \
  }                                                        \
  inline Two name2(Two a, Two b, Two c) {                  \
    return {name(a.x, b.x, c.x), name(a.y, b.y, c.y)};     \
  }
// Comparisons: of one, of each of two as 1 and 0, and as masks, and of both; and with a u the same,
// or true for nan.
#define TORCHEXT_COMPARED(One, Two, name, expression) \
  TORCHEXT_COMPARED_AS(One, Two, name, expression)    \
  TORCHEXT_COMPARED_AS(                               \
      One, Two, name##u, (expression) || ::torchext::cuda_on_host::is_unordered(a, b))
#define TORCHEXT_COMPARED_AS(One, Two, name, expression)                                     \
  inline bool __h##name(One a, One b) {                                                      \
    return expression;                                                                       \
  }                                                                                          \
  inline Two __h##name##2(Two a, Two b) {                                                    \
    return {One(__h##name(a.x, b.x) ? 1.0f : 0.0f), One(__h##name(a.y, b.y) ? 1.0f : 0.0f)}; \
  }                                                                                          \
  inline unsigned __h##name##2_mask(Two a, Two b) {                                          \
    return (__h##name(a.x, b.x) ? 0xffffu : 0u) | (__h##name(a.y, b.y) ? 0xffff0000u : 0u);  \
  }                                                                                          \
  inline bool __hb##name##2(Two a, Two b) {                                                  \
    return __h##name(a.x, b.x) && __h##name(a.y, b.y);                                       \
  }

#define TORCHEXT_HALF_FUNCTIONS(One, Two)                                                        \
  TORCHEXT_BOTH_2(One, Two, __hadd, __hadd2, a + b)                                              \
  TORCHEXT_BOTH_2(One, Two, __hsub, __hsub2, a - b)                                              \
  TORCHEXT_BOTH_2(One, Two, __hmul, __hmul2, a* b)                                               \
  TORCHEXT_BOTH_2(One, Two, __hdiv, __h2div, a / b)                                              \
  TORCHEXT_BOTH_2(One, Two, __hadd_rn, __hadd2_rn, a + b)                                        \
  TORCHEXT_BOTH_2(One, Two, __hsub_rn, __hsub2_rn, a - b)                                        \
  TORCHEXT_BOTH_2(One, Two, __hmul_rn, __hmul2_rn, a* b)                                         \
  TORCHEXT_BOTH_2(                                                                               \
      One, Two, __hadd_sat, __hadd2_sat, ::torchext::cuda_on_host::saturated_half(a + b))        \
  TORCHEXT_BOTH_2(                                                                               \
      One, Two, __hsub_sat, __hsub2_sat, ::torchext::cuda_on_host::saturated_half(a - b))        \
  TORCHEXT_BOTH_2(                                                                               \
      One, Two, __hmul_sat, __hmul2_sat, ::torchext::cuda_on_host::saturated_half(a* b))         \
  TORCHEXT_BOTH_2(                                                                               \
      One, Two, __hmax, __hmax2, (::torchext::cuda_on_host::extreme<true, false>(a, b)))         \
  TORCHEXT_BOTH_2(                                                                               \
      One, Two, __hmin, __hmin2, (::torchext::cuda_on_host::extreme<false, false>(a, b)))        \
  TORCHEXT_BOTH_2(                                                                               \
      One, Two, __hmax_nan, __hmax2_nan, (::torchext::cuda_on_host::extreme<true, true>(a, b)))  \
  TORCHEXT_BOTH_2(                                                                               \
      One, Two, __hmin_nan, __hmin2_nan, (::torchext::cuda_on_host::extreme<false, true>(a, b))) \
  TORCHEXT_BOTH_3(One, Two, __hfma, __hfma2, multiply_add(a, b, c))                              \
  TORCHEXT_BOTH_3(One, Two, __hfma_sat, __hfma2_sat, saturated_half(multiply_add(a, b, c)))      \
  TORCHEXT_BOTH_3(One, Two, __hfma_relu, __hfma2_relu, positive(multiply_add(a, b, c)))          \
  TORCHEXT_BOTH_1(One, Two, __hneg, __hneg2, -a)                                                 \
  TORCHEXT_BOTH_1(One, Two, __habs, __habs2, One(std::fabs(float(a))))                           \
  TORCHEXT_BOTH_1(One, Two, hexp, h2exp, One(std::exp(float(a))))                                \
  TORCHEXT_BOTH_1(One, Two, hexp2, h2exp2, One(std::exp2(float(a))))                             \
  TORCHEXT_BOTH_1(One, Two, hexp10, h2exp10, One(std::pow(10.0, double(float(a)))))              \
  TORCHEXT_BOTH_1(One, Two, hlog, h2log, One(std::log(float(a))))                                \
  TORCHEXT_BOTH_1(One, Two, hlog2, h2log2, One(std::log2(float(a))))                             \
  TORCHEXT_BOTH_1(One, Two, hlog10, h2log10, One(std::log10(float(a))))                          \
  TORCHEXT_BOTH_1(One, Two, hsin, h2sin, One(std::sin(float(a))))                                \
  TORCHEXT_BOTH_1(One, Two, hcos, h2cos, One(std::cos(float(a))))                                \
  TORCHEXT_BOTH_1(One, Two, htanh, h2tanh, One(std::tanh(float(a))))                             \
  TORCHEXT_BOTH_1(One, Two, htanh_approx, h2tanh_approx, One(std::tanh(float(a))))               \
  TORCHEXT_BOTH_1(One, Two, hsqrt, h2sqrt, One(std::sqrt(float(a))))                             \
  TORCHEXT_BOTH_1(One, Two, hrsqrt, h2rsqrt, One(1.0 / std::sqrt(double(float(a)))))             \
  TORCHEXT_BOTH_1(One, Two, hrcp, h2rcp, One(1.0f / float(a)))                                   \
  TORCHEXT_BOTH_1(One, Two, hceil, h2ceil, One(std::ceil(float(a))))                             \
  TORCHEXT_BOTH_1(One, Two, hfloor, h2floor, One(std::floor(float(a))))                          \
  TORCHEXT_BOTH_1(One, Two, hrint, h2rint, One(std::nearbyint(float(a))))                        \
  TORCHEXT_BOTH_1(One, Two, htrunc, h2trunc, One(std::trunc(float(a))))                          \
  TORCHEXT_COMPARED(One, Two, eq, float(a) == float(b))                                          \
  TORCHEXT_COMPARED(One, Two, ne, (float(a) < float(b) || float(a) > float(b)))                  \
  TORCHEXT_COMPARED(One, Two, lt, float(a) < float(b))                                           \
  TORCHEXT_COMPARED(One, Two, le, float(a) <= float(b))                                          \
  TORCHEXT_COMPARED(One, Two, gt, float(a) > float(b))                                           \
  TORCHEXT_COMPARED(One, Two, ge, float(a) >= float(b))                                          \
  inline bool __hisnan(One a) {                                                                  \
    return std::isnan(float(a));                                                                 \
  }                                                                                              \
  inline int __hisinf(One a) {                                                                   \
    return std::isinf(float(a)) ? (float(a) < 0 ? -1 : 1) : 0;                                   \
  }                                                                                              \
  inline Two __hisnan2(Two a) {                                                                  \
    return {One(__hisnan(a.x) ? 1.0f : 0.0f), One(__hisnan(a.y) ? 1.0f : 0.0f)};                 \
  }                                                                                              \
  /* a * b + c, each pair a complex number */                                                    \
  inline Two __hcmadd(Two a, Two b, Two c) {                                                     \
    return {__hfma(-a.y, b.y, __hfma(a.x, b.x, c.x)), __hfma(a.y, b.x, __hfma(a.x, b.y, c.y))};  \
  }                                                                                              \
  inline float __low2float(Two a) {                                                              \
    return a.x;                                                                                  \
  }                                                                                              \
  inline float __high2float(Two a) {                                                             \
    return a.y;                                                                                  \
  }                                                                                              \
  inline Two __lowhigh2highlow(Two a) {                                                          \
    return {a.y, a.x};                                                                           \
  }

TORCHEXT_HALF_FUNCTIONS(__half, __half2)
TORCHEXT_HALF_FUNCTIONS(__nv_bfloat16, __nv_bfloat162)
#undef TORCHEXT_HALF_FUNCTIONS
#undef TORCHEXT_COMPARED
#undef TORCHEXT_COMPARED_AS
#undef TORCHEXT_BOTH_1
#undef TORCHEXT_BOTH_2
#undef TORCHEXT_BOTH_3
#undef TORCHEXT_ONE

// Conversions, in each direction of rounding.
#define TORCHEXT_FROM(One, name, From)                  \
  TORCHEXT_FROM_ROUNDED(One, name##_rn, From, kNearest) \
  TORCHEXT_FROM_ROUNDED(One, name##_rz, From, kZero)    \
  TORCHEXT_FROM_ROUNDED(One, name##_rd, From, kDown)    \
  TORCHEXT_FROM_ROUNDED(One, name##_ru, From, kUp)
#define TORCHEXT_FROM_ROUNDED(One, name, From, mode)                  \
  inline One name(From a) {                                           \
    return One::rounded(a, ::torchext::cuda_on_host::Rounding::mode); \
  }
#define TORCHEXT_TO(One, name, To)                        \
  TORCHEXT_TO_ROUNDED(One, name##_rn, To, std::nearbyint) \
  TORCHEXT_TO_ROUNDED(One, name##_rz, To, std::trunc)     \
  TORCHEXT_TO_ROUNDED(One, name##_rd, To, std::floor)     \
  TORCHEXT_TO_ROUNDED(One, name##_ru, To, std::ceil)
#define TORCHEXT_TO_ROUNDED(One, name, To, function)                                  \
  inline To name(One a) {                                                             \
    return ::torchext::cuda_on_host::to_integer<To>(function(static_cast<float>(a))); \
  }
// `h` is what the names call the type.
#define TORCHEXT_CONVERSIONS(One, Two, h)                               \
  TORCHEXT_FROM(One, __float2##h, float)                                \
  TORCHEXT_FROM(One, __int2##h, int)                                    \
  TORCHEXT_FROM(One, __uint2##h, unsigned)                              \
  TORCHEXT_FROM(One, __short2##h, short)                                \
  TORCHEXT_FROM(One, __ushort2##h, unsigned short)                      \
  TORCHEXT_FROM(One, __ll2##h, long long)                               \
  TORCHEXT_FROM(One, __ull2##h, unsigned long long)                     \
  TORCHEXT_TO(One, __##h##2int, int)                                    \
  TORCHEXT_TO(One, __##h##2uint, unsigned)                              \
  TORCHEXT_TO(One, __##h##2short, short)                                \
  TORCHEXT_TO(One, __##h##2ushort, unsigned short)                      \
  TORCHEXT_TO(One, __##h##2ll, long long)                               \
  TORCHEXT_TO(One, __##h##2ull, unsigned long long)                     \
  TORCHEXT_TO_ROUNDED(One, __##h##2char_rz, signed char, std::trunc)    \
  TORCHEXT_TO_ROUNDED(One, __##h##2uchar_rz, unsigned char, std::trunc) \
  inline float __##h##2float(One a) {                                   \
    return a;                                                           \
  }                                                                     \
  inline One __float2##h(float a) {                                     \
    return a;                                                           \
  }                                                                     \
  inline One __double2##h(double a) {                                   \
    return a;                                                           \
  }                                                                     \
  inline unsigned short __##h##_as_ushort(One a) {                      \
    return a.bits;                                                      \
  }                                                                     \
  inline One __ushort_as_##h(unsigned short a) {                        \
    return One##_raw{a};                                                \
  }                                                                     \
  inline short __##h##_as_short(One a) {                                \
    return static_cast<short>(a.bits);                                  \
  }                                                                     \
  inline One __short_as_##h(short a) {                                  \
    return One##_raw{static_cast<unsigned short>(a)};                   \
  }                                                                     \
  inline One __low2##h(Two a) {                                         \
    return a.x;                                                         \
  }                                                                     \
  inline One __high2##h(Two a) {                                        \
    return a.y;                                                         \
  }                                                                     \
  inline Two __low2##h##2(Two a) {                                      \
    return {a.x, a.x};                                                  \
  }                                                                     \
  inline Two __high2##h##2(Two a) {                                     \
    return {a.y, a.y};                                                  \
  }                                                                     \
  inline Two __lows2##h##2(Two a, Two b) {                              \
    return {a.x, b.x};                                                  \
  }                                                                     \
  inline Two __highs2##h##2(Two a, Two b) {                             \
    return {a.y, b.y};                                                  \
  }                                                                     \
  inline Two __halves2##h##2(One a, One b) {                            \
    return {a, b};                                                      \
  }                                                                     \
  inline Two __##h##2##h##2(One a) {                                    \
    return {a, a};                                                      \
  }                                                                     \
  inline Two __float2##h##2_rn(float a) {                               \
    return {One(a), One(a)};                                            \
  }                                                                     \
  inline Two __floats2##h##2_rn(float a, float b) {                     \
    return {One(a), One(b)};                                            \
  }                                                                     \
  inline Two __float22##h##2_rn(float2 a) {                             \
    return {One(a.x), One(a.y)};                                        \
  }                                                                     \
  inline float2 __##h##22float2(Two a) {                                \
    return {float(a.x), float(a.y)};                                    \
  }
TORCHEXT_CONVERSIONS(__half, __half2, half)
TORCHEXT_CONVERSIONS(__nv_bfloat16, __nv_bfloat162, bfloat16)
#undef TORCHEXT_CONVERSIONS
#undef TORCHEXT_FROM
#undef TORCHEXT_FROM_ROUNDED
#undef TORCHEXT_TO
#undef TORCHEXT_TO_ROUNDED

inline __half2 make_half2(__half a, __half b) {
  return {a, b};
}
inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) {
  return {a, b};
}
