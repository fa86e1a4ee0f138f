// SPDX-License-Identifier: BSD-3-Clause
//
// Runs a function of one to three values over the operands of a TensorIterator, on the CPU. Plain
// loops, which compilers vectorise where the operands are contiguous or one of them is a scalar.
// To be included before anything else.
#pragma once

#include <torchext/vectorize.h> // first

#include <ATen/OpMathType.h>
#include <ATen/TensorIterator.h>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace torchext {
inline namespace v1 {

template <typename T>
C10_ALWAYS_INLINE const T& element(const char* data, int64_t stride, int64_t i) {
  return *reinterpret_cast<const T*>(data + stride * i);
}

/// The element of an operand at `i`, by where its elements stand.
template <typename T>
struct Contiguous {
  const char* data;
  C10_ALWAYS_INLINE at::opmath_type<T> operator()(int64_t i) const {
    return static_cast<at::opmath_type<T>>(element<T>(data, sizeof(T), i));
  }
};

template <typename T>
struct Strided {
  const char* data;
  int64_t stride;
  C10_ALWAYS_INLINE at::opmath_type<T> operator()(int64_t i) const {
    return static_cast<at::opmath_type<T>>(element<T>(data, stride, i));
  }
};

template <typename T>
struct Repeated {
  at::opmath_type<T> value;
  C10_ALWAYS_INLINE at::opmath_type<T> operator()(int64_t /*i*/) const {
    return value;
  }
};

/// One loop over contiguous output, for `operands` that are callable with an index.
template <typename T, typename Op, typename... Operands>
TORCHEXT_VECTOR_CLONES void contiguous_loop(
    char* out, int64_t n, const Op& op, Operands... operands) {
  TORCHEXT_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    reinterpret_cast<T*>(out)[i] = static_cast<T>(op(operands(i)...));
  }
}

template <typename T, typename Op, typename... Operands>
void strided_loop(char* out, int64_t stride, int64_t n, const Op& op, Operands... operands) {
  for (int64_t i = 0; i < n; ++i) {
    *reinterpret_cast<T*>(out + stride * i) = static_cast<T>(op(operands(i)...));
  }
}

/// Calls `loop(data, strides, n)` with pieces of the N operands. A small piece of memory in one line
/// needs no iteration, which is a good part of the work there.
template <size_t N, typename Loop>
void for_each_piece(at::TensorIteratorBase& iter, const Loop& loop) {
  if (iter.ndim() == 1 && iter.numel() < at::internal::GRAIN_SIZE) {
    char* data[N];
    int64_t strides[N];
    for (size_t i = 0; i < N; ++i) {
      data[i] = static_cast<char*>(iter.data_ptr(static_cast<int64_t>(i)));
      strides[i] = iter.strides(static_cast<int64_t>(i))[0];
    }
    loop(data, strides, iter.numel());
  } else {
    iter.for_each(loop);
  }
  iter.cast_outputs();
}

/// out = op(a), with `op` in the arithmetic type of T: float for float16 and bfloat16.
template <typename T, typename Op>
void unary_kernel(at::TensorIteratorBase& iter, const Op& op) {
  constexpr int64_t size = sizeof(T);
  for_each_piece<2>(iter, [&op](char** data, const int64_t* strides, int64_t n) {
    if (strides[0] == size && strides[1] == size) {
      contiguous_loop<T>(data[0], n, op, Contiguous<T>{data[1]});
    } else {
      strided_loop<T>(data[0], strides[0], n, op, Strided<T>{data[1], strides[1]});
    }
  });
}

/// out = op(a, b) where both are tensors of dtype T.
template <typename T, typename Op>
void binary_loop(at::TensorIteratorBase& iter, const Op& op) {
  constexpr int64_t size = sizeof(T);
  for_each_piece<3>(iter, [&op](char** data, const int64_t* strides, int64_t n) {
    const Contiguous<T> a{data[1]};
    const Contiguous<T> b{data[2]};
    if (strides[0] == size && strides[1] == size && strides[2] == size) {
      contiguous_loop<T>(data[0], n, op, a, b);
    } else if (strides[0] == size && strides[1] == size && strides[2] == 0) {
      contiguous_loop<T>(data[0], n, op, a, Repeated<T>{b(0)});
    } else if (strides[0] == size && strides[1] == 0 && strides[2] == size) {
      contiguous_loop<T>(data[0], n, op, Repeated<T>{a(0)}, b);
    } else {
      const Strided<T> strided_a{data[1], strides[1]};
      const Strided<T> strided_b{data[2], strides[2]};
      strided_loop<T>(data[0], strides[0], n, op, strided_a, strided_b);
    }
  });
}

/// How a scalar beside float16 or bfloat16 takes part.
enum class ScalarOperand {
  kRounded, ///< rounded to the dtype, as at::add does
  kExact,   ///< with the precision that it came with, as at::mul does
};

/// out = op(a, b), with `op` in the arithmetic type of T.
template <typename T, typename Op>
void binary_kernel(
    at::TensorIteratorBase& iter, const Op& op, ScalarOperand scalar = ScalarOperand::kExact) {
  using Acc = at::opmath_type<T>;
  if constexpr (!std::is_same_v<T, Acc>) {
    const bool exact = scalar == ScalarOperand::kExact;
    if (exact && iter.is_cpu_scalar(2)) {
      const Acc b = iter.original_scalar_value<Acc>(2);
      iter.remove_operand(2);
      return unary_kernel<T>(iter, [&op, b](Acc a) { return op(a, b); });
    }
    if (exact && iter.is_cpu_scalar(1)) {
      const Acc a = iter.original_scalar_value<Acc>(1);
      iter.remove_operand(1);
      return unary_kernel<T>(iter, [&op, a](Acc b) { return op(a, b); });
    }
  }
  binary_loop<T>(iter, op);
}

/// out = op(a, b, c), with `op` in the arithmetic type of T.
template <typename T, typename Op>
void ternary_kernel(at::TensorIteratorBase& iter, const Op& op) {
  constexpr int64_t size = sizeof(T);
  for_each_piece<4>(iter, [&op](char** data, const int64_t* strides, int64_t n) {
    if (strides[0] == size && strides[1] == size && strides[2] == size && strides[3] == size) {
      const Contiguous<T> a{data[1]}, b{data[2]}, c{data[3]};
      contiguous_loop<T>(data[0], n, op, a, b, c);
    } else {
      const Strided<T> a{data[1], strides[1]}, b{data[2], strides[2]}, c{data[3], strides[3]};
      strided_loop<T>(data[0], strides[0], n, op, a, b, c);
    }
  });
}

} // namespace v1
} // namespace torchext
