// SPDX-License-Identifier: BSD-3-Clause
//
// The operators of a library as its C++ API and generated kernels call them.
#pragma once

#include <torchext/generated/operator_types.h>

namespace torchext {
inline namespace v1 {

/// The base of a class that is an operator, and has its name and the name of its overload. Each is
/// defined once, where torchext/generated/operator_handle.h is included.
template <typename Self, typename Schema>
struct Operator;

template <typename Self, typename Result, typename... Arguments>
struct TORCHEXT_API Operator<Self, Result(Arguments...)> {
  using schema = Result(Arguments...);

  /// Calls the operator.
  static Result call(Arguments... arguments);

  /// Calls its kernel for the keys, from a kernel of another key.
  static Result redispatch(c10::DispatchKeySet keys, Arguments... arguments);
};

} // namespace v1
} // namespace torchext
