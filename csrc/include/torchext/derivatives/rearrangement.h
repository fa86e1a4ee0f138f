// SPDX-License-Identifier: BSD-3-Clause
//
// Derivatives of operators that put the elements of tensors into another order or place: strided
// views, slices, padding, repetition, lists of tensors joined or split.
#pragma once

#include <ATen/TensorGeometry.h>
#include <ATen/core/IListRef.h>
#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>
#include <c10/core/SymInt.h>
#include <c10/core/SymIntArrayRef.h>
#include <c10/core/TensorOptions.h>

#include <optional>
#include <vector>

namespace torchext {
inline namespace v1 {
namespace derivatives {

/// Gradient of the tensor of geometry `input_geometry` that as_strided(sizes, strides, offset) was
/// taken of. Elements of the view that share a location add up; elements of the input that share
/// one get equal parts. No offset means the input's.
at::Tensor as_strided_backward(
    at::Tensor grad,
    const at::TensorGeometry& input_geometry,
    c10::SymIntArrayRef sizes,
    c10::SymIntArrayRef strides,
    const std::optional<c10::SymInt>& storage_offset);

/// Gradient of `self` in as_strided_scatter(self, src, sizes, strides, offset): zero where `src`
/// was written, also if `self` was not contiguous.
at::Tensor as_strided_scatter_backward(
    const at::Tensor& grad,
    const at::TensorGeometry& input_geometry,
    const at::TensorGeometry& src_geometry,
    c10::SymIntArrayRef sizes,
    c10::SymIntArrayRef strides,
    std::optional<c10::SymInt> storage_offset);

/// Gradient of `self` of shape `input_sizes` in a slice; no `start` means 0, no `end` the length.
at::Tensor slice_backward_wrapper(
    const at::Tensor& grad,
    const c10::SymIntArrayRef& input_sizes,
    int64_t dim,
    std::optional<c10::SymInt> start,
    std::optional<c10::SymInt> end,
    const c10::SymInt& step);

/// Gradient of `self` in constant_pad_nd(self, pad).
at::Tensor constant_pad_nd_backward(const at::Tensor& grad, c10::SymIntArrayRef pad);

/// Gradient of `self` of shape `input_shape` in self.repeat(repeats).
at::Tensor repeat_backward(
    at::Tensor grad, c10::SymIntArrayRef repeats, c10::SymIntArrayRef input_shape);

/// The list from its end to its beginning.
std::vector<c10::SymInt> reverse_list_symint(const c10::SymIntArrayRef list);

/// The list from its end to its beginning.
std::vector<int64_t> reverse_list(const at::IntArrayRef list);

/// Gradient of the tensor of shape `sizes` that split(split_size, dim) made pieces of. The gradient
/// of a piece may be undefined.
at::Tensor split_backward(
    const std::vector<at::Tensor>& grads,
    const c10::SymInt& split_size,
    int64_t dim,
    c10::SymIntArrayRef sizes,
    const at::TensorOptions& options);

/// Gradient of the tensor of shape `sizes` that split_with_sizes(split_sizes, dim) made pieces of.
/// The gradient of a piece may be undefined: zeros with `options`.
at::Tensor split_with_sizes_backward(
    const std::vector<at::Tensor>& grads,
    c10::SymIntArrayRef split_sizes,
    int64_t dim,
    c10::SymIntArrayRef sizes,
    const at::TensorOptions& options);

/// Tangent of cat; undefined where no tensor has one.
at::Tensor cat_jvp(const at::ITensorListRef& tensors, int64_t dim);

/// Gradients of the tensors of shapes `sizes` in cat; all undefined where `grad` is.
std::vector<at::Tensor> cat_tensors_backward(
    const at::Tensor& grad,
    const std::vector<std::vector<c10::SymInt>>& sizes,
    const std::vector<at::ScalarType>& dtypes,
    int64_t dim);

/// Tangent of stack; undefined where no tensor has one.
at::Tensor stack_jvp(at::TensorList tensors, int64_t dim);

/// Gradients of the tensors in stack; all undefined where `grad` is.
std::vector<at::Tensor> stack_tensors_backward(
    const at::Tensor& grad, int64_t dim, const std::vector<at::ScalarType>& dtypes);

/// Tangent of block_diag; undefined where no tensor has one.
at::Tensor block_diag_jvp(at::TensorList tensors);

/// Gradients of the tensors of shapes `sizes` in block_diag; all undefined where `grad` is.
std::vector<at::Tensor> block_diag_backward(
    const at::Tensor& grad,
    const std::vector<std::vector<int64_t>>& sizes,
    const std::vector<at::ScalarType>& dtypes);

} // namespace derivatives
} // namespace v1
} // namespace torchext
