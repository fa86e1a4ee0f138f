// SPDX-License-Identifier: BSD-3-Clause
//
// Runs a function of one or two values over tensors. Plain loops, which compilers vectorise where
// the operands are contiguous or one of them is a scalar.
#pragma once

#include "vectorize.h" // first

#include <ATen/EmptyTensor.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <torchext/elementwise.h>

#include <array>
#include <optional>
#include <tuple>
#include <type_traits>

namespace myns::native {

/// One or two inputs and the new result of a pointwise operator. Contiguous inputs of one shape and
/// dtype are taken as they are: for a small result, setting up an iterator is half of the work.
class Pointwise {
 public:
  template <typename... Inputs>
  explicit Pointwise(torchext::Promote promote, const at::Tensor& first, const Inputs&... rest) {
    const bool keeps_dtype =
        promote == torchext::Promote::kCommon || first.is_floating_point() || first.is_complex();
    if (keeps_dtype && is_plain(first) && (... && (is_plain(rest) && is_like(rest, first)))) {
      result_ = at::Tensor(at::detail::empty_cpu(first.sizes(), first.options()));
      const at::Tensor& last = std::get<sizeof...(Inputs)>(std::tie(first, rest...));
      inputs_ = {
          static_cast<const char*>(first.const_data_ptr()),
          static_cast<const char*>(last.const_data_ptr())};
    } else {
      iterator_.emplace(promote, at::Tensor(), first, rest...);
    }
  }

  /// The iterator, null where the inputs are taken as they are.
  at::TensorIteratorBase* iterator() {
    return iterator_.has_value() ? &*iterator_ : nullptr;
  }

  at::ScalarType common_dtype() const {
    return iterator_.has_value() ? iterator_->common_dtype() : result_.scalar_type();
  }

  const at::Tensor& output() const {
    return iterator_.has_value() ? iterator_->output() : result_;
  }

  /// Calls `f` with pieces of the memory: output, first and last input, number of elements.
  template <typename T, typename F>
  void for_each_piece(const F& f) const {
    char* const output = static_cast<char*>(result_.mutable_data_ptr());
    const auto piece = [&](int64_t begin, int64_t end) {
      const auto offset = static_cast<int64_t>(sizeof(T)) * begin;
      f(output + offset, inputs_[0] + offset, inputs_[1] + offset, end - begin);
    };
    at::parallel_for(0, result_.numel(), at::internal::GRAIN_SIZE, piece);
  }

 private:
  static bool is_plain(const at::Tensor& input) {
    return input.is_cpu() && input.is_contiguous() &&
           !input.unsafeGetTensorImpl()->is_wrapped_number();
  }

  static bool is_like(const at::Tensor& input, const at::Tensor& first) {
    return input.scalar_type() == first.scalar_type() && input.sizes() == first.sizes();
  }

  at::Tensor result_;
  std::array<const char*, 2> inputs_{};
  std::optional<torchext::PointwiseIterator> iterator_;
};

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
MYNS_VECTOR_CLONES void contiguous_loop(char* out, int64_t n, const Op& op, Operands... operands) {
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

/// out = op(a), with `op` in the arithmetic type of T: float for float16 and bfloat16.
template <typename T, typename Op>
void unary_loop(at::TensorIteratorBase& iter, const Op& op) {
  constexpr int64_t size = sizeof(T);
  iter.for_each([&op](char** data, const int64_t* strides, int64_t n) {
    if (strides[0] == size && strides[1] == size) {
      contiguous_loop<T>(data[0], n, op, Contiguous<T>{data[1]});
    } else {
      strided_loop<T>(data[0], strides[0], n, op, Strided<T>{data[1], strides[1]});
    }
  });
  iter.cast_outputs();
}

template <typename T, typename Op>
void unary_kernel(Pointwise& operands, const Op& op) {
  if (at::TensorIteratorBase* iter = operands.iterator()) {
    return unary_loop<T>(*iter, op);
  }
  operands.for_each_piece<T>([&op](char* out, const char* a, const char* /*b*/, int64_t n) {
    contiguous_loop<T>(out, n, op, Contiguous<T>{a});
  });
}

/// out = op(a, b) where both are tensors of dtype T.
template <typename T, typename Op>
void binary_loop(at::TensorIteratorBase& iter, const Op& op) {
  constexpr int64_t size = sizeof(T);
  iter.for_each([&op](char** data, const int64_t* strides, int64_t n) {
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
  iter.cast_outputs();
}

/// How a scalar beside float16 or bfloat16 takes part.
enum class ScalarOperand {
  kRounded, ///< rounded to the dtype, as at::add does
  kExact,   ///< with the precision that it came with, as at::mul does
};

/// out = op(a, b), with `op` in the arithmetic type of T.
template <typename T, typename Op>
void binary_kernel(
    Pointwise& operands, const Op& op, ScalarOperand scalar = ScalarOperand::kExact) {
  using Acc = at::opmath_type<T>;
  at::TensorIteratorBase* iter = operands.iterator();
  if (iter == nullptr) {
    return operands.for_each_piece<T>([&op](char* out, const char* a, const char* b, int64_t n) {
      contiguous_loop<T>(out, n, op, Contiguous<T>{a}, Contiguous<T>{b});
    });
  }
  if constexpr (!std::is_same_v<T, Acc>) {
    const bool exact = scalar == ScalarOperand::kExact;
    if (exact && iter->is_cpu_scalar(2)) {
      const Acc b = iter->original_scalar_value<Acc>(2);
      iter->remove_operand(2);
      return unary_loop<T>(*iter, [&op, b](Acc a) { return op(a, b); });
    }
    if (exact && iter->is_cpu_scalar(1)) {
      const Acc a = iter->original_scalar_value<Acc>(1);
      iter->remove_operand(1);
      return unary_loop<T>(*iter, [&op, a](Acc b) { return op(a, b); });
    }
  }
  binary_loop<T>(*iter, op);
}

} // namespace myns::native
