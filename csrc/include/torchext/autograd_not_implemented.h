// SPDX-License-Identifier: BSD-3-Clause
//
// The autograd kernels of operators without formulas, boxed: they serve every schema. No gradient
// is dropped silently: backward names the operator, for results, for tensors that are written to
// (returned or not) and for views.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torchext/autograd.h>
#include <torchext/boxed.h>

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

/// Refuses a new result that is not new, whatever is recorded: a traced call, which records nothing,
/// takes it as its own.
inline void check_results(
    const BoxedCall& call, const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  Identities given;
  NewResults made;
  const bool may_share = op.hasTag(at::Tag::maybe_aliasing_or_mutating);
  call.for_each_argument([&](const at::Tensor& t, const c10::Argument&) { given.add(t); });
  given.sort();
  const char* name = call.name().c_str();
  call.for_each_result(stack, [&](const c10::IValue& value, const c10::Argument& result) {
    const auto check = [&](const at::Tensor& tensor) {
      if (given.has(tensor)) {
        refuse_argument(name);
      }
      if (given.has_memory_of(tensor) && !may_share && has_elements(tensor)) {
        refuse_shared(name);
      }
      made.add(tensor);
    };
    if (result.alias_info() == nullptr) {
      for_each_boxed_tensor(check, value);
    }
  });
  made.check_apart(name, /*memory=*/!may_share);
}

/// Calls what is below autograd; version counters and views, where there are any, come next.
/// A result that was written to is the argument itself: torch.func gives back another tensor.
inline void redispatch_below(
    const BoxedCall& call,
    const c10::OperatorHandle& op,
    c10::DispatchKeySet keys,
    torch::jit::Stack* stack) {
  if (call.has_aliases()) {
    at::AutoDispatchBelowAutograd guard;
    op.redispatchBoxed(keys & c10::after_autograd_keyset, stack);
  } else {
    at::AutoDispatchBelowADInplaceOrView guard;
    op.redispatchBoxed(keys & c10::after_ADInplaceOrView_keyset, stack);
  }
  call.for_each_result(*stack, [&](c10::IValue& value, const c10::Argument& result) {
    if (is_written(result) && is_there(call.argument_of(result))) {
      value = call.argument_of(result);
    }
  });
  check_results(call, op, *stack);
}

} // namespace detail

/// Kernel of the Autograd key for operators whose results never require grad. What they write to
/// must not either: the gradient of the value that is gone would be wrong.
inline void autograd_ignored(
    const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const detail::BoxedCall call(op, *stack);
  call.for_each_argument([&](const at::Tensor& tensor, const c10::Argument& argument) {
    if (detail::is_written(argument)) {
      check_no_tangent(call.name().c_str(), argument.name().c_str(), tensor);
      check_no_requires_grad(call.name().c_str(), argument.name().c_str(), tensor);
    }
  });
  detail::redispatch_below(call, op, keys, stack);
}

/// Kernel of the Autograd key for operators without formulas.
inline void autograd_not_implemented(
    const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const detail::BoxedCall call(op, *stack);
  torch::autograd::edge_list edges;
  call.for_each_argument([&](const at::Tensor& tensor, const c10::Argument& argument) {
    check_no_tangent(call.name().c_str(), argument.name().c_str(), tensor);
    if (any_requires_grad(tensor)) {
      edges.push_back(torch::autograd::impl::gradient_edge(tensor));
    }
  });
  const bool records = !edges.empty();
  if (records && call.is_out()) {
    torch::autograd::throw_error_out_requires_grad(call.name().c_str());
  }
  call.for_each_argument([&](const at::Tensor& tensor, const c10::Argument& argument) {
    if (detail::is_written(argument)) {
      torch::autograd::check_inplace(tensor, records);
    }
  });
  detail::redispatch_below(call, op, keys, stack);
  if (!records) {
    return;
  }
  const auto new_node = [&] {
    return make_node<torch::autograd::NotImplemented>(
        call.name(), torch::autograd::edge_list(edges));
  };
  call.for_each_argument([&](const at::Tensor& tensor, const c10::Argument& argument) {
    if (detail::is_written(argument) &&
        torch::autograd::isDifferentiableType(tensor.scalar_type())) {
      // A node of its own: a view that is written to cannot share one.
      torch::autograd::rebase_history(tensor, new_node());
    }
  });
  const NodePtr<torch::autograd::Node> node = new_node();
  call.for_each_result(*stack, [&](const c10::IValue& value, const c10::Argument& result) {
    if (!detail::is_there(call.argument_of(result)) || !detail::is_written(result)) {
      detail::for_each_boxed_tensor(
          [&](const at::Tensor& tensor) {
            if (torch::autograd::isDifferentiableType(tensor.scalar_type())) {
              set_result_history(tensor, node);
            }
          },
          value);
    }
  });
}

} // namespace v1
} // namespace torchext
