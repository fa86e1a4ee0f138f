// SPDX-License-Identifier: BSD-3-Clause
//
// What a node saves of the arguments and results, and how its formulas get it back.
#pragma once

#include <ATen/TensorGeometry.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/util/OptionalArrayRef.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torchext/generated/arguments.h>

#include <iterator>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace torchext {
inline namespace v1 {

using torch::autograd::SavedVariable;

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

/// The same of one that may be missing.
inline at::Tensor kept(
    std::optional<at::Tensor>& original, const std::optional<at::Tensor>& written) {
  return has_tensor(written) ? kept(original, *written) : at::Tensor();
}

/// A result that is an argument where that is given, and new where it is missing.
inline SavedVariable save_written(
    const std::optional<at::Tensor>& written, const at::Tensor& result) {
  return has_tensor(written) ? save_written(*written)
                           : SavedVariable(result, /*is_output=*/true);
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
  for_each_tensor(
      [&](const at::Tensor& t) { saved.emplace_back(t, /*is_output=*/false); }, tensors);
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

/// Undefined where the tensor is missing.
inline at::ScalarType scalar_type_of(const std::optional<at::Tensor>& tensor) {
  const bool is_there = tensor.has_value() && tensor->defined();
  return is_there ? tensor->scalar_type() : at::ScalarType::Undefined;
}

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

/// Sizes and options of a tensor, empty ones of an undefined one.
inline torch::autograd::TypeAndSize info_of(const at::Tensor& tensor) {
  return tensor.defined() ? torch::autograd::TypeAndSize(tensor) : torch::autograd::TypeAndSize();
}

inline std::vector<torch::autograd::TypeAndSize> infos_of(at::TensorList tensors) {
  std::vector<torch::autograd::TypeAndSize> infos;
  infos.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    infos.push_back(info_of(tensor));
  }
  return infos;
}

/// Zeros of a tensor's geometry, without the tensor; of an undefined one an undefined one.
inline at::Tensor zeros_of(const torch::autograd::TypeAndSize& info) {
  return info.options.has_dtype() ? at::zeros_symint(info.sym_sizes, info.options) : at::Tensor();
}

inline std::vector<at::Tensor> zeros_of(const std::vector<torch::autograd::TypeAndSize>& infos) {
  std::vector<at::Tensor> zeros;
  zeros.reserve(infos.size());
  for (const torch::autograd::TypeAndSize& info : infos) {
    zeros.push_back(zeros_of(info));
  }
  return zeros;
}

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

/// What was saved, to be freed; what is left behind is as SavedVariable::reset_data leaves it.
inline SavedVariable moved_out(SavedVariable& saved) {
  return std::move(saved);
}

/// The same; the variables stay where they are, empty: `_raw_saved_*` of Python refers to them.
inline std::vector<SavedVariable> moved_out(std::vector<SavedVariable>& saved) {
  return {std::make_move_iterator(saved.begin()), std::make_move_iterator(saved.end())};
}

} // namespace v1
} // namespace torchext
