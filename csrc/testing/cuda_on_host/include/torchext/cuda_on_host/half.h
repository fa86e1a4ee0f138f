// SPDX-License-Identifier: BSD-3-Clause
//
// The types of 16 bits, and pairs of them: each operation is that of float, rounded to the nearest
// (CUDA Math API, "Half Precision Intrinsics"). torch's own, which convert to these and back, include
// this file; what is done with them is in half_functions.h.
#pragma once

#include <torchext/cuda_on_host/rounding.h>
#include <torchext/cuda_on_host/types.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace torchext::cuda_on_host {

inline uint32_t bits_of_float(float value) {
  return bit_cast<uint32_t>(value);
}

inline float float_of_bits(uint32_t bits) {
  return bit_cast<float>(bits);
}

/// IEEE 754 binary16 and bfloat16: from a float, to the nearest, ties to even; and back, exactly.
struct Binary16 {
  static unsigned short bits(float value) {
    const uint32_t given = bits_of_float(value);
    const auto sign = static_cast<unsigned short>(given >> 16 & 0x8000);
    const float magnitude = float_of_bits(given & 0x7fffffff);
    if (magnitude != magnitude) {
      return 0x7fff;
    }
    if (magnitude >= 65520.0f) { // halfway between the largest and what would follow
      return sign | 0x7c00;
    }
    if (magnitude < 6.103515625e-05f) { // subnormal: the sum rounds as the result must
      return sign | static_cast<unsigned short>(bits_of_float(magnitude + 0.5f) - 0x3f000000);
    }
    const uint32_t odd = given >> 13 & 1;
    const uint32_t rounded = (given & 0x7fffffff) + 0xfff + odd - (uint32_t{112} << 23);
    return sign | static_cast<unsigned short>(rounded >> 13);
  }
  static float value(unsigned short bits) {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
    const uint32_t exponent = bits >> 10 & 0x1f;
    const uint32_t fraction = bits & 0x3ff;
    if (exponent == 0x1f) {
      return float_of_bits(fraction != 0 ? 0x7fffffff : sign | 0x7f800000);
    }
    if (exponent == 0) { // exact: 2^-24 of so many
      const float magnitude = static_cast<float>(fraction) * 5.9604644775390625e-08f;
      return float_of_bits(sign | bits_of_float(magnitude));
    }
    return float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
  }
};

struct Brain16 {
  static unsigned short bits(float value) {
    const uint32_t given = bits_of_float(value);
    if (value != value) {
      return 0x7fff;
    }
    return static_cast<unsigned short>((given + 0x7fff + (given >> 16 & 1)) >> 16);
  }
  static float value(unsigned short bits) {
    return float_of_bits(static_cast<uint32_t>(bits) << 16);
  }
};

} // namespace torchext::cuda_on_host

struct __half_raw {
  unsigned short x;
};
struct __nv_bfloat16_raw {
  unsigned short x;
};

namespace torchext::cuda_on_host {

/// The number of 16 bits to one side of `nearest`, which is `value` rounded to the nearest.
template <typename Format>
unsigned short directed(unsigned short nearest, float value, Rounding rounding) {
  const float rounded = Format::value(nearest);
  if (rounded == value || value != value) {
    return nearest;
  }
  const bool is_negative = (nearest & 0x8000) != 0;
  const bool is_too_large = rounded > value;
  const bool moves_down =
      rounding == Rounding::kDown || (rounding == Rounding::kZero && !is_negative);
  if (rounding == Rounding::kNearest || is_too_large != moves_down) {
    return nearest;
  }
  return static_cast<unsigned short>(is_negative == moves_down ? nearest + 1 : nearest - 1);
}

} // namespace torchext::cuda_on_host

#define TORCHEXT_HALF(Name, Raw, Format)                                                 \
  struct alignas(2) Name {                                                               \
    unsigned short bits;                                                                 \
                                                                                         \
    Name() = default;                                                                    \
    Name(float value) : bits(Format::bits(value)) {}                                     \
    Name(double value) : Name(::torchext::cuda_on_host::odd_float(value)) {}             \
    Name(int value) : Name(::torchext::cuda_on_host::odd_float(value)) {}                \
    Name(unsigned value) : Name(::torchext::cuda_on_host::odd_float(value)) {}           \
    Name(long value) : Name(::torchext::cuda_on_host::odd_float(value)) {}               \
    Name(unsigned long value) : Name(::torchext::cuda_on_host::odd_float(value)) {}      \
    Name(long long value) : Name(::torchext::cuda_on_host::odd_float(value)) {}          \
    Name(unsigned long long value) : Name(::torchext::cuda_on_host::odd_float(value)) {} \
    Name(const Raw& raw) : bits(raw.x) {}                                                \
    operator float() const {                                                             \
      return Format::value(bits);                                                        \
    }                                                                                    \
    operator Raw() const {                                                               \
      return {bits};                                                                     \
    }                                                                                    \
    template <typename T>                                                                \
    static Name rounded(T value, ::torchext::cuda_on_host::Rounding rounding) {          \
      using namespace ::torchext::cuda_on_host;                                          \
      const float wide = odd_float(value);                                               \
      return Name(Raw{directed<Format>(Format::bits(wide), wide, rounding)});            \
    }                                                                                    \
  };

TORCHEXT_HALF(__half, __half_raw, ::torchext::cuda_on_host::Binary16)
TORCHEXT_HALF(__nv_bfloat16, __nv_bfloat16_raw, ::torchext::cuda_on_host::Brain16)
#undef TORCHEXT_HALF

struct alignas(4) __half2_raw {
  unsigned short x, y;
};
struct alignas(4) __nv_bfloat162_raw {
  unsigned short x, y;
};

#define TORCHEXT_PAIR(Name, One, Raw)                                  \
  struct alignas(4) Name {                                             \
    One x, y;                                                          \
    Name() = default;                                                  \
    Name(One x_, One y_) : x(x_), y(y_) {}                             \
    Name(const Raw& raw) : x(One##_raw{raw.x}), y(One##_raw{raw.y}) {} \
    operator Raw() const {                                             \
      return {x.bits, y.bits};                                         \
    }                                                                  \
  };
TORCHEXT_PAIR(__half2, __half, __half2_raw)
TORCHEXT_PAIR(__nv_bfloat162, __nv_bfloat16, __nv_bfloat162_raw)
#undef TORCHEXT_PAIR

namespace torchext::cuda_on_host {

template <typename T>
constexpr bool kIsHalf = std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>;
template <typename T>
constexpr bool kIsPair = std::is_same_v<T, __half2> || std::is_same_v<T, __nv_bfloat162>;
template <typename T, typename R = T>
using IfHalf = std::enable_if_t<kIsHalf<T>, R>;
template <typename T, typename R = T>
using IfPair = std::enable_if_t<kIsPair<T>, R>;
template <typename T>
using IfEither = std::enable_if_t<kIsHalf<T> || kIsPair<T>, T>;

} // namespace torchext::cuda_on_host

// Templates, so that those of a library which defines its own are the better match. A float holds
// enough of the results to be rounded once more.
#define TORCHEXT_OPERATOR(sign)                                                               \
  template <typename T>                                                                       \
  ::torchext::cuda_on_host::IfHalf<T> operator sign(T a, T b) {                               \
    return T(static_cast<float>(a) sign static_cast<float>(b));                               \
  }                                                                                           \
  template <typename T>                                                                       \
  ::torchext::cuda_on_host::IfPair<T> operator sign(T a, T b) {                               \
    return {a.x sign b.x, a.y sign b.y};                                                      \
  }                                                                                           \
  template <typename T>                                                                       \
  ::torchext::cuda_on_host::IfEither<T>& operator sign## = (T & a, std::common_type_t<T> b) { \
    return a = a sign b;                                                                      \
  }
TORCHEXT_OPERATOR(+)
TORCHEXT_OPERATOR(-)
TORCHEXT_OPERATOR(*)
TORCHEXT_OPERATOR(/)
#undef TORCHEXT_OPERATOR
#define TORCHEXT_OPERATOR(sign)                                       \
  template <typename T>                                               \
  ::torchext::cuda_on_host::IfHalf<T, bool> operator sign(T a, T b) { \
    return static_cast<float>(a) sign static_cast<float>(b);          \
  }                                                                   \
  template <typename T>                                               \
  ::torchext::cuda_on_host::IfPair<T, bool> operator sign(T a, T b) { \
    return a.x sign b.x && a.y sign b.y;                              \
  }
TORCHEXT_OPERATOR(==)
TORCHEXT_OPERATOR(!=)
TORCHEXT_OPERATOR(<)
TORCHEXT_OPERATOR(>)
TORCHEXT_OPERATOR(<=)
TORCHEXT_OPERATOR(>=)
#undef TORCHEXT_OPERATOR
template <typename T>
::torchext::cuda_on_host::IfHalf<T> operator-(T a) {
  return T(-static_cast<float>(a));
}
template <typename T>
::torchext::cuda_on_host::IfPair<T> operator-(T a) {
  return {-a.x, -a.y};
}
template <typename T>
::torchext::cuda_on_host::IfEither<T> operator+(T a) {
  return a;
}
#define TORCHEXT_STEP(sign)                                            \
  template <typename T>                                                \
  ::torchext::cuda_on_host::IfHalf<T>& operator sign##sign(T& a) {     \
    return a = a sign T(1.0f);                                         \
  }                                                                    \
  template <typename T>                                                \
  ::torchext::cuda_on_host::IfHalf<T> operator sign##sign(T& a, int) { \
    const T before = a;                                                \
    a = a sign T(1.0f);                                                \
    return before;                                                     \
  }
TORCHEXT_STEP(+)
TORCHEXT_STEP(-)
#undef TORCHEXT_STEP

using half = __half;
using half2 = __half2;
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;
