// SPDX-License-Identifier: BSD-3-Clause
//
// What generated backward nodes and autograd kernels lean on.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/grad_mode.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/autograd/variable.h>
#include <torchext/arguments.h>
#include <torchext/compat.h>
#include <torchext/visibility.h>

#include <array>
#include <optional>
#include <utility>
#include <vector>

namespace torchext {
inline namespace v1 {

using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

// ---- when a kernel is called

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
  const auto add = [&](const at::Tensor& t) {
    edges.push_back(
        t.defined() ? torch::autograd::impl::gradient_edge(t) : torch::autograd::Edge());
  };
  (for_each_tensor(add, arguments), ...);
  return edges;
}

/// Refuses a forward-mode tangent: an operator without a `result:` formula would drop it silently.
template <typename Argument>
void check_no_tangent(const char* op, const char* name, const Argument& argument) {
  for_each_tensor(
      [&](const at::Tensor& t) {
        TORCH_CHECK_NOT_IMPLEMENTED(
            !(t.defined() && t._fw_grad(/*level=*/0).defined()),
            op,
            ": '",
            name,
            "' carries a forward-mode tangent, and forward-mode differentiation of this operator is "
            "not implemented");
      },
      argument);
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

/// Refuses a result that is an argument: its history would become that of the caller's tensor.
template <typename Result, typename... Arguments>
void check_new(const char* op, const Result& result, const Arguments&... arguments) {
  const auto check = [&](const at::Tensor& made) {
    const auto compare = [&](const at::Tensor& given) {
      TORCH_CHECK(
          !made.defined() || made.unsafeGetTensorImpl() != given.unsafeGetTensorImpl(),
          op,
          ": the kernel returned one of its arguments, expected a new tensor: return a copy, or "
          "declare the alias in the schema");
    };
    (for_each_tensor(compare, arguments), ...);
  };
  for_each_tensor(check, result);
}

/// Marks a result as computed by the node, in the order of the results: each call adds an input.
/// One that cannot require grad adds an input too, so that formulas count as the operator does.
inline void set_result_history(
    const at::Tensor& result,
    const NodePtr<torch::autograd::Node>& node,
    bool is_differentiable = true) {
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

// ---- what a node saves

inline SavedVariable save(const at::Tensor& tensor, bool is_output = false) {
  return SavedVariable(tensor, is_output);
}

inline SavedVariable save(const std::optional<at::Tensor>& tensor) {
  return SavedVariable(tensor, /*is_output=*/false);
}

inline std::vector<SavedVariable> save(at::TensorList tensors, bool is_output = false) {
  std::vector<SavedVariable> saved;
  saved.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    saved.emplace_back(tensor, is_output);
  }
  return saved;
}

inline std::vector<SavedVariable> save(const c10::List<std::optional<at::Tensor>>& tensors) {
  std::vector<SavedVariable> saved;
  for_each_tensor(
      [&](const at::Tensor& t) { saved.emplace_back(t, /*is_output=*/false); }, tensors);
  return saved;
}

/// A value that is not a tensor, as the node keeps it: lists and strings are copied.
template <typename Saved, typename T>
Saved save_value(c10::ArrayRef<T> values) {
  return values.vec();
}

template <typename Saved, typename Value>
Saved save_value(const Value& value) {
  if constexpr (std::is_convertible_v<const Value&, Saved>) {
    return value;
  } else if constexpr (std::is_constructible_v<Saved, const Value&>) {
    return Saved(value);
  } else {
    return value.has_value() ? Saved(value->vec()) : Saved();
  }
}

// ---- what a node unpacks

inline at::Tensor unpack(const SavedVariable& saved) {
  return saved.unpack();
}

/// A result of the node itself: the node is part of its history.
inline at::Tensor unpack(const SavedVariable& saved, torch::autograd::Node& node) {
  return saved.unpack(node.getptr());
}

inline std::optional<at::Tensor> unpack_optional(const SavedVariable& saved) {
  at::Tensor tensor = saved.unpack();
  return tensor.defined() ? std::make_optional(std::move(tensor)) : std::nullopt;
}

inline std::vector<at::Tensor> unpack(const std::vector<SavedVariable>& saved) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(saved.size());
  for (const SavedVariable& one : saved) {
    tensors.push_back(one.unpack());
  }
  return tensors;
}

inline std::vector<at::Tensor> unpack(
    const std::vector<SavedVariable>& saved, torch::autograd::Node& node) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(saved.size());
  for (const SavedVariable& one : saved) {
    tensors.push_back(one.unpack(node.getptr()));
  }
  return tensors;
}

inline c10::List<std::optional<at::Tensor>> unpack_optional(
    const std::vector<SavedVariable>& saved) {
  c10::List<std::optional<at::Tensor>> tensors;
  tensors.reserve(saved.size());
  for (const SavedVariable& one : saved) {
    tensors.push_back(unpack_optional(one));
  }
  return tensors;
}

// ---- the nodes

/// A range of a node's gradients: one for a tensor, several for a list of tensors.
using GradRange = std::pair<size_t, size_t>;

/// Base of the generated nodes.
class TORCHEXT_API BackwardNode : public torch::autograd::Node {
 public:
  using Node::Node;

  void will_release_variables() override {
    retain_variables = false;
  }

 protected:
  /// Formulas may ask for it: false where this is the last backward.
  bool retain_variables = true;

  /// Saved lists of tensors cannot tell by themselves that they were freed.
  void check_not_released() const {
    TORCH_CHECK(!released_, torch::autograd::ERR_BACKWARD_TWICE);
  }

  bool needs(GradRange range) const {
    for (size_t i = range.first; i < range.second; ++i) {
      if (task_should_compute_output(i)) {
        return true;
      }
    }
    return false;
  }

  static bool any_defined(const variable_list& grads) {
    for (const at::Tensor& grad : grads) {
      if (grad.defined()) {
        return true;
      }
    }
    return false;
  }

  bool released_ = false;
};

/// Hands out the ranges of a node's gradients one after the other.
class GradRanges {
 public:
  GradRange next(size_t count = 1) {
    size_ += count;
    return {size_ - count, size_};
  }

  size_t size() const {
    return size_;
  }

 private:
  size_t size_ = 0;
};

inline void store(variable_list& grads, GradRange range, const at::Tensor& grad) {
  TORCH_INTERNAL_ASSERT(range.second - range.first == 1);
  grads[range.first] = grad;
}

inline void store(variable_list& grads, GradRange range, at::TensorList values) {
  TORCH_CHECK(
      values.size() == range.second - range.first,
      "a formula gave ",
      values.size(),
      " gradients for a list of ",
      range.second - range.first,
      " tensors");
  for (size_t i = 0; i < values.size(); ++i) {
    grads[range.first + i] = values[i];
  }
}

} // namespace v1
} // namespace torchext
