// SPDX-License-Identifier: BSD-3-Clause
//
// Views of one memory that no operator is called for.
#pragma once

#include <ATen/LegacyBatchedTensorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/alias.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include <utility>
#include <vector>

namespace torchext {
inline namespace v1 {
namespace detail {

/// The same memory, read as its conjugate or with the other sign where the two tensors differ so.
inline at::Tensor with_bits(at::Tensor tensor, const at::Tensor& of, const at::Tensor& other) {
  tensor = of.is_conj() != other.is_conj() ? tensor._conj() : std::move(tensor);
  return of.is_neg() != other.is_neg() ? tensor._neg_view() : std::move(tensor);
}

/// Sizes, strides, place and dtype of a tensor, so that it can be made again of its memory.
class Geometry {
 public:
  explicit Geometry(const at::Tensor& tensor)
      : sizes_(tensor.sym_sizes().vec()),
        strides_(tensor.sym_strides().vec()),
        offset_(tensor.sym_storage_offset()),
        dtype_(tensor.scalar_type()) {}

  bool is_that_of(const at::Tensor& tensor) const {
    return tensor.sym_sizes() == sizes_ && tensor.sym_strides() == strides_ &&
           tensor.sym_storage_offset() == offset_ && tensor.scalar_type() == dtype_;
  }

  /// A view of the whole memory that the tensor has a part of.
  at::Tensor of_memory_of(at::Tensor tensor) const {
    const bool is_real = !tensor.is_complex();
    if (is_real && c10::isComplexType(dtype_)) {
      return at::view_as_complex(as_pairs(tensor));
    }
    if (!is_real && !c10::isComplexType(dtype_)) {
      tensor = at::view_as_real(tensor);
    }
    if (tensor.scalar_type() != dtype_) {
      tensor = tensor.view(dtype_);
    }
    return tensor.as_strided_symint(sizes_, strides_, offset_);
  }

 private:
  /// Real and imaginary parts of a complex tensor, in its real view.
  at::Tensor as_pairs(const at::Tensor& real) const {
    std::vector<c10::SymInt> sizes = sizes_;
    std::vector<c10::SymInt> strides;
    for (const c10::SymInt& stride : strides_) {
      strides.push_back(stride * 2);
    }
    sizes.emplace_back(2);
    strides.emplace_back(1);
    return real.as_strided_symint(sizes, strides, offset_ * 2);
  }

  std::vector<c10::SymInt> sizes_;
  std::vector<c10::SymInt> strides_;
  c10::SymInt offset_;
  at::ScalarType dtype_;
};

} // namespace detail

/// What a kernel returns as a view: where that is the argument itself, another tensor of its memory.
/// Autograd and what traces a call tell tensors apart, not memory.
inline at::Tensor distinct_view(at::Tensor view, const at::Tensor& base) {
  return view.is_same(base) ? at::alias(base) : std::move(view);
}

inline at::Tensor distinct_view(at::Tensor view, at::TensorList bases) {
  for (const at::Tensor& base : bases) {
    view = distinct_view(std::move(view), base);
  }
  return view;
}

template <typename Bases>
std::vector<at::Tensor> distinct_view(std::vector<at::Tensor> views, const Bases& bases) {
  for (at::Tensor& view : views) {
    view = distinct_view(std::move(view), bases);
  }
  return views;
}

namespace detail {

inline void check_not_recorded(const at::Tensor& base) {
  const auto* batch = at::maybeGetBatchedImpl(base);
  TORCH_CHECK(
      batch == nullptr || !(c10::GradMode::is_enabled() && batch->value().requires_grad()),
      "a batch of gradients (is_grads_batched) cannot be differentiated again through an operator "
      "that returns a view; use torch.func.vmap");
}

inline void check_not_recorded(at::TensorList bases) {
  for (const at::Tensor& base : bases) {
    check_not_recorded(base);
  }
}

} // namespace detail

/// The same of a batch of gradients or tangents, as torch.autograd makes them: its views are made
/// above autograd, which would record what the kernel is made of and not ask the operator's formula.
template <typename Views, typename Bases>
Views batched_view(Views views, const Bases& bases) {
  detail::check_not_recorded(bases);
  return distinct_view(std::move(views), bases);
}

} // namespace v1
} // namespace torchext
