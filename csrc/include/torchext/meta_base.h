// SPDX-License-Identifier: BSD-3-Clause
//
// The base of a structured operator's meta class. A meta function that asks for `sym_sizes()` and
// sets its results by the `_symint` functions serves torch.compile with dynamic shapes too; one
// written for ATen, with `sizes()` and `set_output_contiguous`, serves concrete sizes.
#pragma once

#include <ATen/TensorMeta.h>
#include <ATen/core/IListRef.h>
#include <ATen/core/Tensor.h>
#include <c10/core/SymIntArrayRef.h>
#include <c10/util/DimVector.h>
#include <c10/util/Exception.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

namespace torchext {
inline namespace v1 {

/// In the place of a number of results: that of a list, which the meta function sets one by one.
inline constexpr size_t kAnyNumber = static_cast<size_t>(-1);

namespace detail {

/// What is kept of each result.
template <typename T, size_t N>
using PerResult = std::conditional_t<N == kAnyNumber, std::vector<T>, std::array<T, N>>;

template <typename T, size_t N>
T& of_result(std::array<T, N>& all, int64_t index) {
  return all[index];
}

template <typename T>
T& of_result(std::vector<T>& all, int64_t index) {
  if (index >= static_cast<int64_t>(all.size())) {
    all.resize(index + 1);
  }
  return all[index];
}

} // namespace detail

/// at::impl::MetaBase, for sizes that may be symbolic.
struct MetaBase : public at::impl::MetaBase {
  /// As set_output_strided: the kernel needs these very strides.
  virtual void set_output_strided_symint(
      int64_t index,
      c10::SymIntArrayRef sizes,
      c10::SymIntArrayRef strides,
      at::TensorOptions options) {
    set_output_strided(
        index, C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides), options);
  }

  /// As set_output_raw_strided: the kernel copes with the strides that an out= tensor has. Without
  /// strides, a new result is contiguous.
  virtual void set_output_raw_strided_symint(
      int64_t index,
      c10::SymIntArrayRef sizes,
      c10::SymIntArrayRef strides,
      at::TensorOptions options) {
    set_output_raw_strided(
        index, C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides), options);
  }

  /// A size of a result that only the values of the arguments tell, maybe with a bound.
  virtual c10::SymInt new_dynamic_size(
      const char* op,
      const char* result,
      const at::Tensor& /*like*/,
      const std::optional<c10::SymInt>& /*most*/) {
    TORCH_CHECK(false, op, ": the size of ", result, " is known when the kernel has run");
  }

  /// As set_output_contiguous: the kernel needs a contiguous result.
  void set_output_contiguous_symint(
      int64_t index, c10::SymIntArrayRef sizes, at::TensorOptions options) {
    c10::SymDimVector strides(sizes.size(), 1);
    for (size_t i = sizes.size(); i-- > 1;) {
      strides[i - 1] = strides[i] * sizes[i].max(1); // even where there are no elements
    }
    set_output_strided_symint(index, sizes, strides, options);
  }
};

} // namespace v1
} // namespace torchext
