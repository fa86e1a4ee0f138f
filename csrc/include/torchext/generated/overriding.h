// SPDX-License-Identifier: BSD-3-Clause
//
// What must hold before kernels take the place of those of an operator that is there already.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DispatchKey.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/util/Exception.h>
#include <torch/csrc/jit/frontend/function_schema_parser.h>
#include <torch/headeronly/version.h>

#include <initializer_list>
#include <optional>

namespace torchext {
inline namespace v1 {
namespace detail {

/// The key of autograd above kernels of a backend's key.
inline c10::DispatchKey autograd_key_above(c10::DispatchKey key) {
  switch (c10::toFunctionalityKey(key)) {
    case c10::DispatchKey::Dense:
      return c10::getAutogradKeyFromBackend(c10::toBackendComponent(key));
    case c10::DispatchKey::NestedTensor:
      return c10::DispatchKey::AutogradNestedTensor;
    default:
      return c10::DispatchKey::AutogradOther;
  }
}

/// Whether autograd sees the operators that this one calls, and would see a new kernel in their
/// place: what the dispatcher puts on an autograd key (OperatorEntry::computeDispatchTableEntry) is
/// the CompositeImplicitAutograd kernel, but only while the backends of that key have none.
inline bool differentiates_through_parts(const c10::OperatorHandle& op, c10::DispatchKey key) {
  if (!op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) ||
      op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd)) {
    return false;
  }
  if (c10::isAliasDispatchKey(key)) {
    return true;
  }
  const c10::DispatchKey above = autograd_key_above(key);
  return !op.hasKernelForDispatchKey(key) && !op.hasKernelForDispatchKey(above) &&
         !op.hasKernelForAnyDispatchKey(c10::getBackendKeySetFromAutograd(above));
}

} // namespace detail

/// Refuses a kernel that would take an operator's gradient away: autograd would find neither a
/// formula nor the operators that the operator was made of.
inline void check_keeps_gradient(const c10::OperatorHandle& op, c10::DispatchKey key) {
  TORCH_CHECK(
      !detail::differentiates_through_parts(op, key),
      op.operator_name(),
      " is CompositeImplicitAutograd in torch " TORCH_VERSION
      ": its gradient is that of the operators that it calls, and a kernel for ",
      key,
      " would hide them. Override those operators, or register a kernel for Autograd as well");
}

/// Refuses a schema that is not that of the operator that it names.
inline c10::OperatorHandle check_is_operator(const c10::FunctionSchema& given) {
  const auto op = c10::Dispatcher::singleton().findSchema(given.operator_name());
  TORCH_CHECK(
      op.has_value(),
      "torch " TORCH_VERSION " has no operator ",
      given.operator_name(),
      ", for ",
      given);
  TORCH_CHECK(
      op->schema() == given,
      "the schema of ",
      given.operator_name(),
      " in torch " TORCH_VERSION " is\n    ",
      op->schema(),
      "\nand not\n    ",
      given);
  return *op;
}

/// Refuses a schema that is not the operator's, and kernels for `keys` that would hide its gradient.
inline void check_overridden(const char* schema, std::initializer_list<c10::DispatchKey> keys) {
  const c10::OperatorHandle op = check_is_operator(torch::jit::parseSchema(schema));
  for (const c10::DispatchKey key : keys) {
    check_keeps_gradient(op, key);
  }
}

} // namespace v1
} // namespace torchext
