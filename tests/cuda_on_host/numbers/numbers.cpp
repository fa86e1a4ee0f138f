// SPDX-License-Identifier: BSD-3-Clause
//
// Prints what functions of numbers of 16 and 8 bits return, a line for each: a digest of the bits for
// many arguments. Compiled with the toolkit's headers, whose functions run on the host as well, and
// with those that stand for them where there is no GPU.
#ifdef TORCHEXT_CUDA_ON_HOST
#include <torchext/cuda_on_host/device.h>
#endif

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <vector>

namespace {

template <typename T>
uint64_t bits_of(const T& value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T) < 8 ? sizeof(T) : 8);
  return bits;
}

class Digest {
 public:
  explicit Digest(const char* name) : name_(name) {}
  ~Digest() {
    std::printf("%s %016llx\n", name_, static_cast<unsigned long long>(hash_));
  }
  template <typename T>
  void add(const T& value) {
    hash_ = (hash_ ^ bits_of(value)) * 0x9E3779B97F4A7C15u;
    hash_ ^= hash_ >> 29;
  }

 private:
  const char* name_;
  uint64_t hash_ = 1;
};

template <typename T>
T from_bits(unsigned bits);
template <>
__half from_bits<__half>(unsigned bits) {
  return __ushort_as_half(static_cast<unsigned short>(bits));
}
template <>
__nv_bfloat16 from_bits<__nv_bfloat16>(unsigned bits) {
  return __ushort_as_bfloat16(static_cast<unsigned short>(bits));
}

float float_of(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Of every exponent, beside what rounds one way and another, and special ones.
std::vector<float> floats() {
  std::vector<float> found = {0.0f, -0.0f, INFINITY, -INFINITY, NAN};
  uint64_t state = 7;
  for (uint32_t exponent = 0; exponent < 255; ++exponent) {
    for (uint32_t fraction :
         {0u,
          1u,
          0x7fffu,
          0x8000u,
          0x8001u,
          0xfffu,
          0x1000u,
          0x1001u,
          0x3000u,
          0x80000u,
          0x100000u,
          0x180000u,
          0x180001u,
          0x7fffffu}) {
      for (int i = 0; i < 3; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const uint32_t more = i == 0 ? 0 : static_cast<uint32_t>(state >> 41) & ~0x1fffu;
        const float value = float_of(exponent << 23 | ((fraction ^ more) & 0x7fffff));
        found.push_back(value);
        found.push_back(-value);
      }
    }
  }
  return found;
}

std::vector<long long> integers() {
  std::vector<long long> found = {0, std::numeric_limits<long long>::min()};
  uint64_t state = 3;
  for (int bit = 0; bit < 64; ++bit) {
    for (long long step : {-2LL, -1LL, 0LL, 1LL, 2LL}) {
      const auto value = static_cast<long long>((1ULL << bit) + static_cast<uint64_t>(step));
      found.push_back(value);
      found.push_back(static_cast<long long>(0 - static_cast<uint64_t>(value)));
    }
    for (int i = 0; i < 64; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      found.push_back(static_cast<long long>(state) >> bit);
    }
  }
  return found;
}

#define ONE(name)                          \
  {                                        \
    Digest digest(prefix_of(T{}, #name));  \
    for (unsigned i = 0; i < 65536; ++i) { \
      digest.add(name(from_bits<T>(i)));   \
    }                                      \
  }
#define TWO(name)                                           \
  {                                                         \
    Digest digest(prefix_of(T{}, #name));                   \
    for (unsigned i = 0; i < 65536; i += 61) {              \
      for (unsigned j = 0; j < 65536; j += 67) {            \
        digest.add(name(from_bits<T>(i), from_bits<T>(j))); \
      }                                                     \
      digest.add(name(from_bits<T>(i), from_bits<T>(i)));   \
    }                                                       \
  }
#define PAIRS(name)                                         \
  {                                                         \
    Digest digest(prefix_of(T{}, #name));                   \
    for (unsigned i = 0; i < 65536; i += 61) {              \
      for (unsigned j = 0; j < 65536; j += 67) {            \
        const Two a(from_bits<T>(i), from_bits<T>(j));      \
        const Two b(from_bits<T>(j ^ 21), from_bits<T>(i)); \
        digest.add(name(a, b));                             \
      }                                                     \
    }                                                       \
  }
#define FROM(name, values, From)                  \
  {                                               \
    Digest digest(#name);                         \
    for (const auto value : values) {             \
      digest.add(name(static_cast<From>(value))); \
    }                                             \
  }
#define FROM_ALL(name, values, From) \
  FROM(name##_rn, values, From)      \
  FROM(name##_rz, values, From)      \
  FROM(name##_rd, values, From)      \
  FROM(name##_ru, values, From)
#define TO(name)                           \
  {                                        \
    Digest digest(#name);                  \
    for (unsigned i = 0; i < 65536; ++i) { \
      const auto value = from_bits<T>(i);  \
      if (!__hisnan(value)) {              \
        digest.add(name(value));           \
      }                                    \
    }                                      \
  }

char text[100];
const char* prefix_of(__half, const char* name) {
  std::snprintf(text, sizeof(text), "half %s", name);
  return text;
}
const char* prefix_of(__nv_bfloat16, const char* name) {
  std::snprintf(text, sizeof(text), "bfloat16 %s", name);
  return text;
}

template <typename T, typename Two>
void print_functions() {
  // those that are exact, or rounded once
  ONE(__hneg)
  ONE(__habs) ONE(__hisnan) ONE(__hisinf) TWO(__hadd) TWO(__hsub) TWO(__hmul) TWO(__hdiv)
      TWO(__hadd_rn) TWO(__hsub_rn) TWO(__hmul_rn) TWO(__hadd_sat) TWO(__hsub_sat) TWO(__hmul_sat)
          TWO(__hmax) TWO(__hmin) TWO(__hmax_nan) TWO(__hmin_nan) TWO(__heq) TWO(__hne) TWO(__hlt)
              TWO(__hle) TWO(__hgt) TWO(__hge) TWO(__hequ) TWO(__hneu) TWO(__hltu) TWO(__hleu)
                  TWO(__hgtu) TWO(__hgeu) PAIRS(__hadd2) PAIRS(__hmul2) PAIRS(__h2div)
                      PAIRS(__hmax2) PAIRS(__hmin2_nan) PAIRS(__heq2) PAIRS(__hneu2)
                          PAIRS(__hlt2_mask) PAIRS(__hgeu2_mask) PAIRS(__hble2) PAIRS(__hbgtu2)
}

template <typename T>
void print_operators() {
  Digest digest(prefix_of(T{}, "operators"));
  for (unsigned i = 0; i < 65536; i += 61) {
    for (unsigned j = 0; j < 65536; j += 67) {
      T a = from_bits<T>(i);
      const T b = from_bits<T>(j);
      digest.add(a + b);
      digest.add(a * b);
      digest.add(a == b);
      digest.add(a != b);
      digest.add(a <= b);
      a -= b;
      a /= b;
      digest.add(-a);
      digest.add(++a);
      digest.add(static_cast<float>(a));
    }
  }
}

template <typename Fp8>
void print_type(const char* name) {
  Digest digest(name);
  for (const float value : floats()) {
    digest.add(Fp8(value).__x);
    if (value == value) {
      digest.add(Fp8(static_cast<double>(value) * 1.0000001).__x);
    }
    digest.add(Fp8(__half(value)).__x);
  }
  for (const long long value : integers()) {
    digest.add(Fp8(value).__x);
    digest.add(Fp8(static_cast<int>(value)).__x);
  }
  for (int i = 0; i < 256; ++i) {
    Fp8 value;
    value.__x = static_cast<unsigned char>(i);
    digest.add(static_cast<float>(value));
    digest.add(static_cast<bool>(value));
    digest.add(static_cast<__half>(value));
    if (static_cast<float>(value) == static_cast<float>(value)) {
      digest.add(static_cast<int>(value));
      digest.add(static_cast<unsigned char>(value));
      digest.add(static_cast<short>(value));
    }
  }
}

void print_fp8() {
  for (const auto kind : {__NV_E4M3, __NV_E5M2}) {
    for (const auto saturation : {__NV_NOSAT, __NV_SATFINITE}) {
      std::snprintf(text, sizeof(text), "to fp8 %d %d", int(kind), int(saturation));
      Digest digest(text);
      for (const float value : floats()) {
        digest.add(__nv_cvt_float_to_fp8(value, saturation, kind));
        digest.add(__nv_cvt_halfraw_to_fp8(__half(value), saturation, kind));
        digest.add(__nv_cvt_bfloat16raw_to_fp8(__nv_bfloat16(value), saturation, kind));
        if (value == value) { // else it is what the processor makes of it
          digest.add(__nv_cvt_double_to_fp8(double(value) * 1.00000001, saturation, kind));
        }
        digest.add(__nv_cvt_float2_to_fp8x2(float2{value, -value}, saturation, kind));
      }
    }
    std::snprintf(text, sizeof(text), "from fp8 %d", int(kind));
    Digest digest(text);
    for (int i = 0; i < 256; ++i) {
      digest.add(__nv_cvt_fp8_to_halfraw(static_cast<unsigned char>(i), kind).x);
    }
  }
  print_type<__nv_fp8_e4m3>("e4m3");
  print_type<__nv_fp8_e5m2>("e5m2");
  Digest digest("fp8 of two and four");
  for (const float value : floats()) {
    const __nv_fp8x4_e4m3 four(float4{value, 1.0f, -value, value / 3});
    digest.add(four.__x);
    const float4 back(four);
    digest.add(back.x);
    digest.add(back.w);
    digest.add(__nv_fp8x2_e5m2(float2{value, value * 3}).__x);
  }
}

} // namespace

int main() {
  print_functions<__half, __half2>();
  print_functions<__nv_bfloat16, __nv_bfloat162>();
  print_operators<__half>();
  print_operators<__nv_bfloat16>();
  {
    using T = __half;
    FROM_ALL(__float2half, floats(), float)
    FROM(__double2half, floats(), double)
    FROM_ALL(__int2half, integers(), int)
    FROM_ALL(__uint2half, integers(), unsigned)
    FROM_ALL(__short2half, integers(), short)
    FROM_ALL(__ushort2half, integers(), unsigned short)
    FROM_ALL(__ll2half, integers(), long long)
    FROM_ALL(__ull2half, integers(), unsigned long long)
    TO(__half2int_rz)
    TO(__half2uint_rz) TO(__half2short_rz) TO(__half2ushort_rz) TO(__half2ll_rz) TO(__half2ull_rz)
        TO(__half2char_rz) TO(__half2uchar_rz)
  }
  {
    using T = __nv_bfloat16;
    FROM_ALL(__float2bfloat16, floats(), float)
    FROM(__double2bfloat16, floats(), double)
    FROM(__int2bfloat16_rn, integers(), int)
    FROM(__uint2bfloat16_rn, integers(), unsigned)
    FROM(__short2bfloat16_rn, integers(), short)
    FROM(__ushort2bfloat16_rn, integers(), unsigned short)
    FROM(__ll2bfloat16_rn, integers(), long long)
    FROM(__ull2bfloat16_rn, integers(), unsigned long long)
    TO(__bfloat162int_rz)
    TO(__bfloat162uint_rz) TO(__bfloat162short_rz) TO(__bfloat162ushort_rz) TO(__bfloat162ll_rz)
        TO(__bfloat162ull_rz) TO(__bfloat162char_rz) TO(__bfloat162uchar_rz)
  }
  print_fp8();
}
