// SPDX-License-Identifier: BSD-3-Clause
//
// A boxed call and what its schema says of the arguments that results are or view.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <torchext/generated/boxed.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace torchext {
inline namespace v1 {
namespace detail {

/// The arguments of a boxed call, held so that they outlive it.
class BoxedCall {
 public:
  BoxedCall(const c10::OperatorHandle& op, const torch::jit::Stack& stack)
      : schema_(op.schema()),
        name_(schema_.name()),
        values_(stack.end() - static_cast<int64_t>(schema_.arguments().size()), stack.end()) {}

  const std::string& name() const {
    return name_;
  }

  /// Calls `f(tensor, argument)` with each defined tensor of the arguments.
  template <typename F>
  void for_each_argument(const F& f) const {
    for (size_t i = 0; i < values_.size(); ++i) {
      const c10::Argument& argument = schema_.arguments()[i];
      for_each_boxed_tensor([&](const at::Tensor& tensor) { f(tensor, argument); }, values_[i]);
    }
  }

  /// Calls `f(value, result)` with each result on the stack.
  template <typename F>
  void for_each_result(torch::jit::Stack& stack, const F& f) const {
    const size_t count = schema_.returns().size();
    for (size_t i = 0; i < count; ++i) {
      f(stack[stack.size() - count + i], schema_.returns()[i]);
    }
  }

  bool has_aliases() const {
    const auto aliases = [](const c10::Argument& a) { return a.alias_info() != nullptr; };
    return std::any_of(schema_.arguments().begin(), schema_.arguments().end(), aliases);
  }

  /// Whether results are written to keyword-only arguments, as those of an out= form.
  bool is_out() const {
    bool found = false;
    for (size_t i = 0; i < values_.size(); ++i) {
      const c10::Argument& argument = schema_.arguments()[i];
      found = found || (argument.kwarg_only() && is_written(argument) && is_there(values_[i]));
    }
    return found;
  }

  const std::vector<c10::IValue>& values() const {
    return values_;
  }

  /// The argument of the same alias set as a result, where it is given: what the result is or views.
  std::optional<size_t> source_of(const c10::Argument& result) const {
    for (size_t i = 0; i < values_.size(); ++i) {
      if (same_alias(schema_.arguments()[i], result) && is_there(values_[i])) {
        return i;
      }
    }
    return std::nullopt;
  }

  c10::IValue argument_of(const c10::Argument& result) const {
    const std::optional<size_t> source = source_of(result);
    return source.has_value() ? values_[*source] : c10::IValue();
  }

 private:
  const c10::FunctionSchema& schema_;
  std::string name_;
  std::vector<c10::IValue> values_;
};

} // namespace detail
} // namespace v1
} // namespace torchext
