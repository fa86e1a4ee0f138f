// SPDX-License-Identifier: BSD-3-Clause
//
// What pointwise operators share beside TensorIterator: the strides of a result whose sizes are
// symbolic, which are those that TensorIterator would give it, and rules for scalars.
//
// Header only, no mutable statics: several libraries in one process may include it.
#pragma once

#include <ATen/ExpandUtils.h>
#include <ATen/core/Tensor.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/Scalar.h>
#include <c10/core/SymInt.h>
#include <c10/util/DimVector.h>

#include <algorithm>
#include <utility>

namespace torchext {
inline namespace v1 {

namespace detail {

class Operand;
using Inputs = c10::ArrayRef<Operand>;
inline c10::SymDimVector ordered_strides(Inputs inputs, c10::SymIntArrayRef sizes);

/// A tensor that decides on the strides of a result: as it is, or as a conversion makes it, which
/// keeps the order of dimensions, and no gaps and no strides of 0.
class Operand {
 public:
  explicit Operand(const at::Tensor& tensor, bool is_converted = false)
      : tensor_(&tensor), is_converted_(is_converted && !is_dense(tensor)) {
    if (is_converted_) {
      converted_ = ordered_strides(Operand(tensor), tensor.sym_sizes());
    }
  }

  c10::SymIntArrayRef sizes() const {
    return tensor_->sym_sizes();
  }

  c10::SymIntArrayRef strides() const {
    return is_converted_ ? c10::SymIntArrayRef(converted_) : tensor_->sym_strides();
  }

  bool is_contiguous() const {
    return !is_converted_ && tensor_->is_contiguous_or_false();
  }

  bool is_dense() const {
    return is_converted_ || is_dense(*tensor_);
  }

  /// Whether it has other strides than the tensor.
  bool is_converted() const {
    return is_converted_;
  }

 private:
  static bool is_dense(const at::Tensor& tensor) {
    return tensor.unsafeGetTensorImpl()->is_non_overlapping_and_dense_or_false();
  }

  const at::Tensor* tensor_;
  bool is_converted_;
  c10::SymDimVector converted_;
};

/// Stride of an input along a dimension of the result, 0 where it is broadcast.
inline c10::SymInt broadcast_stride(const Operand& input, c10::SymIntArrayRef sizes, int64_t dim) {
  const int64_t own = dim - static_cast<int64_t>(sizes.size() - input.sizes().size());
  if (own < 0) {
    return 0;
  }
  const bool expanded = TORCH_GUARD_OR_FALSE(input.sizes()[own].sym_eq(1)) &&
                        !TORCH_GUARD_OR_FALSE(sizes[dim].sym_eq(1));
  return expanded ? c10::SymInt(0) : input.strides()[own];
}

/// Whether dimension `a` of the result varies slower (1) or faster (-1) than `b`; 0: do not care.
inline int compare_dims(Inputs inputs, c10::SymIntArrayRef sizes, int64_t a, int64_t b) {
  for (const Operand& input : inputs) {
    const c10::SymInt stride_a = broadcast_stride(input, sizes, a);
    const c10::SymInt stride_b = broadcast_stride(input, sizes, b);
    if (TORCH_GUARD_OR_FALSE(stride_a.sym_eq(0)) || TORCH_GUARD_OR_FALSE(stride_b.sym_eq(0))) {
      continue;
    }
    if (TORCH_GUARD_OR_FALSE(stride_a.sym_lt(stride_b))) {
      return -1;
    }
    if (TORCH_GUARD_OR_FALSE(stride_a.sym_gt(stride_b))) {
      return 1;
    }
    // Equal strides: one of the two has size 1, and the larger one goes outside.
    if (TORCH_GUARD_OR_FALSE(sizes[a].sym_gt(sizes[b]))) {
      return 1;
    }
  }
  return 0;
}

/// Strides that TensorIterator gives a result: the inputs' order of dimensions, without gaps.
inline c10::SymDimVector ordered_strides(Inputs inputs, c10::SymIntArrayRef sizes) {
  const int64_t ndim = static_cast<int64_t>(sizes.size());
  c10::DimVector order(ndim); // fastest first
  for (int64_t i = 0; i < ndim; ++i) {
    order[i] = ndim - 1 - i;
  }
  // An insertion sort, as in TensorIterator: the comparison is no total order, so that another
  // algorithm could end elsewhere.
  for (int64_t i = 1; i < ndim; ++i) {
    int64_t current = i;
    for (int64_t j = i - 1; j >= 0; --j) {
      const int compared = compare_dims(inputs, sizes, order[j], order[current]);
      if (compared < 0) {
        break;
      }
      if (compared > 0) {
        std::swap(order[j], order[current]);
        current = j;
      }
    }
  }
  const bool contiguous = std::is_sorted(order.rbegin(), order.rend());
  c10::SymDimVector strides(ndim);
  c10::SymInt stride = 1;
  for (const int64_t dim : order) {
    strides[dim] = stride;
    stride *= contiguous ? sizes[dim].max(1) : sizes[dim];
  }
  return strides;
}

inline bool same_sizes(c10::SymIntArrayRef a, c10::SymIntArrayRef b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return TORCH_GUARD_OR_FALSE(x.sym_eq(y));
  });
}

/// The tensors that decide, converted where they have another dtype than this one. TensorIterator
/// does so on the CPU before it looks at strides, and results lie as there on every device.
template <typename Tensors>
c10::SmallVector<Operand, 4> converted_to(at::ScalarType dtype, const Tensors& tensors) {
  c10::SmallVector<Operand, 4> found;
  for (const at::Tensor* tensor : tensors) {
    found.emplace_back(
        *tensor, dtype != at::ScalarType::Undefined && tensor->scalar_type() != dtype);
  }
  return found;
}

/// Strides of the result, asking (and guarding on) as little as the usual cases need.
inline c10::SymDimVector result_strides(Inputs inputs, c10::SymIntArrayRef sizes) {
  if (inputs.empty()) {
    return {};
  }
  const Operand& first = inputs[0];
  bool same_shape = true;
  bool same_layout = true;
  bool contiguous = true;
  for (const Operand& input : inputs) {
    same_shape = same_shape && same_sizes(input.sizes(), sizes);
    contiguous = contiguous && same_shape && input.is_contiguous();
    same_layout = same_layout && same_shape &&
                  (&input == &first || same_sizes(input.strides(), first.strides()));
  }
  if (!contiguous && same_layout && first.is_dense()) {
    return c10::SymDimVector(first.strides().begin(), first.strides().end());
  }
  return contiguous ? ordered_strides({}, sizes) : ordered_strides(inputs, sizes);
}

} // namespace detail

/// Refuses an `alpha` that a result of `dtype` cannot take: as at::add does.
inline void check_alpha(const char* op, at::ScalarType dtype, const at::Scalar& alpha) {
  TORCH_CHECK(
      !alpha.isBoolean() || dtype == at::kBool,
      op,
      ": alpha may be a bool only where the result is bool, got a bool for ",
      dtype);
  TORCH_CHECK(
      !c10::isIntegralType(dtype, /*includeBool=*/true) || alpha.isIntegral(/*includeBool=*/true),
      op,
      ": alpha must be an integer for a result of ",
      dtype,
      ", got ",
      alpha);
  TORCH_CHECK(
      c10::isComplexType(dtype) || !alpha.isComplex(),
      op,
      ": alpha must be real for a result of ",
      dtype,
      ", got ",
      alpha);
}

/// Dtype of (an expression of dtype `dtype`) + `scalar`.
inline at::ScalarType promote_with_scalar(at::ScalarType dtype, const at::Scalar& scalar) {
  if (scalar.isComplex()) {
    const bool integral = c10::isIntegralType(dtype, /*includeBool=*/true);
    return c10::toComplexType(integral ? c10::get_default_dtype_as_scalartype() : dtype);
  }
  if (scalar.isFloatingPoint() && c10::isIntegralType(dtype, /*includeBool=*/true)) {
    return c10::get_default_dtype_as_scalartype();
  }
  return dtype == at::kBool && !scalar.isBoolean() ? at::kLong : dtype;
}

} // namespace v1
} // namespace torchext
