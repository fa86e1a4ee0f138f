// SPDX-License-Identifier: BSD-3-Clause
//
// Runs the rule of an operator whose kernels make their results: its checks before the kernel, and
// afterwards what it says of the results. One that is laid out otherwise is copied, as Meta says
// nothing else: what is compiled reads memory by the strides of the rule.
//
//   Expected<rules::rule_keep, 1> expected("my_ops::keep", "native_functions.yaml:7", "out");
//   expected.meta(boxes, scores);
//   return expected.checked<0>(my_ops::native::keep(boxes, scores));
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_strided.h>
#include <c10/util/DimVector.h>
#include <c10/util/Exception.h>
#include <torchext/compat.h>
#include <torchext/meta_base.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace torchext {
inline namespace v1 {
namespace detail {

template <typename T>
inline constexpr bool is_tuple = false;
template <typename... Ts>
inline constexpr bool is_tuple<std::tuple<Ts...>> = true;

} // namespace detail

/// The results of a rule, and those of the kernel that are compared with them: sizes, dtype, strides.
template <typename Class, size_t N>
class Expected final : public Class {
 public:
  template <typename... Names>
  Expected(const char* op, const char* place, Names... names)
      : op_(op), place_(place), names_{names...} {}

  const at::Tensor& maybe_get_output(int64_t /*index*/) override {
    static const at::Tensor none;
    return none;
  }

  void set_output_strided(
      int64_t index,
      at::IntArrayRef sizes,
      at::IntArrayRef strides,
      at::TensorOptions options TORCHEXT_NAMES_PARAMETER) override {
    set(index, sizes, strides, options);
  }

  void set_output_raw_strided(
      int64_t index,
      at::IntArrayRef sizes,
      at::IntArrayRef strides,
      at::TensorOptions options TORCHEXT_NAMES_PARAMETER) override {
    set(index, sizes, strides, options);
  }

  c10::SymInt new_dynamic_size(
      const char* /*op*/,
      const char* /*result*/,
      const at::Tensor& /*like*/,
      const std::optional<c10::SymInt>& most) override {
    const int64_t bound = most.has_value() ? most->guard_int(__FILE__, __LINE__) : kNoBound;
    bounds_.push_back(bound);
    return kDynamic + static_cast<int64_t>(bounds_.size()) - 1;
  }

  /// The results as the rule says; refuses others. `positions`: which of several the rule's are.
  template <size_t... positions, typename Result>
  Result checked(Result&& result) const {
    if constexpr (N == kAnyNumber) {
      check_length(result.size());
      size_t index = 0;
      for (at::Tensor& tensor : result) {
        tensor = checked(index++, std::move(tensor));
      }
    } else if constexpr (detail::is_tuple<std::decay_t<Result>>) {
      size_t index = 0;
      ((std::get<positions>(result) = checked(index++, std::move(std::get<positions>(result)))),
       ...);
    } else {
      return checked(0, std::move(result));
    }
    return std::forward<Result>(result);
  }

 private:
  struct Known {
    bool is_there = false;
    at::DimVector sizes;
    at::DimVector strides; // none: contiguous
    at::ScalarType dtype = at::ScalarType::Undefined;
  };

  static constexpr int64_t kNoBound = -1;
  // Sizes from here on stand for dynamic ones, in the order in which they were asked for.
  static constexpr int64_t kDynamic = int64_t{1} << 60;

  void set(
      int64_t index,
      at::IntArrayRef sizes,
      at::IntArrayRef strides,
      const at::TensorOptions& options) {
    Known& known = detail::of_result(known_, index);
    known.is_there = true;
    known.sizes.assign(sizes.begin(), sizes.end());
    known.strides.assign(strides.begin(), strides.end());
    known.dtype = c10::typeMetaToScalarType(options.dtype());
  }

  bool fits(int64_t expected, int64_t given) const {
    if (expected < kDynamic) {
      return expected == given;
    }
    const int64_t most = bounds_[expected - kDynamic];
    return most == kNoBound || given <= most;
  }

  bool fits(const Known& known, const at::Tensor& result) const {
    if (!known.is_there || !result.defined()) {
      return known.is_there == result.defined();
    }
    bool same = result.scalar_type() == known.dtype &&
                result.dim() == static_cast<int64_t>(known.sizes.size());
    for (size_t i = 0; same && i < known.sizes.size(); ++i) {
      same = fits(known.sizes[i], result.size(static_cast<int64_t>(i)));
    }
    return same;
  }

  at::Tensor checked(size_t index, at::Tensor result) const {
    const Known& known = known_[index];
    if (C10_UNLIKELY(!fits(known, result))) {
      refuse(index, result);
    }
    return is_laid_out(known, result) ? result : laid_out(known, result);
  }

  /// Whether a result has the strides of the rule, but for those that mean nothing.
  static bool is_laid_out(const Known& known, const at::Tensor& result) {
    if (!result.defined() || result.layout() != at::kStrided) {
      return true;
    }
    if (known.strides.empty()) {
      return result.is_contiguous();
    }
    if (result.numel() == 0) {
      return true;
    }
    for (size_t i = 0; i < known.strides.size(); ++i) {
      const auto dim = static_cast<int64_t>(i);
      if (result.size(dim) != 1 && result.stride(dim) != known.strides[i]) {
        return false;
      }
    }
    return true;
  }

  C10_NOINLINE static at::Tensor laid_out(const Known& known, const at::Tensor& result) {
    if (known.strides.empty()) {
      return result.contiguous();
    }
    return at::empty_strided(result.sizes(), known.strides, result.options()).copy_(result);
  }

  void check_length(size_t length) const {
    TORCH_CHECK(
        length == known_.size(),
        op_,
        ": the kernel returned ",
        length,
        " tensors for the result '",
        names_[0],
        "', the rule in ",
        place_,
        " says ",
        known_.size());
  }

  std::string name_of(size_t index) const {
    return N == kAnyNumber ? c10::str(names_[0], "[", index, "]") : std::string(names_[index]);
  }

  [[noreturn]] C10_NOINLINE void refuse(size_t index, const at::Tensor& result) const {
    const std::string given = result.defined()
                                  ? c10::str(result.scalar_type(), " ", result.sizes())
                                  : std::string("no tensor");
    TORCH_CHECK(
        false,
        op_,
        ": the kernel returned ",
        given,
        " for the result '",
        name_of(index),
        "', the rule in ",
        place_,
        " says ",
        said(known_[index]));
  }

  std::string said(const Known& known) const {
    if (!known.is_there) {
      return "that there is none";
    }
    std::string text = c10::str(known.dtype, " [");
    for (size_t i = 0; i < known.sizes.size(); ++i) {
      text += i == 0 ? "" : ", ";
      if (known.sizes[i] < kDynamic) {
        text += std::to_string(known.sizes[i]);
      } else {
        const int64_t most = bounds_[known.sizes[i] - kDynamic];
        text += most == kNoBound ? "dynamic" : c10::str("dynamic <= ", most);
      }
    }
    return text + "]";
  }

  const char* op_;
  const char* place_;
  // one more than none, for a rule that only checks; a list has one name
  std::array<const char*, N == 0 || N == kAnyNumber ? 1 : N> names_;
  detail::PerResult<Known, N == 0 ? 1 : N> known_;
  std::vector<int64_t> bounds_;
};

} // namespace v1
} // namespace torchext
