// SPDX-License-Identifier: BSD-3-Clause
//
// Functions that a device has and C++ has not, or has in a namespace. The fast ones are the exact ones
// here: what a test compares with is nearer to them than it is on a device. Integers: integers.h.
#pragma once

#include <torchext/cuda_on_host/rounding.h>
#include <torchext/cuda_on_host/types.h>

#include <cmath>
#include <cstdint>
#include <type_traits>

#include <math.h>

namespace torchext::cuda_on_host {

template <typename A, typename B>
using Arithmetic =
    std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>, std::common_type_t<A, B>>;

template <typename T>
using FloatOf =
    std::enable_if_t<!std::is_arithmetic_v<T> && std::is_convertible_v<const T&, float>, float>;

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
TORCHEXT_FLOAT_2(__powf, std::pow(a, b))
TORCHEXT_FLOAT_2(__fdividef, a / b)
TORCHEXT_FLOAT_2(fdividef, a / b)
TORCHEXT_FLOAT_2(fdivide, a / b)
#undef TORCHEXT_FLOAT
#undef TORCHEXT_FLOAT_2
#undef TORCHEXT_DOUBLE
#undef TORCHEXT_DOUBLE_2

inline void __sincosf(float a, float* sine, float* cosine) {
  *sine = std::sin(a);
  *cosine = std::cos(a);
}
inline void sincospi(double a, double* sine, double* cosine) {
  *sine = sinpi(a);
  *cosine = cospi(a);
}
inline void sincospif(float a, float* sine, float* cosine) {
  *sine = sinpif(a);
  *cosine = cospif(a);
}

// Rounded _rn to the nearest, _rz toward zero, _rd down, _ru up.
#define TORCHEXT_ROUNDED(suffix, mode)                                                        \
  TORCHEXT_ROUNDED_OF(float, f, suffix, mode)                                                 \
  TORCHEXT_ROUNDED_OF(double, d, suffix, mode)                                                \
  inline float __fmaf_##suffix(float a, float b, float c) {                                   \
    using namespace ::torchext::cuda_on_host;                                                 \
    return result_of<Operation::kMultiplyAdd, Rounding::mode>(a, b, c);                       \
  }                                                                                           \
  inline float __fmaf_ieee_##suffix(float a, float b, float c) {                              \
    return __fmaf_##suffix(a, b, c);                                                          \
  }                                                                                           \
  inline double __fma_##suffix(double a, double b, double c) {                                \
    using namespace ::torchext::cuda_on_host;                                                 \
    return result_of<Operation::kMultiplyAdd, Rounding::mode>(a, b, c);                       \
  }                                                                                           \
  TORCHEXT_CONVERTED(__int2float_##suffix, int, float, to_float, long long, mode)             \
  TORCHEXT_CONVERTED(__uint2float_##suffix, unsigned, float, to_float, long long, mode)       \
  TORCHEXT_CONVERTED(__ll2float_##suffix, long long, float, to_float, long long, mode)        \
  TORCHEXT_CONVERTED(                                                                         \
      __ull2float_##suffix, unsigned long long, float, to_float, unsigned long long, mode)    \
  TORCHEXT_CONVERTED(__ll2double_##suffix, long long, double, to_double, long long, mode)     \
  TORCHEXT_CONVERTED(                                                                         \
      __ull2double_##suffix, unsigned long long, double, to_double, unsigned long long, mode) \
  TORCHEXT_CONVERTED(__double2float_##suffix, double, float, to_float, double, mode)
#define TORCHEXT_ROUNDED_OF(Real, letter, suffix, mode)                          \
  TORCHEXT_ROUNDED_2(Real, __##letter##add_##suffix, Operation::kAdd, mode)      \
  TORCHEXT_ROUNDED_2(Real, __##letter##sub_##suffix, Operation::kSubtract, mode) \
  TORCHEXT_ROUNDED_2(Real, __##letter##mul_##suffix, Operation::kMultiply, mode) \
  TORCHEXT_ROUNDED_2(Real, __##letter##div_##suffix, Operation::kDivide, mode)   \
  inline Real __##letter##rcp_##suffix(Real a) {                                 \
    using namespace ::torchext::cuda_on_host;                                    \
    return result_of<Operation::kDivide, Rounding::mode>(Real(1), a);            \
  }                                                                              \
  inline Real __##letter##sqrt_##suffix(Real a) {                                \
    using namespace ::torchext::cuda_on_host;                                    \
    return result_of<Operation::kSquareRoot, Rounding::mode>(a);                 \
  }
#define TORCHEXT_ROUNDED_2(Real, name, operation, mode) \
  inline Real name(Real a, Real b) {                    \
    using namespace ::torchext::cuda_on_host;           \
    return result_of<operation, Rounding::mode>(a, b);  \
  }
#define TORCHEXT_CONVERTED(name, From, To, function, Wide, mode) \
  inline To name(From a) {                                       \
    using namespace ::torchext::cuda_on_host;                    \
    return function(Rounding::mode, static_cast<Wide>(a));       \
  }
TORCHEXT_ROUNDED(rn, kNearest)
TORCHEXT_ROUNDED(rz, kZero)
TORCHEXT_ROUNDED(rd, kDown)
TORCHEXT_ROUNDED(ru, kUp)
#undef TORCHEXT_ROUNDED
#undef TORCHEXT_ROUNDED_OF
#undef TORCHEXT_ROUNDED_2
#undef TORCHEXT_CONVERTED
inline float __frsqrt_rn(float a) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(a)));
}
inline double __int2double_rn(int a) {
  return a;
}
inline double __uint2double_rn(unsigned a) {
  return a;
}

#define TORCHEXT_NORMS(Real, f)                                        \
  inline Real norm3d##f(Real a, Real b, Real c) {                      \
    return std::hypot(a, b, c);                                        \
  }                                                                    \
  inline Real norm4d##f(Real a, Real b, Real c, Real d) {              \
    return std::hypot(std::hypot(a, b), c, d);                         \
  }                                                                    \
  inline Real norm##f(int dim, const Real* p) {                        \
    Real result = 0;                                                   \
    for (int i = 0; i < dim; ++i) {                                    \
      result = std::hypot(result, p[i]);                               \
    }                                                                  \
    return result;                                                     \
  }                                                                    \
  inline Real rnorm3d##f(Real a, Real b, Real c) {                     \
    return 1 / norm3d##f(a, b, c);                                     \
  }                                                                    \
  inline Real rnorm4d##f(Real a, Real b, Real c, Real d) {             \
    return 1 / norm4d##f(a, b, c, d);                                  \
  }                                                                    \
  inline Real rnorm##f(int dim, const Real* p) {                       \
    return 1 / norm##f(dim, p);                                        \
  }                                                                    \
  inline Real rhypot##f(Real a, Real b) {                              \
    return 1 / std::hypot(a, b);                                       \
  }                                                                    \
  inline Real cyl_bessel_i0##f(Real a) {                               \
    return std::cyl_bessel_i(Real(0), std::fabs(a));                   \
  }                                                                    \
  inline Real cyl_bessel_i1##f(Real a) {                               \
    return std::copysign(std::cyl_bessel_i(Real(1), std::fabs(a)), a); \
  }
TORCHEXT_NORMS(float, f)
TORCHEXT_NORMS(double, )
#undef TORCHEXT_NORMS

// What is not among C's functions: approximations (Giles, "Approximating the erfinv function"), and
// two of Newton's steps on C's erfc.
inline double erfcinv(double y) {
  if (!(y > 0 && y < 2)) {
    return y == 0 ? HUGE_VAL : y == 2 ? -HUGE_VAL : NAN;
  }
  const double half = y < 1 ? y : 2 - y; // of the side where the result is not negative
  double x = std::sqrt(-std::log(half));
  x = half > 0.1 ? (1 - half) * 0.8862269254527580 : x - std::log(x * 1.772453850905516) / (2 * x);
  for (int step = 0; step < 6; ++step) {
    const double error = (std::erfc(x) - half) / (-M_2_SQRTPI * std::exp(-x * x));
    x -= error / (1 + x * error);
  }
  return y < 1 ? x : -x;
}
inline double erfinv(double y) {
  if (!(std::fabs(y) < 0.5)) {
    return std::fabs(y) > 1 ? NAN : y < 0 ? -erfcinv(1 + y) : erfcinv(1 - y);
  }
  double x = y * 0.8862269254527580;
  for (int step = 0; step < 6; ++step) {
    const double error = (std::erf(x) - y) / (M_2_SQRTPI * std::exp(-x * x));
    x -= error / (1 + x * error);
  }
  return x;
}
inline double normcdfinv(double y) {
  return -M_SQRT2 * erfcinv(2 * y);
}
/// exp(x * x) * erfc(x), for large x its asymptotic series.
inline double erfcx(double x) {
  if (x < 12) {
    return std::exp(x * x) * std::erfc(x);
  }
  const double t = 1 / (2 * x * x);
  const double series =
      1 - t * (1 - 3 * t * (1 - 5 * t * (1 - 7 * t * (1 - 9 * t * (1 - 11 * t)))));
  return series * M_2_SQRTPI / 2 / x;
}
#define TORCHEXT_AS_DOUBLE(name)                \
  inline float name##f(float a) {               \
    return static_cast<float>(name(double(a))); \
  }
TORCHEXT_AS_DOUBLE(erfcinv)
TORCHEXT_AS_DOUBLE(erfinv)
TORCHEXT_AS_DOUBLE(normcdfinv)
TORCHEXT_AS_DOUBLE(erfcx)
#undef TORCHEXT_AS_DOUBLE

// Conversions to integers, kept in their range.
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
