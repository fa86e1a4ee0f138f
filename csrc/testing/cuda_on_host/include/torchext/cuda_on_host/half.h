// SPDX-License-Identifier: BSD-3-Clause
//
// The types of 16 bits, and pairs of them: each operation is that of float, rounded to the nearest
// (CUDA Math API, "Half Precision Intrinsics"). torch's own, which convert to these and back, include
// this file.
#pragma once

#include <torchext/cuda_on_host/types.h>

#include <cmath>
#include <cstdint>
#include <cstring>

namespace torchext::cuda_on_host {

inline uint32_t bits_of_float(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

inline float float_of_bits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

/// IEEE 754 binary16 and bfloat16: from a float, to the nearest, ties to even; and back, exactly.
struct Binary16 {
  static unsigned short bits(float value) {
    const uint32_t given = bits_of_float(value);
    const auto sign = static_cast<unsigned short>(given >> 16 & 0x8000);
    const float magnitude = float_of_bits(given & 0x7fffffff);
    if (magnitude != magnitude) {
      return sign | 0x7e00;
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
      return float_of_bits(sign | 0x7f800000 | fraction << 13);
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

#define TORCHEXT_HALF(Name, Raw, Format)                                \
  struct alignas(2) Name {                                              \
    unsigned short bits;                                                \
                                                                        \
    Name() = default;                                                   \
    Name(float value) : bits(Format::bits(value)) {}                    \
    Name(double value) : Name(static_cast<float>(value)) {}             \
    Name(int value) : Name(static_cast<float>(value)) {}                \
    Name(unsigned value) : Name(static_cast<float>(value)) {}           \
    Name(long value) : Name(static_cast<float>(value)) {}               \
    Name(unsigned long value) : Name(static_cast<float>(value)) {}      \
    Name(long long value) : Name(static_cast<float>(value)) {}          \
    Name(unsigned long long value) : Name(static_cast<float>(value)) {} \
    Name(const Raw& raw) : bits(raw.x) {}                               \
    operator float() const {                                            \
      return Format::value(bits);                                       \
    }                                                                   \
    operator Raw() const {                                              \
      return {bits};                                                    \
    }                                                                   \
    Name& operator+=(Name other) {                                      \
      return *this = Name(float(*this) + float(other));                 \
    }                                                                   \
    Name& operator-=(Name other) {                                      \
      return *this = Name(float(*this) - float(other));                 \
    }                                                                   \
    Name& operator*=(Name other) {                                      \
      return *this = Name(float(*this) * float(other));                 \
    }                                                                   \
    Name& operator/=(Name other) {                                      \
      return *this = Name(float(*this) / float(other));                 \
    }                                                                   \
    friend Name operator+(Name a, Name b) {                             \
      return a += b;                                                    \
    }                                                                   \
    friend Name operator-(Name a, Name b) {                             \
      return a -= b;                                                    \
    }                                                                   \
    friend Name operator*(Name a, Name b) {                             \
      return a *= b;                                                    \
    }                                                                   \
    friend Name operator/(Name a, Name b) {                             \
      return a /= b;                                                    \
    }                                                                   \
    friend Name operator-(Name a) {                                     \
      return Name(-float(a));                                           \
    }                                                                   \
    friend bool operator==(Name a, Name b) {                            \
      return float(a) == float(b);                                      \
    }                                                                   \
    friend bool operator!=(Name a, Name b) {                            \
      return float(a) != float(b);                                      \
    }                                                                   \
    friend bool operator<(Name a, Name b) {                             \
      return float(a) < float(b);                                       \
    }                                                                   \
    friend bool operator>(Name a, Name b) {                             \
      return float(a) > float(b);                                       \
    }                                                                   \
    friend bool operator<=(Name a, Name b) {                            \
      return float(a) <= float(b);                                      \
    }                                                                   \
    friend bool operator>=(Name a, Name b) {                            \
      return float(a) >= float(b);                                      \
    }                                                                   \
  };

TORCHEXT_HALF(__half, __half_raw, ::torchext::cuda_on_host::Binary16)
TORCHEXT_HALF(__nv_bfloat16, __nv_bfloat16_raw, ::torchext::cuda_on_host::Brain16)
#undef TORCHEXT_HALF

#define TORCHEXT_PAIR(Name, One)            \
  struct alignas(4) Name {                  \
    One x, y;                               \
    Name() = default;                       \
    Name(One x_, One y_) : x(x_), y(y_) {}  \
    friend Name operator+(Name a, Name b) { \
      return {a.x + b.x, a.y + b.y};        \
    }                                       \
    friend Name operator-(Name a, Name b) { \
      return {a.x - b.x, a.y - b.y};        \
    }                                       \
    friend Name operator*(Name a, Name b) { \
      return {a.x * b.x, a.y * b.y};        \
    }                                       \
    friend Name operator/(Name a, Name b) { \
      return {a.x / b.x, a.y / b.y};        \
    }                                       \
  };
TORCHEXT_PAIR(__half2, __half)
TORCHEXT_PAIR(__nv_bfloat162, __nv_bfloat16)
#undef TORCHEXT_PAIR

using half = __half;
using half2 = __half2;
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;

#define TORCHEXT_HALF_FUNCTIONS(One, Two)                      \
  inline One __hadd(One a, One b) {                            \
    return a + b;                                              \
  }                                                            \
  inline One __hsub(One a, One b) {                            \
    return a - b;                                              \
  }                                                            \
  inline One __hmul(One a, One b) {                            \
    return a * b;                                              \
  }                                                            \
  inline One __hdiv(One a, One b) {                            \
    return a / b;                                              \
  }                                                            \
  inline One __hfma(One a, One b, One c) {                     \
    return One(std::fma(float(a), float(b), float(c)));        \
  }                                                            \
  inline One __hneg(One a) {                                   \
    return -a;                                                 \
  }                                                            \
  inline One __habs(One a) {                                   \
    return One(std::fabs(float(a)));                           \
  }                                                            \
  inline One __hmax(One a, One b) {                            \
    return One(std::fmax(float(a), float(b)));                 \
  }                                                            \
  inline One __hmin(One a, One b) {                            \
    return One(std::fmin(float(a), float(b)));                 \
  }                                                            \
  inline bool __heq(One a, One b) {                            \
    return a == b;                                             \
  }                                                            \
  inline bool __hne(One a, One b) {                            \
    return a < b || a > b;                                     \
  }                                                            \
  inline bool __hlt(One a, One b) {                            \
    return a < b;                                              \
  }                                                            \
  inline bool __hle(One a, One b) {                            \
    return a <= b;                                             \
  }                                                            \
  inline bool __hgt(One a, One b) {                            \
    return a > b;                                              \
  }                                                            \
  inline bool __hge(One a, One b) {                            \
    return a >= b;                                             \
  }                                                            \
  inline bool __hisnan(One a) {                                \
    return std::isnan(float(a));                               \
  }                                                            \
  inline int __hisinf(One a) {                                 \
    return std::isinf(float(a)) ? (float(a) < 0 ? -1 : 1) : 0; \
  }                                                            \
  inline One hexp(One a) {                                     \
    return One(std::exp(float(a)));                            \
  }                                                            \
  inline One hexp2(One a) {                                    \
    return One(std::exp2(float(a)));                           \
  }                                                            \
  inline One hlog(One a) {                                     \
    return One(std::log(float(a)));                            \
  }                                                            \
  inline One hlog2(One a) {                                    \
    return One(std::log2(float(a)));                           \
  }                                                            \
  inline One hlog10(One a) {                                   \
    return One(std::log10(float(a)));                          \
  }                                                            \
  inline One hsin(One a) {                                     \
    return One(std::sin(float(a)));                            \
  }                                                            \
  inline One hcos(One a) {                                     \
    return One(std::cos(float(a)));                            \
  }                                                            \
  inline One hsqrt(One a) {                                    \
    return One(std::sqrt(float(a)));                           \
  }                                                            \
  inline One hrsqrt(One a) {                                   \
    return One(1.0f / std::sqrt(float(a)));                    \
  }                                                            \
  inline One hrcp(One a) {                                     \
    return One(1.0f / float(a));                               \
  }                                                            \
  inline One hceil(One a) {                                    \
    return One(std::ceil(float(a)));                           \
  }                                                            \
  inline One hfloor(One a) {                                   \
    return One(std::floor(float(a)));                          \
  }                                                            \
  inline One hrint(One a) {                                    \
    return One(std::nearbyint(float(a)));                      \
  }                                                            \
  inline One htrunc(One a) {                                   \
    return One(std::trunc(float(a)));                          \
  }                                                            \
  inline Two __hadd2(Two a, Two b) {                           \
    return a + b;                                              \
  }                                                            \
  inline Two __hsub2(Two a, Two b) {                           \
    return a - b;                                              \
  }                                                            \
  inline Two __hmul2(Two a, Two b) {                           \
    return a * b;                                              \
  }                                                            \
  inline Two __h2div(Two a, Two b) {                           \
    return a / b;                                              \
  }                                                            \
  inline Two __hfma2(Two a, Two b, Two c) {                    \
    return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};     \
  }                                                            \
  inline Two __hmax2(Two a, Two b) {                           \
    return {__hmax(a.x, b.x), __hmax(a.y, b.y)};               \
  }                                                            \
  inline Two __hmin2(Two a, Two b) {                           \
    return {__hmin(a.x, b.x), __hmin(a.y, b.y)};               \
  }                                                            \
  inline Two __hneg2(Two a) {                                  \
    return {-a.x, -a.y};                                       \
  }                                                            \
  inline Two h2exp(Two a) {                                    \
    return {hexp(a.x), hexp(a.y)};                             \
  }                                                            \
  inline float __low2float(Two a) {                            \
    return float(a.x);                                         \
  }                                                            \
  inline float __high2float(Two a) {                           \
    return float(a.y);                                         \
  }

TORCHEXT_HALF_FUNCTIONS(__half, __half2)
TORCHEXT_HALF_FUNCTIONS(__nv_bfloat16, __nv_bfloat162)
#undef TORCHEXT_HALF_FUNCTIONS

inline float __half2float(__half a) {
  return float(a);
}
inline __half __float2half(float a) {
  return __half(a);
}
inline __half __float2half_rn(float a) {
  return __half(a);
}
inline __half __double2half(double a) {
  return __half(a);
}
inline __half __int2half_rn(int a) {
  return __half(a);
}
inline __half __int2half_rz(int a) {
  return __half(a);
}
inline __nv_bfloat16 __int2bfloat16_rz(int a) {
  return __nv_bfloat16(a);
}
inline __nv_bfloat16 __int2bfloat16_rn(int a) {
  return __nv_bfloat16(a);
}
inline int __half2int_rn(__half a) {
  return static_cast<int>(std::nearbyint(float(a)));
}
inline unsigned short __half_as_ushort(__half a) {
  return a.bits;
}
inline __half __ushort_as_half(unsigned short a) {
  return __half(__half_raw{a});
}
inline short __half_as_short(__half a) {
  return static_cast<short>(a.bits);
}
inline __half __short_as_half(short a) {
  return __half(__half_raw{static_cast<unsigned short>(a)});
}
inline __half __low2half(__half2 a) {
  return a.x;
}
inline __half __high2half(__half2 a) {
  return a.y;
}
inline __half2 __halves2half2(__half a, __half b) {
  return {a, b};
}
inline __half2 make_half2(__half a, __half b) {
  return {a, b};
}
inline __half2 __half2half2(__half a) {
  return {a, a};
}
inline __half2 __float2half2_rn(float a) {
  return {__half(a), __half(a)};
}
inline __half2 __floats2half2_rn(float a, float b) {
  return {__half(a), __half(b)};
}
inline __half2 __float22half2_rn(float2 a) {
  return {__half(a.x), __half(a.y)};
}
inline float2 __half22float2(__half2 a) {
  return {float(a.x), float(a.y)};
}

inline float __bfloat162float(__nv_bfloat16 a) {
  return float(a);
}
inline __nv_bfloat16 __float2bfloat16(float a) {
  return __nv_bfloat16(a);
}
inline __nv_bfloat16 __float2bfloat16_rn(float a) {
  return __nv_bfloat16(a);
}
inline __nv_bfloat16 __double2bfloat16(double a) {
  return __nv_bfloat16(a);
}
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 a) {
  return a.bits;
}
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short a) {
  return __nv_bfloat16(__nv_bfloat16_raw{a});
}
inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 a) {
  return a.x;
}
inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 a) {
  return a.y;
}
inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) {
  return {a, b};
}
inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) {
  return {a, b};
}
inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 a) {
  return {a, a};
}
inline __nv_bfloat162 __float2bfloat162_rn(float a) {
  return {__nv_bfloat16(a), __nv_bfloat16(a)};
}
inline __nv_bfloat162 __floats2bfloat162_rn(float a, float b) {
  return {__nv_bfloat16(a), __nv_bfloat16(b)};
}
inline __nv_bfloat162 __float22bfloat162_rn(float2 a) {
  return {__nv_bfloat16(a.x), __nv_bfloat16(a.y)};
}
inline float2 __bfloat1622float2(__nv_bfloat162 a) {
  return {float(a.x), float(a.y)};
}
