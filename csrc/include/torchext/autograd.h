// SPDX-License-Identifier: BSD-3-Clause
//
// What generated backward nodes and autograd kernels lean on.
#pragma once

#include <ATen/TensorGeometry.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_efficientzerotensor.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/grad_mode.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torchext/arguments.h>
#include <torchext/compat.h>
#include <torchext/visibility.h>

#include <array>
#include <optional>
#include <utility>
#include <vector>

namespace torchext {
inline namespace v1 {

using torch::autograd::isDifferentiableType; // conditions of output_differentiability call it
using torch::autograd::SavedVariable;
using torch::autograd::variable_list;
using torch::dynamo::autograd::CompiledNodeArgs;
using torch::dynamo::autograd::SwapSavedVariables;

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

/// Makes the node the history of a tensor that the operator wrote to.
inline void rebase_result_history(
    const at::Tensor& written,
    const NodePtr<torch::autograd::Node>& node,
    bool is_differentiable = true) {
  if (is_differentiable && written.defined()) {
    const auto output = node->add_input_metadata(written);
    torch::autograd::impl::rebase_history(written, {node, output});
  } else {
    node->add_input_metadata(torch::autograd::Node::undefined_input());
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

// ---- forward mode: level 0 is the only one there is

/// The tangent of a tensor, undefined where it has none.
inline at::Tensor raw_tangent_of(const at::Tensor& tensor) {
  return tensor.defined() ? tensor._fw_grad(/*level=*/0) : tensor;
}

inline at::Tensor raw_tangent_of(const std::optional<at::Tensor>& tensor) {
  return tensor.has_value() ? raw_tangent_of(*tensor) : at::Tensor();
}

/// Whether any tensor of the arguments has a tangent.
template <typename... Arguments>
bool has_tangent(const Arguments&... arguments) {
  bool found = false;
  const auto look = [&](const at::Tensor& t) {
    found = found || (t.defined() && t._fw_grad(/*level=*/0).defined());
  };
  (for_each_tensor(look, arguments), ...);
  return found;
}

/// The tensor without its tangent. A number that became a tensor stays one, so that it promotes as
/// the number does.
inline at::Tensor primal_of(const at::Tensor& tensor) {
  const bool is_plain = !tensor.defined() || tensor.unsafeGetTensorImpl()->is_wrapped_number();
  return is_plain ? tensor : tensor._fw_primal(/*level=*/0);
}

inline at::Tensor primal_of(const std::optional<at::Tensor>& tensor) {
  return tensor.has_value() ? primal_of(*tensor) : at::Tensor();
}

/// The tangent that a formula reads: zeros without memory where the tensor has none. That of a
/// number that became a tensor promotes as the number does.
inline at::Tensor tangent_of(const at::Tensor& tensor) {
  at::Tensor found = raw_tangent_of(tensor);
  if (!found.defined() && tensor.defined()) {
    found = at::_efficientzerotensor_symint(tensor.sym_sizes(), tensor.options());
  }
  if (found.defined() && tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
    found.unsafeGetTensorImpl()->set_wrapped_number(true);
  }
  return found;
}

inline at::Tensor tangent_of(const std::optional<at::Tensor>& tensor) {
  return tensor.has_value() ? tangent_of(*tensor) : at::Tensor();
}

/// The same of a tensor that the operator writes to: zeros that can be written to.
inline at::Tensor writable_tangent_of(const at::Tensor& tensor) {
  const at::Tensor found = raw_tangent_of(tensor);
  return found.defined() || !tensor.defined()
             ? found
             : at::zeros_symint(tensor.sym_sizes(), tensor.options());
}

inline at::Tensor writable_tangent_of(const std::optional<at::Tensor>& tensor) {
  return tensor.has_value() ? writable_tangent_of(*tensor) : at::Tensor();
}

/// A tangent that the formula reads after it was written to: a copy where the graph needs both.
inline at::Tensor unshared(const at::Tensor& tangent) {
  return torch::autograd::GradMode::is_enabled() ? tangent.clone() : tangent;
}

inline void set_tangent(
    const at::Tensor& result, const at::Tensor& tangent, bool is_inplace = false) {
  if (result.defined() && tangent.defined()) {
    result._set_fw_grad(tangent, /*level=*/0, is_inplace);
  }
}

inline void set_tangent(at::TensorList results, at::TensorList tangents, bool is_inplace = false) {
  if (tangents.empty()) {
    return; // no formula ran
  }
  TORCH_CHECK(
      results.size() == tangents.size(),
      "a formula gave ",
      tangents.size(),
      " tangents for a list of ",
      results.size(),
      " tensors");
  for (size_t i = 0; i < results.size(); ++i) {
    set_tangent(results[i], tangents[i], is_inplace);
  }
}

// ---- what a node saves

/// The value that a tensor had before the operator wrote to it; the first call copies it.
inline const at::Tensor& kept(std::optional<at::Tensor>& original, const at::Tensor& written) {
  if (!original.has_value()) {
    original = written.clone();
  }
  return *original;
}

/// A result that is an argument. A view shares its history with its base, which may change later.
inline SavedVariable save_written(const at::Tensor& written) {
  return SavedVariable(written, /*is_output=*/true, /*is_inplace_on_view=*/written.is_view());
}

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

/// Of exactly this type, as above: the lists of structured operators.
template <typename List, std::enable_if_t<std::is_same_v<List, at::ITensorListRef>, int> = 0>
std::vector<SavedVariable> save(const List& tensors) {
  std::vector<SavedVariable> saved;
  for_each_tensor([&](const at::Tensor& t) { saved.emplace_back(t, /*is_output=*/false); }, tensors);
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

/// Attributes that formulas use in place of a tensor, where a method alone does not give them.
inline c10::OptionalArray<c10::SymInt> sym_sizes_of(const std::optional<at::Tensor>& tensor) {
  c10::OptionalArray<c10::SymInt> sizes;
  if (tensor.has_value() && tensor->defined()) {
    sizes.list = tensor->sym_sizes().vec();
  }
  return sizes;
}

/// Strides of a strided tensor; empty where the layout has none, so that a formula can ask for the
/// layout first.
inline std::vector<c10::SymInt> sym_strides_of(const at::Tensor& tensor) {
  return tensor.layout() == at::kStrided ? tensor.sym_strides().vec() : std::vector<c10::SymInt>();
}

/// The size of the blocks of a block-compressed sparse tensor: the two dimensions of its values
/// that follow the batch dimensions and the one of the blocks.
inline c10::OptionalArray<c10::SymInt> sym_block_size_of(const at::Tensor& tensor) {
  c10::OptionalArray<c10::SymInt> size;
  if (tensor.layout() == at::kSparseBsr || tensor.layout() == at::kSparseBsc) {
    const int64_t batch_dims =
        (tensor.layout() == at::kSparseBsr ? tensor.crow_indices() : tensor.ccol_indices()).dim() -
        1;
    const at::Tensor values = tensor.values();
    size.list = values.sym_sizes().slice(batch_dims + 1, 2).vec();
  }
  return size;
}

template <typename Tensors>
std::vector<std::vector<int64_t>> sizes_of_all(const Tensors& tensors) {
  std::vector<std::vector<int64_t>> sizes;
  for_each_tensor([&](const at::Tensor& t) { sizes.push_back(t.sizes().vec()); }, tensors);
  return sizes;
}

template <typename Tensors>
std::vector<std::vector<c10::SymInt>> sym_sizes_of_all(const Tensors& tensors) {
  std::vector<std::vector<c10::SymInt>> sizes;
  for_each_tensor([&](const at::Tensor& t) { sizes.push_back(t.sym_sizes().vec()); }, tensors);
  return sizes;
}

template <typename Tensors>
std::vector<at::ScalarType> scalar_types_of_all(const Tensors& tensors) {
  std::vector<at::ScalarType> types;
  for_each_tensor([&](const at::Tensor& t) { types.push_back(t.scalar_type()); }, tensors);
  return types;
}

/// Zeros of a tensor's geometry, without the tensor.
inline at::Tensor zeros_of(const torch::autograd::TypeAndSize& info) {
  return at::zeros_symint(info.sym_sizes, info.options);
}

// ---- what a node unpacks

inline at::Tensor unpack(const SavedVariable& saved) {
  return saved.unpack();
}

/// A result of the node itself: the node is part of its history.
inline at::Tensor unpack(const SavedVariable& saved, torch::autograd::Node& node) {
  return saved.unpack(node.getptr());
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
    at::Tensor tensor = one.unpack();
    tensors.push_back(tensor.defined() ? std::make_optional(std::move(tensor)) : std::nullopt);
  }
  return tensors;
}

// ---- the nodes

/// A range of a node's gradients: one for a tensor, several for a list of tensors.
using GradRange = std::pair<size_t, size_t>;

/// Frees what a node saved. Each element of a list is freed where it is: Python may still hold it.
inline void release(SavedVariable& saved) {
  saved.reset_data();
}

inline void release(std::vector<SavedVariable>& saved) {
  for (SavedVariable& one : saved) {
    one.reset_data();
  }
}

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

  /// For each argument, one tensor or a list of `sizes[i]`, whether this backward needs a gradient.
  template <size_t N>
  std::array<bool, N> needs_input_grad(const std::array<size_t, N>& sizes) const {
    std::array<bool, N> needs{};
    size_t output = 0;
    for (size_t i = 0; i < N; ++i) {
      for (size_t j = 0; j < sizes[i]; ++j) {
        needs[i] = task_should_compute_output(output++) || needs[i];
      }
    }
    return needs;
  }

  bool released_ = false;
};

inline bool any_defined(const variable_list& grads) {
  for (const at::Tensor& grad : grads) {
    if (grad.defined()) {
      return true;
    }
  }
  return false;
}

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
