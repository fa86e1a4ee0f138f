// SPDX-License-Identifier: BSD-3-Clause
//
// How an autograd kernel connects its node to the graph, and what it refuses.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/grad_mode.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torch/csrc/autograd/variable.h>
#include <torchext/generated/arguments.h>
#include <torchext/compat.h>
#include <torchext/generated/memory_overlap.h>

#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

namespace torchext {
inline namespace v1 {

/// Whether gradients are recorded and any tensor of the arguments requires one.
template <typename... Arguments>
bool any_requires_grad(const Arguments&... arguments) {
  bool found = false;
  if (torch::autograd::GradMode::is_enabled()) {
    const auto look = [&](const at::Tensor& t) {
      found = found || (t.defined() && t.requires_grad());
    };
    (for_each_tensor(look, arguments), ...);
  }
  return found;
}

/// The edges of a node: one for each tensor of the arguments, empty for a missing optional one.
template <typename... Arguments>
torch::autograd::edge_list collect_edges(const Arguments&... arguments) {
  torch::autograd::edge_list edges;
  edges.reserve(sizeof...(Arguments)); // more only where there are lists
  const auto add = [&](const at::Tensor& t) {
    edges.push_back(
        t.defined() ? torch::autograd::impl::gradient_edge(t) : torch::autograd::Edge());
  };
  (for_each_tensor(add, arguments), ...);
  return edges;
}

/// A node that computes the gradients of the arguments; none unless it is to be recorded.
template <typename Own, typename... Arguments>
NodePtr<Own> recorded_node(bool records, const Arguments&... arguments) {
  if (!records) {
    return nullptr;
  }
  NodePtr<Own> node = make_node<Own>();
  node->set_next_edges(collect_edges(arguments...));
  return node;
}

/// Refuses a tensor that requires grad where no formula gives its gradient.
template <typename Argument>
void check_no_requires_grad(const char* op, const char* name, const Argument& argument) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      !any_requires_grad(argument),
      op,
      ": '",
      name,
      "' requires grad, and the derivative for it is not implemented");
}

/// Refuses a complex result that requires grad, of an operator whose complex gradient is unchecked.
template <typename Result>
void check_not_complex(const char* op, const Result& result) {
  for_each_tensor(
      [&](const at::Tensor& t) {
        TORCH_CHECK(
            !(t.defined() && t.is_complex() && t.requires_grad()),
            op,
            " does not support automatic differentiation for outputs with complex dtype.");
      },
      result);
}

/// Calls an operator below its autograd kernel, whose version counters and views are still to come.
template <typename Operator, typename... Arguments>
decltype(auto) below_autograd(c10::DispatchKeySet keys, Arguments&&... arguments) {
  const at::AutoDispatchBelowAutograd guard;
  return Operator::redispatch(
      keys & c10::after_autograd_keyset, std::forward<Arguments>(arguments)...);
}

/// The same of an operator that neither writes to an argument nor returns a view.
template <typename Operator, typename... Arguments>
decltype(auto) below_adinplace_or_view(c10::DispatchKeySet keys, Arguments&&... arguments) {
  const at::AutoDispatchBelowADInplaceOrView guard;
  return Operator::redispatch(
      keys & c10::after_autograd_keyset, std::forward<Arguments>(arguments)...);
}

/// Marks a result as computed by the node, if there is one, in the order of the results: each call
/// adds an input. One that cannot require grad adds an input too, so that formulas count as the
/// operator does.
inline void set_result_history(
    const at::Tensor& result,
    const NodePtr<torch::autograd::Node>& node,
    bool is_differentiable = true) {
  if (!node) {
    return;
  }
  const bool flows = is_differentiable && result.defined() &&
                     torch::autograd::isDifferentiableType(result.scalar_type());
  if (flows) {
    torch::autograd::set_history(result, node);
  } else {
    node->add_input_metadata(torch::autograd::Node::undefined_input());
  }
}

inline void set_result_history(
    const std::vector<at::Tensor>& results,
    const NodePtr<torch::autograd::Node>& node,
    bool is_differentiable = true) {
  for (const at::Tensor& result : results) {
    set_result_history(result, node, is_differentiable);
  }
}

/// Refuses to write to a view where the operator has other results too: the history of a view's base
/// comes from a node with one result.
inline void check_no_view(
    const char* op, const char* name, const at::Tensor& written, bool records) {
  TORCH_CHECK(
      !(records && written.defined() && written.is_view()),
      op,
      ": '",
      name,
      "' is a view, and an operator with several differentiable results cannot write to one while "
      "gradients are recorded; write to a copy");
}

inline void check_no_view(
    const char* op, const char* name, const std::optional<at::Tensor>& written, bool records) {
  check_no_view(op, name, written.value_or(at::Tensor()), records);
}

namespace detail {

inline at::Tensor or_undefined(const at::Tensor& tensor) {
  return tensor;
}

inline at::Tensor or_undefined(const std::optional<at::Tensor>& tensor) {
  return tensor.value_or(at::Tensor());
}

} // namespace detail

/// Refuses several arguments that are written to and share memory, where gradients or tangents are
/// recorded: a formula takes each for the only one that is written.
template <typename... Written>
void check_written_apart(
    const char* op,
    bool is_recorded,
    std::initializer_list<const char*> names,
    const Written&... written) {
  if (!is_recorded) {
    return;
  }
  const at::Tensor all[] = {detail::or_undefined(written)...};
  for (size_t i = 0; i < sizeof...(Written); ++i) {
    for (size_t j = i + 1; j < sizeof...(Written); ++j) {
      TORCH_CHECK(
          !detail::share_memory(all[i], all[j]),
          op,
          ": '",
          names.begin()[i],
          "' and '",
          names.begin()[j],
          "' are written to and share memory, which no formula of their derivatives knows; pass a "
          ".clone() of one of them");
    }
  }
}

/// The tensor where it is a view: its base gets zeros for the part whose value is gone. Where it is
/// none, nothing is left of the value that was there.
inline at::Tensor only_view(const at::Tensor& written) {
  return written.defined() && written.is_view() ? written : at::Tensor();
}

inline at::Tensor only_view(const std::optional<at::Tensor>& written) {
  return only_view(written.value_or(at::Tensor()));
}

/// Refuses to write to a leaf that requires grad, and the like, where the argument is given.
inline void check_inplace(const std::optional<at::Tensor>& written, bool records) {
  if (has_tensor(written)) {
    torch::autograd::check_inplace(*written, records);
  }
}

/// Refuses gradients and tangents where the result is given, as for ATen's out= forms.
inline void check_out(
    const char* op, const std::optional<at::Tensor>& out, bool records, bool has_tangent) {
  if (has_tensor(out)) {
    TORCH_CHECK_NOT_IMPLEMENTED(
        !has_tangent, op, ": a result that is given, as that of an out= form, has no tangent");
    if (records) {
      torch::autograd::throw_error_out_requires_grad(op);
    }
    torch::autograd::check_inplace(*out, records);
  }
}

/// Makes the node, if there is one, the history of a tensor that the operator wrote to.
inline void rebase_result_history(
    const at::Tensor& written,
    const NodePtr<torch::autograd::Node>& node,
    bool is_differentiable = true) {
  if (!node) {
    return;
  }
  if (is_differentiable && written.defined()) {
    const auto output = node->add_input_metadata(written);
    torch::autograd::impl::rebase_history(written, {node, output});
  } else {
    node->add_input_metadata(torch::autograd::Node::undefined_input());
  }
}

/// The same of a result that is an argument where that is given, and new where it is missing.
inline void rebase_result_history(
    const std::optional<at::Tensor>& written,
    const at::Tensor& result,
    const NodePtr<torch::autograd::Node>& node,
    bool is_differentiable = true) {
  if (has_tensor(written)) {
    rebase_result_history(*written, node, is_differentiable);
  } else {
    set_result_history(result, node, is_differentiable);
  }
}

inline void rebase_result_history(
    at::TensorList written,
    const NodePtr<torch::autograd::Node>& node,
    bool is_differentiable = true) {
  for (const at::Tensor& tensor : written) {
    rebase_result_history(tensor, node, is_differentiable);
  }
}

} // namespace v1
} // namespace torchext
