// SPDX-License-Identifier: BSD-3-Clause
//
// Derivatives of views that change the order or number of dimensions, and of views that nested and
// sparse tensors have of their parts.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymIntArrayRef.h>
#include <c10/core/TensorOptions.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/OptionalArrayRef.h>

#include <vector>

namespace torchext {
inline namespace v1 {
namespace derivatives {

/// Gradient of the tensor that permute(dims) was taken of.
at::Tensor permute_backwards(const at::Tensor& grad, at::IntArrayRef dims);

/// The tensor with dimensions of size 1 inserted, so that it has `dim` dimensions and those of
/// `dims` are new; all are where there are no `dims`.
at::Tensor unsqueeze_multiple(const at::Tensor& tensor, at::OptionalIntArrayRef dims, size_t dim);

/// Gradient of the tensor that unbind(dim) made slices of. The gradient of a slice may be undefined,
/// but not all of them.
at::Tensor unbind_backward(const std::vector<at::Tensor>& grads, int64_t dim);

/// The same of a nested tensor with the layout strided, whose components have the sizes `sizes`
/// [components, dimensions] and options; `dim` is 0.
at::Tensor unbind_backward_nested(
    const std::vector<at::Tensor>& grads,
    const at::Tensor& sizes,
    int64_t dim,
    const at::TensorOptions& options);

/// The same of a nested tensor with the layout jagged.
at::Tensor unbind_backward_nested_jagged(
    const std::vector<at::Tensor>& grads, const at::Tensor& self, int64_t dim);

/// Gradient of the nested tensor with the layout jagged that chunk(chunks, dim) made pieces of. The
/// gradient of a piece may be undefined.
at::Tensor chunk_backward_nested(
    const std::vector<at::Tensor>& grads, const at::Tensor& self, int64_t chunks, int64_t dim);

/// Gradient of the nested tensor, with components of the sizes `sizes` [components, dimensions],
/// that split_with_sizes(split_sizes, dim) made pieces of. The gradient of a piece may be undefined.
at::Tensor _nested_split_with_sizes_backward(
    const std::vector<at::Tensor>& grads,
    c10::SymIntArrayRef split_sizes,
    int64_t dim,
    const at::Tensor& sizes,
    const at::TensorOptions& options);

/// Gradient of a sparse tensor whose values() has the gradient `grad`; undefined where that is.
at::Tensor values_backward(const at::Tensor& grad, const at::Tensor& self);

} // namespace derivatives
} // namespace v1
} // namespace torchext
