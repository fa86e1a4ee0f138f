// SPDX-License-Identifier: BSD-3-Clause
//
// The tensors of boxed values, and what a schema says of its arguments.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <optional>

namespace torchext {
inline namespace v1 {
namespace detail {

/// Calls `f` with each defined tensor of a boxed value, inside lists and dictionaries too.
template <typename F>
void for_each_boxed_tensor(const F& f, const c10::IValue& value) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) {
      f(value.toTensor());
    }
  } else if (value.isList()) {
    for (const c10::IValue& item : value.toListRef()) {
      for_each_boxed_tensor(f, item);
    }
  } else if (value.isTuple()) {
    for (const c10::IValue& item : value.toTupleRef().elements()) {
      for_each_boxed_tensor(f, item);
    }
  } else if (value.isGenericDict()) {
    for (const auto& item : value.toGenericDict()) {
      for_each_boxed_tensor(f, item.value());
    }
  }
}

/// The value with every tensor in it replaced by `f` of it.
template <typename F>
c10::IValue map_boxed_tensors(const F& f, const c10::IValue& value) {
  if (value.isTensor()) {
    return value.toTensor().defined() ? c10::IValue(f(value.toTensor())) : value;
  }
  if (value.isTensorList()) {
    c10::List<at::Tensor> mapped;
    for (const at::Tensor& tensor : value.toTensorVector()) {
      mapped.push_back(tensor.defined() ? f(tensor) : tensor);
    }
    return mapped;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> mapped;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
      mapped.push_back(
          tensor.has_value() && tensor->defined() ? std::optional(f(*tensor)) : tensor);
    }
    return mapped;
  }
  return value;
}

inline bool is_written(const c10::Argument& argument) {
  if (argument.alias_info() == nullptr) {
    return false;
  }
  bool written = argument.alias_info()->isWrite();
  for (const auto& inner : argument.alias_info()->containedTypes()) {
    written = written || inner.isWrite();
  }
  return written;
}

inline bool same_alias(const c10::Argument& a, const c10::Argument& b) {
  return a.alias_info() != nullptr && b.alias_info() != nullptr &&
         a.alias_info()->beforeSets() == b.alias_info()->beforeSets();
}

inline bool is_view(const c10::Argument& result) {
  return result.alias_info() != nullptr && !is_written(result);
}

} // namespace detail
} // namespace v1
} // namespace torchext
