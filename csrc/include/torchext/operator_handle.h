// SPDX-License-Identifier: BSD-3-Clause
//
// Typed handles of operators: what the C++ API and redispatching kernels call through.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace torchext {
inline namespace v1 {

/// The handle of a registered operator; generated code keeps it, so that a call looks nothing up.
template <typename FunctionType>
c10::TypedOperatorHandle<FunctionType> operator_handle(const char* name, const char* overload) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, overload).typed<FunctionType>();
}

} // namespace v1
} // namespace torchext
