// SPDX-License-Identifier: BSD-3-Clause
//
// The tensors of an argument, whatever its type: one overload per schema type that holds tensors.
#pragma once

#include <ATen/core/IListRef.h>
#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/TensorBody.h>
#include <c10/macros/Macros.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace torchext {
inline namespace v1 {

/// Calls `f` with each tensor; a missing optional one is an undefined tensor, so that the number of
/// calls for an argument that is no list is always one.
template <typename F>
void for_each_tensor(const F& f, const at::Tensor& tensor) {
  f(tensor);
}

template <typename F>
void for_each_tensor(const F& f, const std::optional<at::Tensor>& tensor) {
  if (tensor.has_value()) {
    f(*tensor); // not a copy, whose references are counted
  } else {
    f(at::Tensor());
  }
}

template <typename F>
void for_each_tensor(const F& f, at::TensorList tensors) {
  for (const at::Tensor& tensor : tensors) {
    f(tensor);
  }
}

template <typename F>
void for_each_tensor(const F& f, const std::vector<at::Tensor>& tensors) {
  for_each_tensor(f, at::TensorList(tensors));
}

/// Of exactly this type, so that a vector of tensors is not taken for one.
template <
    typename F,
    typename List,
    std::enable_if_t<std::is_same_v<List, at::ITensorListRef>, int> = 0>
void for_each_tensor(const F& f, const List& tensors) {
  for (const at::Tensor& tensor : tensors) {
    f(tensor);
  }
}

template <typename F>
void for_each_tensor(const F& f, const std::optional<at::TensorList>& tensors) {
  if (tensors.has_value()) {
    for_each_tensor(f, *tensors);
  }
}

template <typename F>
void for_each_tensor(const F& f, const c10::List<std::optional<at::Tensor>>& tensors) {
  for (const std::optional<at::Tensor> tensor : tensors) {
    for_each_tensor(f, tensor);
  }
}

template <typename F, typename Key>
void for_each_tensor(const F& f, const c10::Dict<Key, at::Tensor>& tensors) {
  for (const auto& entry : tensors) {
    f(entry.value());
  }
}

template <typename F, typename Inner>
void for_each_tensor(const F& f, const c10::List<c10::List<Inner>>& lists) {
  for (const c10::List<Inner> list : lists) {
    for (const Inner item : list) {
      for_each_tensor(f, item);
    }
  }
}

/// Calls `f` with each tensor of several arguments, and the place of its argument among them.
template <typename F, typename... Arguments>
void for_each_argument(const F& f, const Arguments&... arguments) {
  size_t place = 0;
  const auto look = [&](const auto& argument) {
    for_each_tensor([&](const at::Tensor& tensor) { f(tensor, place); }, argument);
    ++place;
  };
  (look(arguments), ...);
}

/// The name at a place of the names of arguments, which are one text: "self, other".
C10_NOINLINE inline std::string name_at(const char* names, size_t place) {
  std::string_view rest = names;
  for (; place > 0; --place) {
    rest.remove_prefix(rest.find(',') + 2);
  }
  return std::string(rest.substr(0, rest.find(',')));
}

/// An optional tensor as kernels are given it: one that holds an undefined tensor, as formulas and
/// callers of C++ have it, is missing.
inline const std::optional<at::Tensor>& or_missing(const std::optional<at::Tensor>& tensor) {
  static const std::optional<at::Tensor> missing;
  return tensor.has_value() && !tensor->defined() ? missing : tensor;
}

inline c10::List<std::optional<at::Tensor>> or_missing(
    const c10::List<std::optional<at::Tensor>>& tensors) {
  bool is_so = true;
  for (const std::optional<at::Tensor> tensor : tensors) {
    is_so = is_so && !(tensor.has_value() && !tensor->defined());
  }
  if (is_so) {
    return tensors;
  }
  c10::List<std::optional<at::Tensor>> found;
  found.reserve(tensors.size());
  for (const std::optional<at::Tensor> tensor : tensors) {
    found.push_back(or_missing(tensor));
  }
  return found;
}

inline bool has_tensor(const std::optional<at::Tensor>& argument) {
  return argument.has_value() && argument->defined();
}

/// A result that is an optional argument where there is one, and new where there is none.
inline const at::Tensor& given_or(
    const std::optional<at::Tensor>& argument, const at::Tensor& result) {
  return has_tensor(argument) ? *argument : result;
}

} // namespace v1
} // namespace torchext
