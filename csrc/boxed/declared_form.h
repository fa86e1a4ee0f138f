// SPDX-License-Identifier: BSD-3-Clause
//
// What the kernels have in common that call another form of their operator.
#pragma once

#include <ATen/core/boxing/OperatorKernel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <string>

namespace torchext {
inline namespace v1 {
namespace detail {

/// Calls the functional form in the place of one that writes, without its autocast policy: those
/// that write have none, as ATen's have none. What that calls is cast no more than with its policy.
void call_without_policy(const c10::OperatorHandle& functional, torch::jit::Stack* stack);

/// A kernel that calls another form of its operator.
class DeclaredForm : public c10::OperatorKernel {
 public:
  DeclaredForm(const char* name, const char* overload) : name_(name), overload_(overload) {}

 protected:
  c10::OperatorHandle other() const {
    return c10::Dispatcher::singleton().findSchemaOrThrow(name_.c_str(), overload_.c_str());
  }

 private:
  std::string name_;
  std::string overload_;
};

} // namespace detail
} // namespace v1
} // namespace torchext
