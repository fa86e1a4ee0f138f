// SPDX-License-Identifier: BSD-3-Clause
//
// What the schema of an operator says that returns a view, or a list of them.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <torchext/generated/boxed.h>

namespace torchext {
inline namespace v1 {
namespace detail {

/// The argument that an operator returns a view of.
inline size_t base_index(const c10::FunctionSchema& view) {
  size_t index = 0;
  while (!same_alias(view.arguments().at(index), view.returns()[0])) {
    ++index;
  }
  return index;
}

inline bool returns_list(const c10::FunctionSchema& schema) {
  return schema.returns()[0].type()->kind() == c10::TypeKind::ListType;
}

/// The view that an operator has returned: the tensor, or one of a list.
inline at::Tensor view_at(const c10::IValue& result, int64_t index) {
  return result.isTensor() ? result.toTensor() : result.toTensorVector().at(index);
}

} // namespace detail
} // namespace v1
} // namespace torchext
