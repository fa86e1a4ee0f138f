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

using Inputs = c10::ArrayRef<const at::Tensor*>;

/// Stride of an input along a dimension of the result, 0 where it is broadcast.
inline c10::SymInt broadcast_stride(
    const at::Tensor& input, c10::SymIntArrayRef sizes, int64_t dim) {
  const int64_t own = dim - (static_cast<int64_t>(sizes.size()) - input.dim());
  if (own < 0) {
    return 0;
  }
  const bool expanded = TORCH_GUARD_OR_FALSE(input.sym_sizes()[own].sym_eq(1)) &&
                        !TORCH_GUARD_OR_FALSE(sizes[dim].sym_eq(1));
  return expanded ? c10::SymInt(0) : input.sym_strides()[own];
}

/// Whether dimension `a` of the result varies slower (1) or faster (-1) than `b`; 0: do not care.
inline int compare_dims(Inputs inputs, c10::SymIntArrayRef sizes, int64_t a, int64_t b) {
  for (const at::Tensor* input : inputs) {
    const c10::SymInt stride_a = broadcast_stride(*input, sizes, a);
    const c10::SymInt stride_b = broadcast_stride(*input, sizes, b);
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

/// Strides of the result, asking (and guarding on) as little as the usual cases need.
inline c10::SymDimVector result_strides(Inputs inputs, c10::SymIntArrayRef sizes) {
  if (inputs.empty()) {
    return {};
  }
  const at::Tensor& first = *inputs[0];
  bool same_shape = true;
  bool same_layout = true;
  bool contiguous = true;
  for (const at::Tensor* input : inputs) {
    same_shape = same_shape && same_sizes(input->sym_sizes(), sizes);
    contiguous = contiguous && same_shape && input->is_contiguous_or_false();
    same_layout = same_layout && same_shape &&
                  (input == &first || same_sizes(input->sym_strides(), first.sym_strides()));
  }
  const bool dense = !contiguous && same_layout &&
                     first.unsafeGetTensorImpl()->is_non_overlapping_and_dense_or_false();
  if (dense) {
    return c10::SymDimVector(first.sym_strides().begin(), first.sym_strides().end());
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
