// SPDX-License-Identifier: BSD-3-Clause
//
// An argument that an operator writes to, that no gradient flows to, and that backward reads.
#pragma once

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/variable.h>
#include <torchext/generated/arguments.h>
#include <torchext/generated/memory_overlap.h>
#include <torchext/generated/tracing.h>

#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace torchext {
inline namespace v1 {
namespace detail {

/// A copy that is to be written to instead: with the version of the tensor, which rises as the copy
/// is written to, so that backward refuses what was written to later, as in eager mode.
inline at::Tensor stand_in_for(const at::Tensor& tensor) {
  if (!tensor.defined()) {
    return tensor;
  }
  at::Tensor copy = tensor.clone();
  torch::autograd::impl::set_version_counter(copy, torch::autograd::impl::version_counter(tensor));
  return copy;
}

inline std::optional<at::Tensor> stand_in_for(const std::optional<at::Tensor>& tensor) {
  return tensor.has_value() ? std::make_optional(stand_in_for(*tensor)) : std::nullopt;
}

inline std::vector<at::Tensor> stand_in_for(at::TensorList tensors) {
  std::vector<at::Tensor> copies;
  copies.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    copies.push_back(stand_in_for(tensor));
  }
  return copies;
}

inline c10::List<std::optional<at::Tensor>> stand_in_for(
    const c10::List<std::optional<at::Tensor>>& tensors) {
  c10::List<std::optional<at::Tensor>> copies;
  copies.reserve(tensors.size());
  for (const std::optional<at::Tensor> tensor : tensors) {
    copies.push_back(stand_in_for(tensor));
  }
  return copies;
}

/// The same tensors, as a value of that type.
template <typename Read>
auto copied_handles(const Read& read) {
  if constexpr (std::is_convertible_v<const Read&, at::TensorList> &&
                !std::is_same_v<Read, at::Tensor>) {
    return at::TensorList(read).vec();
  } else {
    return read;
  }
}

} // namespace detail

/// In a graph the operator writes to a copy, which is saved and then copied to the argument. What
/// the argument itself is in a graph Inductor writes over in backward, as memory that only the graph
/// has: an input, where it is a buffer or a view of one.
///
/// Given: the type of a kernel's parameter.
template <typename Given>
class Aside {
 public:
  Aside(Given given, bool is_saved) : given_(given) {
    if (is_saved && is_functionalized()) {
      stand_in_.emplace(detail::stand_in_for(given));
    }
  }

  /// What the operator is to write to, and backward to read.
  Given written() {
    if constexpr (std::is_reference_v<Given>) {
      return stand_in_.has_value() ? *stand_in_ : given_;
    } else {
      return stand_in_.has_value() ? Given(*stand_in_) : given_;
    }
  }

  void copy_back() {
    if (!stand_in_.has_value()) {
      return;
    }
    std::vector<at::Tensor> copies;
    for_each_tensor([&](const at::Tensor& copy) { copies.push_back(copy); }, *stand_in_);
    size_t next = 0;
    const auto copy = [&](const at::Tensor& tensor) {
      if (tensor.defined()) {
        tensor.copy_(copies[next]);
      }
      ++next;
    };
    for_each_tensor(copy, given_);
  }

 private:
  Given given_;
  std::optional<decltype(detail::stand_in_for(std::declval<const std::decay_t<Given>&>()))>
      stand_in_;
};

/// What a tangent reads of an argument beside what the operator writes to: the argument, or, where
/// they share memory, a copy from before. Without need for it nothing.
template <typename Read, typename... Written>
auto before_write(bool is_needed, const Read& read, const Written&... written) {
  using Copy = decltype(detail::stand_in_for(read));
  if (!is_needed) {
    return Copy();
  }
  bool shares = false;
  const auto compare = [&](const at::Tensor& a) {
    const auto with = [&](const at::Tensor& b) { shares = shares || detail::share_memory(a, b); };
    (for_each_tensor(with, written), ...);
  };
  for_each_tensor(compare, read);
  return shares ? detail::stand_in_for(read) : detail::copied_handles(read);
}

} // namespace v1
} // namespace torchext
