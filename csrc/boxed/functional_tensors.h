// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <string>

namespace torchext {
inline namespace v1 {
namespace detail {

/// What a call of the operator's own kernels sees of a functional tensor.
inline at::Tensor inner_tensor(const at::Tensor& tensor) {
  if (!at::functionalization::impl::isFunctionalTensor(tensor)) {
    return tensor;
  }
  at::functionalization::impl::sync(tensor);
  return at::functionalization::impl::from_functional_tensor(tensor);
}

inline c10::OperatorHandle operator_named(const std::string& name, const std::string& overload) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), overload.c_str());
}

} // namespace detail
} // namespace v1
} // namespace torchext
