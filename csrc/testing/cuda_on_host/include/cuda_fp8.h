// SPDX-License-Identifier: BSD-3-Clause
//
// The types of 8 bits, on torch's own.
#pragma once

#include <torchext/cuda_on_host/half.h>

#include <c10/util/Float8_e4m3fn.h>
#include <c10/util/Float8_e5m2.h>

#define TORCHEXT_FP8(Name, Torch)                                    \
  struct Name {                                                      \
    unsigned char __x;                                               \
                                                                     \
    Name() = default;                                                \
    explicit Name(float value) : __x(Torch(value).x) {}              \
    explicit Name(double value) : Name(static_cast<float>(value)) {} \
    explicit Name(__half value) : Name(float(value)) {}              \
    explicit Name(__nv_bfloat16 value) : Name(float(value)) {}       \
    explicit operator float() const {                                \
      return Torch(__x, Torch::from_bits());                         \
    }                                                                \
    explicit operator __half() const {                               \
      return __half(float(*this));                                   \
    }                                                                \
    explicit operator __nv_bfloat16() const {                        \
      return __nv_bfloat16(float(*this));                            \
    }                                                                \
  };
TORCHEXT_FP8(__nv_fp8_e4m3, c10::Float8_e4m3fn)
TORCHEXT_FP8(__nv_fp8_e5m2, c10::Float8_e5m2)
#undef TORCHEXT_FP8
using __nv_fp8_storage_t = unsigned char;
