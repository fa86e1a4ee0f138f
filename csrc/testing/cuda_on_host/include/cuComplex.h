// SPDX-License-Identifier: BSD-3-Clause
//
// Complex numbers as pairs, and what CUDA has of functions of them.
#pragma once

#include <torchext/cuda_on_host/math.h>
#include <torchext/cuda_on_host/types.h>

#include <complex>

using cuFloatComplex = float2;
using cuDoubleComplex = double2;
using cuComplex = cuFloatComplex;

#define TORCHEXT_COMPLEX(Real, Pair, Name, f)                                   \
  inline Real cuCreal##f(Pair a) {                                              \
    return a.x;                                                                 \
  }                                                                             \
  inline Real cuCimag##f(Pair a) {                                              \
    return a.y;                                                                 \
  }                                                                             \
  inline Pair make_cu##Name##Complex(Real real, Real imaginary) {               \
    return {real, imaginary};                                                   \
  }                                                                             \
  inline Pair cuConj##f(Pair a) {                                               \
    return {a.x, -a.y};                                                         \
  }                                                                             \
  inline Pair cuCadd##f(Pair a, Pair b) {                                       \
    return {a.x + b.x, a.y + b.y};                                              \
  }                                                                             \
  inline Pair cuCsub##f(Pair a, Pair b) {                                       \
    return {a.x - b.x, a.y - b.y};                                              \
  }                                                                             \
  inline Pair cuCmul##f(Pair a, Pair b) {                                       \
    return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x};                      \
  }                                                                             \
  inline Pair cuCdiv##f(Pair a, Pair b) {                                       \
    const auto c = std::complex<Real>(a.x, a.y) / std::complex<Real>(b.x, b.y); \
    return {c.real(), c.imag()};                                                \
  }                                                                             \
  inline Real cuCabs##f(Pair a) {                                               \
    return std::hypot(a.x, a.y);                                                \
  }
TORCHEXT_COMPLEX(float, cuFloatComplex, Float, f)
TORCHEXT_COMPLEX(double, cuDoubleComplex, Double, )
#undef TORCHEXT_COMPLEX

inline cuComplex make_cuComplex(float real, float imaginary) {
  return {real, imaginary};
}
inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex a) {
  return {a.x, a.y};
}
inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex a) {
  return {static_cast<float>(a.x), static_cast<float>(a.y)};
}
inline cuComplex cuCfmaf(cuComplex a, cuComplex b, cuComplex c) {
  return cuCaddf(cuCmulf(a, b), c);
}
inline cuDoubleComplex cuCfma(cuDoubleComplex a, cuDoubleComplex b, cuDoubleComplex c) {
  return cuCadd(cuCmul(a, b), c);
}
