// SPDX-License-Identifier: BSD-3-Clause
//
// How operators are called: by handles that are kept, so that a call looks nothing up. A library
// defines the functions of each operator once:
//
//   template struct DefinitionsOf<operators::mul_Tensor, operators::mul_out>;
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <torchext/generated/operator.h>

#include <utility>

namespace torchext {
inline namespace v1 {

/// The handle of a registered operator.
template <typename Operator>
auto operator_handle() {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow(Operator::name, Operator::overload_name)
      .template typed<typename Operator::schema>();
}

template <typename Self, typename Result, typename... Arguments>
Result Operator<Self, Result(Arguments...)>::call(Arguments... arguments) {
  static const auto handle = operator_handle<Self>();
  return handle.call(std::forward<Arguments>(arguments)...);
}

template <typename Self, typename Result, typename... Arguments>
Result Operator<Self, Result(Arguments...)>::redispatch(
    c10::DispatchKeySet keys, Arguments... arguments) {
  static const auto handle = operator_handle<Self>();
  return handle.redispatch(keys, std::forward<Arguments>(arguments)...);
}

/// Instantiated for operators, defines their functions.
template <typename... Operators>
struct DefinitionsOf {
  using Function = void (*)();

  static const Function* functions() {
    static const Function all[] = {
        reinterpret_cast<Function>(&Operators::call)...,
        reinterpret_cast<Function>(&Operators::redispatch)...};
    return all;
  }
};

} // namespace v1
} // namespace torchext
