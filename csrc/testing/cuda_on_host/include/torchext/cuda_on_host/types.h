// SPDX-License-Identifier: BSD-3-Clause
//
// CUDA's own types: dim3 and the short vectors, with the alignment that theirs have.
#pragma once

#include <cstddef>

#define TORCHEXT_VECTOR_1(T, Name, Align1) \
  struct alignas(Align1) Name##1 {         \
    T x;                                   \
  };                                       \
  constexpr Name##1 make_##Name##1(T x) {  \
    return {x};                            \
  }
#define TORCHEXT_VECTOR_2(T, Name, Align2)     \
  struct alignas(Align2) Name##2 {             \
    T x, y;                                    \
  };                                           \
  constexpr Name##2 make_##Name##2(T x, T y) { \
    return {x, y};                             \
  }
#define TORCHEXT_VECTOR_3(T, Name, Align3)          \
  struct alignas(Align3) Name##3 {                  \
    T x, y, z;                                      \
  };                                                \
  constexpr Name##3 make_##Name##3(T x, T y, T z) { \
    return {x, y, z};                               \
  }
#define TORCHEXT_VECTOR_4(T, Name, Align4)               \
  struct alignas(Align4) Name##4 {                       \
    T x, y, z, w;                                        \
  };                                                     \
  constexpr Name##4 make_##Name##4(T x, T y, T z, T w) { \
    return {x, y, z, w};                                 \
  }
#define TORCHEXT_VECTORS(T, Name, Align1, Align2, Align3, Align4) \
  TORCHEXT_VECTOR_1(T, Name, Align1)                              \
  TORCHEXT_VECTOR_2(T, Name, Align2)                              \
  TORCHEXT_VECTOR_3(T, Name, Align3)                              \
  TORCHEXT_VECTOR_4(T, Name, Align4)

TORCHEXT_VECTORS(signed char, char, 1, 2, 1, 4)
TORCHEXT_VECTORS(unsigned char, uchar, 1, 2, 1, 4)
TORCHEXT_VECTORS(short, short, 2, 4, 2, 8)
TORCHEXT_VECTORS(unsigned short, ushort, 2, 4, 2, 8)
TORCHEXT_VECTORS(int, int, 4, 8, 4, 16)
TORCHEXT_VECTORS(unsigned, uint, 4, 8, 4, 16)
TORCHEXT_VECTORS(long, long, 8, 16, 8, 16)
TORCHEXT_VECTORS(unsigned long, ulong, 8, 16, 8, 16)
TORCHEXT_VECTORS(long long, longlong, 8, 16, 8, 16)
TORCHEXT_VECTORS(unsigned long long, ulonglong, 8, 16, 8, 16)
TORCHEXT_VECTORS(float, float, 4, 8, 4, 16)
TORCHEXT_VECTORS(double, double, 8, 16, 8, 16)

#undef TORCHEXT_VECTORS
#undef TORCHEXT_VECTOR_1
#undef TORCHEXT_VECTOR_2
#undef TORCHEXT_VECTOR_3
#undef TORCHEXT_VECTOR_4

struct dim3 {
  unsigned x, y, z;

  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const {
    return {x, y, z};
  }
};
