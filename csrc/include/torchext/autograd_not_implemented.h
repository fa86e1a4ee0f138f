// SPDX-License-Identifier: BSD-3-Clause
//
// The autograd kernels of operators without formulas, boxed: they serve every schema. No gradient
// is dropped silently: backward names the operator, for results, for tensors that are written to
// (returned or not) and for views.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/ops/alias.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torchext/autograd.h>
#include <torchext/boxed.h>

#include <algorithm>
#include <memory>
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

  /// The argument of the same alias set as a result: what the result is or views; None without.
  c10::IValue argument_of(const c10::Argument& result) const {
    for (size_t i = 0; i < values_.size(); ++i) {
      if (same_alias(schema_.arguments()[i], result)) {
        return values_[i];
      }
    }
    return c10::IValue();
  }

 private:
  const c10::FunctionSchema& schema_;
  std::string name_;
  std::vector<c10::IValue> values_;
};

/// The tensor among those of an argument that a result is a view of.
inline at::Tensor base_of(
    const std::string& name, const at::Tensor& view, const c10::IValue& argument) {
  at::Tensor base;
  for_each_boxed_tensor(
      [&](const at::Tensor& tensor) {
        const bool shares = tensor.has_storage() && view.has_storage() &&
                            tensor.storage().is_alias_of(view.storage());
        if (!base.defined() && (argument.isTensor() || shares)) {
          base = tensor;
        }
      },
      argument);
  TORCH_CHECK(base.defined(), name, ": a result is a view of no tensor of its alias set");
  return base;
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

/// Kernel of the ADInplaceOrView key, for operators that write to arguments or return views:
/// raises version counters and links views to their bases.
inline void track_aliases(
    const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const detail::BoxedCall call(op, *stack);
  {
    at::AutoDispatchBelowADInplaceOrView guard;
    op.redispatchBoxed(keys & c10::after_ADInplaceOrView_keyset, stack);
  }
  call.for_each_argument([](const at::Tensor& tensor, const c10::Argument& argument) {
    if (detail::is_written(argument)) {
      torch::autograd::impl::bump_version(tensor);
    }
  });
  using torch::autograd::CreationMeta;
  const bool recording = torch::autograd::GradMode::is_enabled();
  const auto meta = [&](CreationMeta normal) {
    return c10::InferenceMode::is_enabled() ? CreationMeta::INFERENCE_MODE
           : recording                      ? normal
                                            : CreationMeta::NO_GRAD_MODE;
  };
  call.for_each_result(*stack, [&](c10::IValue& value, const c10::Argument& result) {
    if (!detail::is_view(result)) {
      return;
    }
    if (value.isNone()) {
      return;
    }
    const c10::IValue argument = call.argument_of(result);
    const auto link = [&](at::Tensor tensor, CreationMeta creation) {
      const at::Tensor base = detail::base_of(call.name(), tensor, argument);
      if (tensor.unsafeGetTensorImpl() == base.unsafeGetTensorImpl()) {
        // The kernel had nothing to do and returned the argument, whose history is the caller's.
        at::AutoDispatchBelowADInplaceOrView guard;
        tensor = at::alias(base);
      }
      // A view function of our own: without one, writing to the view would replay it as an
      // as_strided and the missing derivative would go unnoticed.
      const std::string why =
          "writing to a view made by " + call.name() + ", which has no derivative, is refused";
      return torch::autograd::as_view(
          base,
          tensor,
          /*is_bw_differentiable=*/true,
          /*is_fw_differentiable=*/true,
          std::make_unique<torch::autograd::ErroringViewFunc>(why),
          [why](const at::Tensor&) -> at::Tensor { TORCH_CHECK(false, why); },
          creation);
    };
    if (value.isTensor()) {
      value = link(value.toTensor(), meta(CreationMeta::DEFAULT));
    } else {
      std::vector<at::Tensor> views;
      for (const at::Tensor& tensor : value.toTensorVector()) {
        views.push_back(link(tensor, meta(CreationMeta::MULTI_OUTPUT_NODE)));
      }
      value = std::move(views);
    }
  });
}

} // namespace v1
} // namespace torchext
