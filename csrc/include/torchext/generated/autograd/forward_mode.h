// SPDX-License-Identifier: BSD-3-Clause
//
// Tangents of forward mode. Level 0 is the only one there is.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/TensorWrapper.h>
#include <ATen/ops/_efficientzerotensor.h>
#include <ATen/ops/real.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torch/csrc/autograd/grad_mode.h>
#include <torch/csrc/autograd/variable.h>
#include <torchext/generated/arguments.h>

#include <optional>
#include <tuple>
#include <vector>

namespace torchext {
inline namespace v1 {

/// The tangent of a tensor, undefined where it has none.
inline at::Tensor raw_tangent_of(const at::Tensor& tensor) {
  return tensor.defined() ? tensor._fw_grad(/*level=*/0) : tensor;
}

inline at::Tensor raw_tangent_of(const std::optional<at::Tensor>& tensor) {
  return tensor.has_value() ? raw_tangent_of(*tensor) : at::Tensor();
}

/// Whether a tensor has a tangent. Reading one takes a lock, which only a view or a tensor that has
/// had a tangent needs: a view's may come from its base.
inline bool tensor_has_tangent(const at::Tensor& tensor) {
  if (!tensor.defined()) {
    return false;
  }
  const auto* meta = static_cast<const torch::autograd::AutogradMeta*>(
      tensor.unsafeGetTensorImpl()->autograd_meta());
  const bool may_have = meta != nullptr && (meta->is_view_ || meta->fw_grad_ != nullptr);
  return may_have && tensor._fw_grad(/*level=*/0).defined();
}

/// Whether any tensor of the arguments has a tangent.
template <typename... Arguments>
bool has_tangent(const Arguments&... arguments) {
  bool found = false;
  const auto look = [&](const at::Tensor& t) { found = found || tensor_has_tangent(t); };
  (for_each_tensor(look, arguments), ...);
  return found;
}

/// Refuses a forward-mode tangent: an operator without a `result:` formula would drop it silently.
template <typename Argument>
void check_no_tangent(const char* op, const char* name, const Argument& argument) {
  for_each_tensor(
      [&](const at::Tensor& t) {
        TORCH_CHECK_NOT_IMPLEMENTED(
            !tensor_has_tangent(t),
            op,
            ": '",
            name,
            "' carries a forward-mode tangent, and forward-mode differentiation of this operator is "
            "not implemented");
      },
      argument);
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

/// What a formula reads of an argument that no tangent comes of, with the type that it has there.
inline at::Tensor without_tangent(const at::Tensor& tensor) {
  return primal_of(tensor);
}

inline std::optional<at::Tensor> without_tangent(const std::optional<at::Tensor>& tensor) {
  return tensor.has_value() ? std::make_optional(primal_of(*tensor)) : std::nullopt;
}

inline std::vector<at::Tensor> without_tangent(const at::ITensorListRef& tensors) {
  std::vector<at::Tensor> found;
  found.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    found.push_back(primal_of(tensor));
  }
  return found;
}

inline std::vector<at::Tensor> without_tangent(at::TensorList tensors) {
  return without_tangent(at::ITensorListRef(tensors));
}

inline std::optional<std::vector<at::Tensor>> without_tangent(
    const std::optional<at::TensorList>& tensors) {
  return tensors.has_value() ? std::make_optional(without_tangent(*tensors)) : std::nullopt;
}

inline c10::List<std::optional<at::Tensor>> without_tangent(
    const c10::List<std::optional<at::Tensor>>& tensors) {
  c10::List<std::optional<at::Tensor>> found;
  found.reserve(tensors.size());
  for (const std::optional<at::Tensor>& tensor : tensors) {
    found.push_back(without_tangent(tensor));
  }
  return found;
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
  return tangent.defined() && torch::autograd::GradMode::is_enabled() ? tangent.clone() : tangent;
}

/// A tangent that formulas of other results read after it was overwritten.
inline at::Tensor copied(const at::Tensor& tangent) {
  return tangent.defined() ? tangent.clone() : tangent;
}

/// The tensor that holds the values, below the wrappers of functorch.
inline at::Tensor unwrapped(at::Tensor tensor) {
  while (true) {
    if (const auto* wrapper = at::functorch::maybeGetTensorWrapper(tensor)) {
      tensor = wrapper->value();
    } else if (const auto* batched = at::functorch::maybeGetBatchedImpl(tensor)) {
      tensor = batched->value();
    } else {
      return tensor;
    }
  }
}

/// Whether writing to one tensor changes the other. Zeros without memory cannot be written to.
inline bool shares_memory(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined() || a._is_zerotensor()) {
    return false;
  }
  const at::Tensor x = unwrapped(a);
  const at::Tensor y = unwrapped(b);
  return x.is_same(y) || (x.has_storage() && y.has_storage() && x.is_alias_of(y));
}

/// To be called on a new tangent, with the arguments that its formula reads: a copy where it is the
/// tangent of one, a view of it, or the argument. Who writes to the result writes to its tangent.
template <typename... Arguments>
void set_apart(at::Tensor& tangent, const Arguments&... arguments) {
  const auto look = [&tangent](const at::Tensor& tensor) {
    if (shares_memory(tangent, raw_tangent_of(tensor)) || shares_memory(tangent, tensor)) {
      tangent = tangent.clone();
    }
  };
  (for_each_tensor(look, arguments), ...);
}

template <typename... Arguments>
void set_apart(std::vector<at::Tensor>& tangents, const Arguments&... arguments) {
  for (size_t i = 0; i < tangents.size(); ++i) {
    set_apart(tangents[i], arguments...);
    for (size_t j = 0; j < i; ++j) {
      if (shares_memory(tangents[i], tangents[j])) {
        tangents[i] = tangents[i].clone();
      }
    }
  }
}

template <typename... Tangents, typename... Arguments>
void set_apart(std::tuple<Tangents...>& tangents, const Arguments&... arguments) {
  const auto each = [&](auto&... tangent) {
    std::vector<at::Tensor> all{tangent...};
    set_apart(all, arguments...);
    size_t next = 0;
    ((tangent = all[next++]), ...);
  };
  std::apply(each, tangents);
}

/// The tangent of an argument that an operator has written to: its own, written to as well, where it
/// has one.
inline at::Tensor written_tangent(const at::Tensor& tangent, const at::Tensor& value) {
  if (!tangent.defined()) {
    return value;
  }
  return value.defined() ? tangent.copy_(value) : tangent.zero_();
}

/// What a formula gave for the tangent of what was written to: zeros where that is none and the
/// argument had one, which is the old value's.
inline at::Tensor tangent_or_zeros(const at::Tensor& tangent, const at::Tensor& written) {
  const at::Tensor old = tangent.defined() ? at::Tensor() : raw_tangent_of(written);
  return old.defined() ? at::zeros_like(old) : tangent;
}

/// The tangent of what an operator has made a view of itself: of the same memory, as the value.
inline at::Tensor view_in_place(const at::Tensor& tangent, const at::Tensor& view) {
  if (!tangent.defined() || tangent.is_same(view)) {
    return view;
  }
  TORCH_CHECK(
      shares_memory(view, tangent),
      "the formula of a tangent gives a tensor that is no view of it, for an operator that makes "
      "its argument a view of itself");
  const at::Tensor found =
      tangent.as_strided__symint(view.sym_sizes(), view.sym_strides(), view.sym_storage_offset());
  TORCH_CHECK(
      found.sym_sizes() == view.sym_sizes() && found.sym_strides() == view.sym_strides(),
      "a batch of tangents was not made a view of itself: an operator that makes its argument one "
      "needs 'auto_linear' for the tangent");
  return found;
}

/// A tangent as the result has it, of real numbers where that is; gradients are converted likewise.
inline at::Tensor of_dtype(const at::Tensor& tangent, at::ScalarType dtype) {
  const bool drops = tangent.is_complex() && !c10::isComplexType(dtype);
  return tangent.scalar_type() == dtype ? tangent : (drops ? at::real(tangent) : tangent).to(dtype);
}

/// Gives a result its tangent; one of integers has none. What was written to has its tangent written
/// to, where it has one.
inline void set_tangent(
    const at::Tensor& result, const at::Tensor& tangent, bool is_inplace = false) {
  const bool is_there = result.defined() && tangent.defined();
  if (!is_there || !torch::autograd::isDifferentiableType(result.scalar_type())) {
    return;
  }
  const at::Tensor found = of_dtype(tangent, result.scalar_type());
  const at::Tensor existing = is_inplace ? raw_tangent_of(result) : at::Tensor();
  const bool is_other = existing.defined() && !existing.is_same(found);
  result._set_fw_grad(is_other ? existing.copy_(found) : found, /*level=*/0, is_inplace);
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

} // namespace v1
} // namespace torchext
