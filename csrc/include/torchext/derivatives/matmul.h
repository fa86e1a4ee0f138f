// SPDX-License-Identifier: BSD-3-Clause
//
// Derivatives of matrix products: dense, sparse, grouped, bilinear, linear.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Layout.h>
#include <c10/core/Scalar.h>
#include <c10/core/SymIntArrayRef.h>
#include <c10/util/ArrayRef.h>

#include <array>
#include <cstdint>
#include <optional>
#include <tuple>

namespace torchext {
inline namespace v1 {
namespace derivatives {

/// `t` if `condition`, else nothing: for an operand that a formula saves only where it is needed.
inline std::optional<at::Tensor> wrap_opt_if(const at::Tensor& t, bool condition) {
  return condition ? std::optional<at::Tensor>(t) : std::nullopt;
}

/// Gradient of the left factor of `alpha * mat1 @ mat2`. Where all are strided it is column-major
/// if `mat1` was; the strides of a matrix that is not strided are not read.
at::Tensor mm_mat1_backward(
    const at::Tensor& grad,
    const at::Tensor& mat2,
    c10::SymIntArrayRef mat1_sizes,
    c10::SymIntArrayRef mat1_strides,
    c10::Layout mat1_layout,
    const c10::Scalar& alpha);

/// Gradient of the right factor of `alpha * mat1 @ mat2`, with the given sizes, strides and layout.
at::Tensor mm_mat2_backward(
    const at::Tensor& grad,
    const at::Tensor& mat1,
    c10::SymIntArrayRef mat2_sizes,
    c10::SymIntArrayRef mat2_strides,
    c10::Layout mat2_layout,
    const c10::Scalar& alpha);

/// Gradient of the left factor of `alpha * mat1 @ mat2` with a dense product and `mat1` of any
/// layout: a sparse `mat1` gets a gradient at its own non-zeros.
at::Tensor mm_mat1_sparse_backward(
    const at::Tensor& grad,
    const at::Tensor& mat1,
    const at::Tensor& mat2,
    const c10::Scalar& alpha);

/// Gradients of `sparse_sampled_addmm`. Undefined where the mask says so, and without a gradient.
std::tuple<at::Tensor, at::Tensor, at::Tensor> sparse_sampled_addmm_backward(
    const at::Tensor& grad,
    const at::Tensor& self,
    const std::optional<at::Tensor>& mat1,
    const std::optional<at::Tensor>& mat2,
    const c10::Scalar& alpha,
    const c10::Scalar& beta,
    const std::array<bool, 3>& grad_input_mask);

/// Gradient of one factor of the product of two sparse matrices, at the non-zeros of that factor:
/// of `mat1` for `grad_order` zero, of `mat2` for one.
at::Tensor sparse_sparse_matmul_backward(
    const at::Tensor& grad, const at::Tensor& mat1, const at::Tensor& mat2, int64_t grad_order);

/// Gradients of `_grouped_mm`'s left factor: the same product of `grad` and the other one transposed.
at::Tensor _grouped_mm_mat1_backward(
    const at::Tensor& grad,
    const at::Tensor& mat2,
    c10::SymIntArrayRef mat1_sizes,
    c10::SymIntArrayRef mat1_strides,
    c10::Layout mat1_layout,
    const std::optional<at::Tensor>& offs,
    const c10::Scalar& alpha);

/// Gradient of `_grouped_mm`'s right factor, with the given sizes, strides and layout.
at::Tensor _grouped_mm_mat2_backward(
    const at::Tensor& grad,
    const at::Tensor& mat1,
    c10::SymIntArrayRef mat2_sizes,
    c10::SymIntArrayRef mat2_strides,
    c10::Layout mat2_layout,
    const std::optional<at::Tensor>& offs,
    const c10::Scalar& alpha);

/// Gradients of `_trilinear`. A factor is needed only for the gradients of the other two; undefined
/// where the mask says so, and without a gradient.
std::tuple<at::Tensor, at::Tensor, at::Tensor> _trilinear_backward(
    const at::Tensor& grad_out,
    const std::optional<at::Tensor>& i1,
    const std::optional<at::Tensor>& i2,
    const std::optional<at::Tensor>& i3,
    at::IntArrayRef expand1,
    at::IntArrayRef expand2,
    at::IntArrayRef expand3,
    at::IntArrayRef sumdim,
    const std::array<bool, 3>& grad_mask);

/// Gradients of `linear_backward` of real tensors with regard to `self` (N.., in), `grad_output` (N.., out) and
/// `weight` (out, in). `grads` are those of its three results, any of them undefined; a gradient to
/// which none contributes is undefined.
std::tuple<at::Tensor, at::Tensor, at::Tensor> linear_double_backward(
    at::TensorList grads,
    const at::Tensor& self,
    const at::Tensor& grad_output,
    const at::Tensor& weight);

} // namespace derivatives
} // namespace v1
} // namespace torchext
