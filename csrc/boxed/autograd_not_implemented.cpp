// SPDX-License-Identifier: BSD-3-Clause
#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torchext/generated/autograd.h>
#include <torchext/generated/autograd_not_implemented.h>
#include <torchext/generated/boxed.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "boxed_call.h"

namespace torchext {
inline namespace v1 {
namespace detail {
namespace {

/// Refuses a new result that is not new, whatever is recorded: a traced call, which records nothing,
/// takes it as its own.
void check_results(
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
void redispatch_below(
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

} // namespace
} // namespace detail

namespace {

void ignored(
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

bool is_rebased(const at::Tensor& tensor, const c10::Argument& argument) {
  return detail::is_written(argument) &&
         torch::autograd::isDifferentiableType(tensor.scalar_type());
}

void not_implemented(
    const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const detail::BoxedCall call(op, *stack);
  torch::autograd::edge_list edges;
  torch::autograd::edge_list edges_of_written;
  call.for_each_argument([&](const at::Tensor& tensor, const c10::Argument& argument) {
    check_no_tangent(call.name().c_str(), argument.name().c_str(), tensor);
    if (any_requires_grad(tensor)) {
      edges.push_back(torch::autograd::impl::gradient_edge(tensor));
    }
    if (is_rebased(tensor, argument)) {
      edges_of_written.push_back(torch::autograd::impl::gradient_edge(tensor));
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
  const auto new_node = [&](torch::autograd::edge_list next) {
    return make_node<torch::autograd::NotImplemented>(call.name(), std::move(next));
  };
  size_t next = 0;
  call.for_each_argument([&](const at::Tensor& tensor, const c10::Argument& argument) {
    if (is_rebased(tensor, argument)) {
      // A node of its own: a view that is written to cannot share one, and torch takes the first
      // edge for that of the view's base, whether or not there is a gradient of it.
      const torch::autograd::Edge first = edges_of_written[next++];
      torch::autograd::edge_list own = {first};
      const auto is_another = [&first](const auto& edge) { return !(edge == first); };
      std::copy_if(edges.begin(), edges.end(), std::back_inserter(own), is_another);
      torch::autograd::rebase_history(tensor, new_node(std::move(own)));
    }
  });
  const NodePtr<torch::autograd::Node> node = new_node(edges);
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

} // namespace

torch::CppFunction autograd_ignored() {
  return torch::CppFunction::makeFromBoxedFunction<&ignored>();
}

torch::CppFunction autograd_not_implemented() {
  return torch::CppFunction::makeFromBoxedFunction<&not_implemented>();
}

} // namespace v1
} // namespace torchext
