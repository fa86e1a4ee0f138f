// SPDX-License-Identifier: BSD-3-Clause
//
// Functions that a device has and C++ has not, or has in a namespace. The fast ones are the exact ones
// here: what a test compares with is nearer to them than it is on a device.
#pragma once

#include <torchext/cuda_on_host/types.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include <math.h>

namespace torchext::cuda_on_host {

template <typename To, typename From>
To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(To));
  return to;
}

template <typename A, typename B>
using Arithmetic =
    std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>, std::common_type_t<A, B>>;

template <typename T>
using FloatOf =
    std::enable_if_t<!std::is_arithmetic_v<T> && std::is_convertible_v<const T&, float>, float>;

// Rounded by a function, and kept in the range of an integer; 0 for nan.
template <typename Integer, typename Real>
Integer to_integer(Real value) {
  using Limits = std::numeric_limits<Integer>;
  if (std::isnan(value)) {
    return 0;
  }
  if (value <= static_cast<Real>(Limits::min())) {
    return Limits::min();
  }
  return value >= static_cast<Real>(Limits::max()) ? Limits::max() : static_cast<Integer>(value);
}

} // namespace torchext::cuda_on_host

template <typename A, typename B>
constexpr ::torchext::cuda_on_host::Arithmetic<A, B> max(A a, B b) {
  using T = std::common_type_t<A, B>;
  if constexpr (std::is_floating_point_v<T>) {
    return std::fmax(static_cast<T>(a), static_cast<T>(b));
  } else {
    return static_cast<T>(a) > static_cast<T>(b) ? static_cast<T>(a) : static_cast<T>(b);
  }
}
template <typename A, typename B>
constexpr ::torchext::cuda_on_host::Arithmetic<A, B> min(A a, B b) {
  using T = std::common_type_t<A, B>;
  if constexpr (std::is_floating_point_v<T>) {
    return std::fmin(static_cast<T>(a), static_cast<T>(b));
  } else {
    return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(a) : static_cast<T>(b);
  }
}

// Of what converts to a float, as numbers of 16 bits do.
template <typename T>
::torchext::cuda_on_host::FloatOf<T> max(const T& a, const T& b) {
  return std::fmax(static_cast<float>(a), static_cast<float>(b));
}
template <typename T>
::torchext::cuda_on_host::FloatOf<T> min(const T& a, const T& b) {
  return std::fmin(static_cast<float>(a), static_cast<float>(b));
}

#define TORCHEXT_FLOAT(name, expression) \
  inline float name(float a) {           \
    return expression;                   \
  }
#define TORCHEXT_FLOAT_2(name, expression) \
  inline float name(float a, float b) {    \
    return expression;                     \
  }
#define TORCHEXT_DOUBLE(name, expression) \
  inline double name(double a) {          \
    return expression;                    \
  }
#define TORCHEXT_DOUBLE_2(name, expression) \
  inline double name(double a, double b) {  \
    return expression;                      \
  }

TORCHEXT_FLOAT(rsqrtf, 1.0f / std::sqrt(a))
TORCHEXT_DOUBLE(rsqrt, 1.0 / std::sqrt(a))
TORCHEXT_FLOAT(rsqrt, 1.0f / std::sqrt(a))
TORCHEXT_FLOAT(rcbrtf, 1.0f / std::cbrt(a))
TORCHEXT_DOUBLE(rcbrt, 1.0 / std::cbrt(a))
TORCHEXT_FLOAT(sinpif, std::sin(float(M_PI) * std::remainder(a, 2.0f)))
TORCHEXT_FLOAT(cospif, std::cos(float(M_PI) * std::remainder(a, 2.0f)))
TORCHEXT_DOUBLE(sinpi, std::sin(M_PI* std::remainder(a, 2.0)))
TORCHEXT_DOUBLE(cospi, std::cos(M_PI* std::remainder(a, 2.0)))
TORCHEXT_FLOAT(normcdff, 0.5f * std::erfc(-a * float(M_SQRT1_2)))
TORCHEXT_DOUBLE(normcdf, 0.5 * std::erfc(-a * M_SQRT1_2))

TORCHEXT_FLOAT(__expf, std::exp(a))
TORCHEXT_FLOAT(__exp10f, std::pow(10.0f, a))
TORCHEXT_FLOAT(__logf, std::log(a))
TORCHEXT_FLOAT(__log2f, std::log2(a))
TORCHEXT_FLOAT(__log10f, std::log10(a))
TORCHEXT_FLOAT(__sinf, std::sin(a))
TORCHEXT_FLOAT(__cosf, std::cos(a))
TORCHEXT_FLOAT(__tanf, std::tan(a))
TORCHEXT_FLOAT(__tanhf, std::tanh(a))
TORCHEXT_FLOAT(__saturatef, a > 0.0f ? (a < 1.0f ? a : 1.0f) : 0.0f)
TORCHEXT_FLOAT(__frcp_rn, 1.0f / a)
TORCHEXT_FLOAT(__fsqrt_rn, std::sqrt(a))
TORCHEXT_FLOAT(__frsqrt_rn, 1.0f / std::sqrt(a))
TORCHEXT_DOUBLE(__drcp_rn, 1.0 / a)
TORCHEXT_DOUBLE(__dsqrt_rn, std::sqrt(a))
TORCHEXT_FLOAT_2(__powf, std::pow(a, b))
TORCHEXT_FLOAT_2(__fdividef, a / b)
TORCHEXT_FLOAT_2(__fadd_rn, a + b)
TORCHEXT_FLOAT_2(__fsub_rn, a - b)
TORCHEXT_FLOAT_2(__fmul_rn, a* b)
TORCHEXT_FLOAT_2(__fdiv_rn, a / b)
TORCHEXT_FLOAT_2(fdividef, a / b)
TORCHEXT_DOUBLE_2(__dadd_rn, a + b)
TORCHEXT_DOUBLE_2(__dsub_rn, a - b)
TORCHEXT_DOUBLE_2(__dmul_rn, a* b)
TORCHEXT_DOUBLE_2(__ddiv_rn, a / b)
#undef TORCHEXT_FLOAT
#undef TORCHEXT_FLOAT_2
#undef TORCHEXT_DOUBLE
#undef TORCHEXT_DOUBLE_2

inline void __sincosf(float a, float* sine, float* cosine) {
  *sine = std::sin(a);
  *cosine = std::cos(a);
}
inline void sincospif(float a, float* sine, float* cosine) {
  *sine = sinpif(a);
  *cosine = cospif(a);
}
inline float __fmaf_rn(float a, float b, float c) {
  return std::fma(a, b, c);
}
inline double __fma_rn(double a, double b, double c) {
  return std::fma(a, b, c);
}
inline float norm3df(float a, float b, float c) {
  return std::sqrt(a * a + b * b + c * c);
}
inline double norm3d(double a, double b, double c) {
  return std::sqrt(a * a + b * b + c * c);
}
inline float rnorm3df(float a, float b, float c) {
  return 1.0f / norm3df(a, b, c);
}
inline float rhypotf(float a, float b) {
  return 1.0f / std::hypot(a, b);
}
inline double rhypot(double a, double b) {
  return 1.0 / std::hypot(a, b);
}

// Conversions: _rn to the nearest, _rz toward zero, _rd down, _ru up.
#define TORCHEXT_TO_INTEGER(Name, Real, Integer)                             \
  inline Integer Name##_rn(Real a) {                                         \
    return ::torchext::cuda_on_host::to_integer<Integer>(std::nearbyint(a)); \
  }                                                                          \
  inline Integer Name##_rz(Real a) {                                         \
    return ::torchext::cuda_on_host::to_integer<Integer>(std::trunc(a));     \
  }                                                                          \
  inline Integer Name##_rd(Real a) {                                         \
    return ::torchext::cuda_on_host::to_integer<Integer>(std::floor(a));     \
  }                                                                          \
  inline Integer Name##_ru(Real a) {                                         \
    return ::torchext::cuda_on_host::to_integer<Integer>(std::ceil(a));      \
  }
TORCHEXT_TO_INTEGER(__float2int, float, int)
TORCHEXT_TO_INTEGER(__float2uint, float, unsigned)
TORCHEXT_TO_INTEGER(__float2ll, float, long long)
TORCHEXT_TO_INTEGER(__float2ull, float, unsigned long long)
TORCHEXT_TO_INTEGER(__double2int, double, int)
TORCHEXT_TO_INTEGER(__double2uint, double, unsigned)
TORCHEXT_TO_INTEGER(__double2ll, double, long long)
TORCHEXT_TO_INTEGER(__double2ull, double, unsigned long long)
#undef TORCHEXT_TO_INTEGER

#define TORCHEXT_CONVERT(name, From, To) \
  inline To name(From a) {               \
    return static_cast<To>(a);           \
  }
TORCHEXT_CONVERT(__int2float_rn, int, float)
TORCHEXT_CONVERT(__uint2float_rn, unsigned, float)
TORCHEXT_CONVERT(__ll2float_rn, long long, float)
TORCHEXT_CONVERT(__ull2float_rn, unsigned long long, float)
TORCHEXT_CONVERT(__int2double_rn, int, double)
TORCHEXT_CONVERT(__ll2double_rn, long long, double)
TORCHEXT_CONVERT(__double2float_rn, double, float)
#undef TORCHEXT_CONVERT

#define TORCHEXT_BITS(name, From, To)                 \
  inline To name(From a) {                            \
    return ::torchext::cuda_on_host::bit_cast<To>(a); \
  }
TORCHEXT_BITS(__int_as_float, int, float)
TORCHEXT_BITS(__uint_as_float, unsigned, float)
TORCHEXT_BITS(__float_as_int, float, int)
TORCHEXT_BITS(__float_as_uint, float, unsigned)
TORCHEXT_BITS(__longlong_as_double, long long, double)
TORCHEXT_BITS(__double_as_longlong, double, long long)
#undef TORCHEXT_BITS

inline double __hiloint2double(int high, int low) {
  return __longlong_as_double(
      static_cast<long long>(
          static_cast<uint64_t>(static_cast<unsigned>(high)) << 32 | static_cast<unsigned>(low)));
}
inline int __double2hiint(double a) {
  return static_cast<int>(__double_as_longlong(a) >> 32);
}
inline int __double2loint(double a) {
  return static_cast<int>(__double_as_longlong(a));
}

// Integers
inline int __popc(unsigned a) {
  return __builtin_popcount(a);
}
inline int __popcll(unsigned long long a) {
  return __builtin_popcountll(a);
}
inline int __clz(int a) {
  return a == 0 ? 32 : __builtin_clz(static_cast<unsigned>(a));
}
inline int __clzll(long long a) {
  return a == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(a));
}
inline int __ffs(int a) {
  return __builtin_ffs(a);
}
inline int __ffsll(long long a) {
  return __builtin_ffsll(a);
}
inline unsigned __brev(unsigned a) {
  unsigned result = 0;
  for (int i = 0; i < 32; ++i) {
    result |= (a >> i & 1) << (31 - i);
  }
  return result;
}
inline unsigned long long __brevll(unsigned long long a) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(a))) << 32 |
         __brev(static_cast<unsigned>(a >> 32));
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const uint64_t bytes = static_cast<uint64_t>(b) << 32 | a;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned which = selector >> 4 * i & 0xf;
    unsigned byte = static_cast<unsigned>(bytes >> 8 * (which & 7)) & 0xff;
    if ((which & 8) != 0) {
      byte = (byte & 0x80) != 0 ? 0xff : 0;
    }
    result |= byte << 8 * i;
  }
  return result;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<uint64_t>(high) << 32 | low) << (shift & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<uint64_t>(high) << 32 | low) >> (shift & 31));
}
inline int __mulhi(int a, int b) {
  return static_cast<int>(static_cast<long long>(a) * b >> 32);
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32);
}
inline long long __mul64hi(long long a, long long b) {
  return static_cast<long long>(static_cast<__int128>(a) * b >> 64);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline int __mul24(int a, int b) {
  return static_cast<int>(static_cast<unsigned>(a << 8 >> 8) * static_cast<unsigned>(b << 8 >> 8));
}
inline unsigned __umul24(unsigned a, unsigned b) {
  return (a & 0xffffff) * (b & 0xffffff);
}
inline unsigned __sad(int a, int b, unsigned c) {
  return c + static_cast<unsigned>(a > b ? a - b : b - a);
}
inline unsigned __usad(unsigned a, unsigned b, unsigned c) {
  return c + (a > b ? a - b : b - a);
}
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; ++i) {
    c += static_cast<signed char>(a >> 8 * i) * static_cast<signed char>(b >> 8 * i);
  }
  return c;
}
