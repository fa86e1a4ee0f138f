// SPDX-License-Identifier: BSD-3-Clause
//
// Derivatives of operators that read or write elements chosen by a tensor: of indices or a mask.
#pragma once

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/core/SymInt.h>

#include <optional>
#include <string_view>
#include <tuple>

namespace torchext {
inline namespace v1 {
namespace derivatives {

/// Gradient of `self` in self[indices]: `grad` added to `zeros_like_self` at `indices`. The zeros
/// may be written to.
at::Tensor index_backward(
    at::Tensor zeros_like_self,
    const c10::List<std::optional<at::Tensor>>& indices,
    const at::Tensor& grad);

/// Gradient of `self` in take(self, indices).
at::Tensor take_backward(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& indices);

/// Gradients of `self` and `source` in index_reduce; both undefined where `grad` is. Equal extremes
/// share the gradient evenly.
std::tuple<at::Tensor, at::Tensor> index_reduce_backward(
    const at::Tensor& grad,
    const at::Tensor& self,
    int dim,
    const at::Tensor& index,
    const at::Tensor& source,
    std::string_view reduce,
    bool include_self,
    const at::Tensor& result);

/// Gradients of `self` and `src` in scatter_reduce; both undefined where `grad` is. That of `src`
/// has the shape of `index`. Equal extremes share the gradient evenly.
std::tuple<at::Tensor, at::Tensor> scatter_reduce_backward(
    const at::Tensor& grad,
    const at::Tensor& self,
    int dim,
    const at::Tensor& index,
    const at::Tensor& src,
    std::string_view reduce,
    bool include_self,
    const at::Tensor& result);

/// Tangent of scatter_reduce. An undefined tangent counts as zero; the result is undefined where
/// both are. Raises for reduce="prod".
at::Tensor scatter_reduce_jvp(
    const at::Tensor& self_p,
    const at::Tensor& self_t,
    int dim,
    const at::Tensor& index,
    const at::Tensor& src_p,
    const at::Tensor& src_t,
    std::string_view reduce,
    bool include_self,
    const at::Tensor& result);

/// Gradient of `value`, a tensor of no dimensions, in masked_fill(self, mask, value).
at::Tensor masked_fill_backward(const at::Tensor& grad, const at::Tensor& mask);

/// tensor.masked_fill(mask, value) of a `tensor` that nobody else holds: written in place where
/// neither autograd nor a transform can see the difference.
at::Tensor masked_fill_inplace_if_safe(
    at::Tensor tensor, const at::Tensor& mask, const at::Scalar& value);

/// Gradient of `grad_output` in embedding_dense_backward, given `grad` of the weight's shape: the
/// rows at `indices`, zero where an index is `padding_idx`.
at::Tensor embedding_dense_double_backward_symint(
    const at::Tensor& grad, const at::Tensor& indices, const c10::SymInt& padding_idx);

} // namespace derivatives
} // namespace v1
} // namespace torchext
