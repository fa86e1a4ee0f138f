// SPDX-License-Identifier: BSD-3-Clause
//
// Runs the rule of an operator whose kernels make their results: its checks before the kernel, and
// afterwards what it says of the results.
//
//   Expected<rules::rule_keep, 1> expected("my_ops::keep", "native_functions.yaml:7", "out");
//   expected.meta(boxes, scores);
//   return expected.checked<0>(my_ops::native::keep(boxes, scores));
#pragma once

#include <ATen/core/Tensor.h>
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

/// The results of a rule, and those of the kernel that are compared with them: sizes and dtype.
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
      at::IntArrayRef /*strides*/,
      at::TensorOptions options TORCHEXT_NAMES_PARAMETER) override {
    set(index, sizes, options);
  }

  void set_output_raw_strided(
      int64_t index,
      at::IntArrayRef sizes,
      at::IntArrayRef /*strides*/,
      at::TensorOptions options TORCHEXT_NAMES_PARAMETER) override {
    set(index, sizes, options);
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

  /// Refuses what the rule does not say; `positions`: which of several results the rule's are.
  template <size_t... positions, typename Result>
  Result checked(Result&& result) const {
    if constexpr (N == kAnyNumber) {
      check_list(result);
    } else if constexpr (detail::is_tuple<std::decay_t<Result>>) {
      size_t index = 0;
      (check(index++, std::get<positions>(result)), ...);
    } else {
      check(0, result);
    }
    return std::forward<Result>(result);
  }

 private:
  struct Known {
    bool is_there = false;
    at::DimVector sizes;
    at::ScalarType dtype = at::ScalarType::Undefined;
  };

  static constexpr int64_t kNoBound = -1;
  // Sizes from here on stand for dynamic ones, in the order in which they were asked for.
  static constexpr int64_t kDynamic = int64_t{1} << 60;

  void set(int64_t index, at::IntArrayRef sizes, const at::TensorOptions& options) {
    Known& known = detail::of_result(known_, index);
    known.is_there = true;
    known.sizes.assign(sizes.begin(), sizes.end());
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

  void check(size_t index, const at::Tensor& result) const {
    if (C10_UNLIKELY(!fits(known_[index], result))) {
      refuse(index, result);
    }
  }

  void check_list(at::TensorList results) const {
    TORCH_CHECK(
        results.size() == known_.size(),
        op_,
        ": the kernel returned ",
        results.size(),
        " tensors for the result '",
        names_[0],
        "', the rule in ",
        place_,
        " says ",
        known_.size());
    for (size_t index = 0; index < results.size(); ++index) {
      check(index, results[index]);
    }
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
