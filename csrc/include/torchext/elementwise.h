// SPDX-License-Identifier: BSD-3-Clause
//
// What pointwise operators share: the shape function. It broadcasts, promotes dtypes and allocates
// the result as TensorIterator does, for CPU, CUDA and Meta alike, and for symbolic sizes too.
//
//   auto iter = torchext::pointwise_iterator(Promote::kCommon, out, self, other);
//   at::Tensor meta = torchext::pointwise_meta(Promote::kCommon, self, other);
//
// Header only, no mutable statics: several libraries in one process may include it.
#pragma once

#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TypeProperties.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/Scalar.h>
#include <c10/core/SymInt.h>
#include <torchext/compat.h>

#include <algorithm>
#include <array>
#include <utility>

namespace torchext {
inline namespace v1 {

/// How the dtype of a result follows from the inputs.
enum class Promote {
  kCommon, ///< the promoted dtype of the inputs
  kFloat,  ///< the same, with the default dtype in place of integers and bools
};

/// Iterator over a result and the inputs, which must outlive it, with the rules of a pointwise
/// operator. The result is `out`, or a new tensor where that is undefined. At home on the CPU a new
/// tensor comes from the allocator rather than through the dispatcher, as for ATen's own kernels.
class PointwiseIterator final : public at::TensorIteratorBase {
 public:
  template <typename... Inputs>
  PointwiseIterator(Promote promote, const at::Tensor& out, const Inputs&... inputs)
      : result_(out) {
    at::TensorIteratorConfig config;
    config.set_check_mem_overlap(true)
        .allow_cpu_scalars(true)
        .promote_inputs_to_common_dtype(true)
        .promote_integer_inputs_to_float(promote == Promote::kFloat)
        .cast_common_dtype_to_outputs(true)
        .enforce_safe_casting_to_output(true)
        .add_output(result_);
    (config.add_const_input(inputs), ...);
    build(config);
  }

  // The base refers to the member.
  PointwiseIterator(const PointwiseIterator&) = delete;
  PointwiseIterator& operator=(const PointwiseIterator&) = delete;

  /// The result.
  const at::Tensor& output() const {
    return result_;
  }

  const at::Tensor& maybe_get_output(int64_t /*index*/) override {
    return result_;
  }

  void set_output_raw_strided(
      int64_t index,
      at::IntArrayRef sizes,
      at::IntArrayRef strides,
      at::TensorOptions options TORCHEXT_NAMES_PARAMETER) override {
    if (!result_.defined()) {
      result_ = allocate(sizes, strides, options);
    } else if (at::native::resize_output(result_, sizes) && !strides.empty()) {
      result_.as_strided_(sizes, strides);
    }
    at::TensorIteratorBase::set_output_raw_strided(
        index, sizes, strides, options TORCHEXT_NAMES_ARGUMENT);
  }

 private:
  static at::Tensor allocate(
      at::IntArrayRef sizes, at::IntArrayRef strides, const at::TensorOptions& options) {
    if (options.device().is_cpu()) {
      return at::Tensor(
          strides.empty() ? at::detail::empty_cpu(sizes, options)
                          : at::detail::empty_strided_cpu(sizes, strides, options));
    }
    return strides.empty() ? at::empty(sizes, options) : at::empty_strided(sizes, strides, options);
  }

  at::Tensor result_;
};

template <typename... Inputs>
PointwiseIterator pointwise_iterator(
    Promote promote, const at::Tensor& out, const Inputs&... inputs) {
  return PointwiseIterator(promote, out, inputs...);
}

namespace detail {

template <size_t N>
using Inputs = std::array<const at::Tensor*, N>;

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
template <size_t N>
int compare_dims(const Inputs<N>& inputs, c10::SymIntArrayRef sizes, int64_t a, int64_t b) {
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
template <size_t N>
c10::SymDimVector ordered_strides(const Inputs<N>& inputs, c10::SymIntArrayRef sizes) {
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
template <size_t N>
c10::SymDimVector result_strides(const Inputs<N>& inputs, c10::SymIntArrayRef sizes) {
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
  return contiguous ? ordered_strides<0>({}, sizes) : ordered_strides(inputs, sizes);
}

template <size_t N>
at::Tensor symbolic_result(Promote promote, const Inputs<N>& inputs) {
  at::native::ResultTypeState state;
  const at::Tensor* placed = inputs[0]; // the input that decides on the device
  c10::SymDimVector sizes(inputs[0]->sym_sizes().begin(), inputs[0]->sym_sizes().end());
  for (const at::Tensor* input : inputs) {
    state = at::native::update_result_type_state(*input, state);
    sizes = at::infer_size_symdimvector(sizes, input->sym_sizes());
    placed = placed->is_cpu() ? input : placed;
  }
  at::ScalarType dtype = at::native::result_type(state);
  if (promote == Promote::kFloat && c10::isIntegralType(dtype, /*includeBool=*/true)) {
    dtype = c10::get_default_dtype_as_scalartype();
  }
  return at::empty_strided_symint(
      sizes, result_strides(inputs, sizes), placed->options().dtype(dtype));
}

} // namespace detail

/// The result of a pointwise operator, allocated and not filled.
template <typename... Inputs>
at::Tensor pointwise_meta(Promote promote, const Inputs&... inputs) {
  if ((inputs.unsafeGetTensorImpl()->has_symbolic_sizes_strides() || ...)) {
    return detail::symbolic_result<sizeof...(Inputs)>(promote, {&inputs...});
  }
  return pointwise_iterator(promote, at::Tensor(), inputs...).output();
}

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
