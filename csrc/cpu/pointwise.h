// SPDX-License-Identifier: BSD-3-Clause
//
// Runs a function of one or two values over a TensorIterator. Plain loops, which compilers
// vectorise where the operands are contiguous or one of them is a scalar.
#pragma once

#include "vectorize.h" // first

#include <ATen/OpMathType.h>
#include <ATen/TensorIterator.h>

#include <type_traits>

namespace myns::native {

template <typename T>
inline const T& element(const char* data, int64_t stride, int64_t i) {
  return *reinterpret_cast<const T*>(data + stride * i);
}

/// out = op(a), with `op` in the arithmetic type of T: float for float16 and bfloat16.
template <typename T, typename Op>
void unary_kernel(at::TensorIteratorBase& iter, const Op& op) {
  using Acc = at::opmath_type<T>;
  constexpr int64_t size = sizeof(T);
  iter.for_each([&op](char** data, const int64_t* strides, int64_t n) {
    const char* a = data[1];
    const auto loop = [&](int64_t out_stride, int64_t a_stride) {
      for (int64_t i = 0; i < n; ++i) {
        *reinterpret_cast<T*>(data[0] + out_stride * i) =
            static_cast<T>(op(static_cast<Acc>(element<T>(a, a_stride, i))));
      }
    };
    if (strides[0] == size && strides[1] == size) {
      loop(size, size);
    } else {
      loop(strides[0], strides[1]);
    }
  });
  iter.cast_outputs();
}

/// out = op(a, b) where both are tensors of dtype T.
template <typename T, typename Op>
void binary_loop(at::TensorIteratorBase& iter, const Op& op) {
  using Acc = at::opmath_type<T>;
  constexpr int64_t size = sizeof(T);
  iter.for_each([&op](char** data, const int64_t* strides, int64_t n) {
    char* out = data[0];
    const char* a = data[1];
    const char* b = data[2];
    const auto loop = [&](int64_t out_stride, auto a_at, auto b_at) {
      for (int64_t i = 0; i < n; ++i) {
        *reinterpret_cast<T*>(out + out_stride * i) = static_cast<T>(op(a_at(i), b_at(i)));
      }
    };
    const auto vector = [](const char* x) {
      return [x](int64_t i) { return static_cast<Acc>(element<T>(x, size, i)); };
    };
    const auto scalar = [](const char* x) {
      return [value = static_cast<Acc>(element<T>(x, 0, 0))](int64_t) { return value; };
    };
    const auto strided = [](const char* x, int64_t stride) {
      return [=](int64_t i) { return static_cast<Acc>(element<T>(x, stride, i)); };
    };
    if (strides[0] == size && strides[1] == size && strides[2] == size) {
      loop(size, vector(a), vector(b));
    } else if (strides[0] == size && strides[1] == size && strides[2] == 0) {
      loop(size, vector(a), scalar(b));
    } else if (strides[0] == size && strides[1] == 0 && strides[2] == size) {
      loop(size, scalar(a), vector(b));
    } else {
      loop(strides[0], strided(a, strides[1]), strided(b, strides[2]));
    }
  });
  iter.cast_outputs();
}

/// out = op(a, b), likewise. A scalar beside float16 or bfloat16 keeps the precision it came with.
template <typename T, typename Op>
void binary_kernel(at::TensorIteratorBase& iter, const Op& op) {
  using Acc = at::opmath_type<T>;
  if constexpr (!std::is_same_v<T, Acc>) {
    if (iter.is_cpu_scalar(2)) {
      const Acc b = iter.original_scalar_value<Acc>(2);
      iter.remove_operand(2);
      return unary_kernel<T>(iter, [&op, b](Acc a) { return op(a, b); });
    }
    if (iter.is_cpu_scalar(1)) {
      const Acc a = iter.original_scalar_value<Acc>(1);
      iter.remove_operand(1);
      return unary_kernel<T>(iter, [&op, a](Acc b) { return op(a, b); });
    }
  }
  binary_loop<T>(iter, op);
}

} // namespace myns::native
