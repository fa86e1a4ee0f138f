// SPDX-License-Identifier: BSD-3-Clause
//
// The definitions of matmul.h.
#pragma once

#include <torchext/derivatives/basic.h>
#include <torchext/derivatives/matmul.h>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <c10/core/SymBool.h>
#include <c10/util/Exception.h>

namespace torchext {
inline namespace v1 {
namespace derivatives {
namespace {

/// The gradient of something that was multiplied by `factor`.
at::Tensor times_conj(const at::Tensor& t, const c10::Scalar& factor) {
  return maybe_multiply(t, factor.conj());
}

bool is_strided(const at::Tensor& t) {
  return t.layout() == c10::kStrided;
}

/// Whether the matrices of a strided tensor lie column by column without gaps.
bool is_column_major(c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides) {
  const size_t row = sizes.size() - 2;
  return TORCH_GUARD_OR_FALSE(strides[row].sym_eq(1)) &&
         TORCH_GUARD_OR_FALSE(strides[row + 1].sym_eq(sizes[row]));
}

/// Sum of two tensors, either of which may be undefined.
at::Tensor sum_if_defined(const at::Tensor& first, const at::Tensor& second) {
  if (!first.defined()) {
    return second;
  }
  return second.defined() ? first + second : first;
}

/// A tensor of row vectors as a matrix.
at::Tensor as_rows(const at::Tensor& t) {
  return t.dim() == 1 ? t.unsqueeze(0) : t.flatten(0, -2);
}

} // namespace

at::Tensor mm_mat1_backward(
    const at::Tensor& grad,
    const at::Tensor& mat2,
    c10::SymIntArrayRef mat1_sizes,
    c10::SymIntArrayRef mat1_strides,
    c10::Layout mat1_layout,
    const c10::Scalar& alpha) {
  const bool all_strided = is_strided(grad) && is_strided(mat2) && mat1_layout == c10::kStrided;
  if (all_strided && is_column_major(mat1_sizes, mat1_strides)) {
    return times_conj(mat2.conj().mm(grad.t()).t(), alpha);
  }
  return times_conj(grad.mm(mat2.mH()), alpha);
}

at::Tensor mm_mat2_backward(
    const at::Tensor& grad,
    const at::Tensor& mat1,
    c10::SymIntArrayRef mat2_sizes,
    c10::SymIntArrayRef mat2_strides,
    c10::Layout mat2_layout,
    const c10::Scalar& alpha) {
  const bool all_strided = is_strided(grad) && is_strided(mat1) && mat2_layout == c10::kStrided;
  if (all_strided && is_column_major(mat2_sizes, mat2_strides)) {
    return times_conj(grad.t().mm(mat1.conj()).t(), alpha);
  }
  return times_conj(mat1.mH().mm(grad), alpha);
}

at::Tensor mm_mat1_sparse_backward(
    const at::Tensor& grad,
    const at::Tensor& mat1,
    const at::Tensor& mat2,
    const c10::Scalar& alpha) {
  TORCH_CHECK(
      is_strided(grad) && is_strided(mat2),
      "the gradient of a sparse matrix in a product needs a strided gradient and a strided other "
      "factor, got layouts ",
      grad.layout(),
      " and ",
      mat2.layout());
  if (is_strided(mat1)) {
    return times_conj(grad.mm(mat2.mH()), alpha);
  }
  if (mat1.layout() == c10::kSparse) {
    return times_conj(grad.mm(mat2.mH()), alpha).sparse_mask(mat1.coalesce());
  }
  TORCH_CHECK(
      mat1.layout() == c10::kSparseCsr,
      "the gradient of a sparse matrix in a product is implemented for layouts strided, sparse COO "
      "and sparse CSR, got ",
      mat1.layout());
  // Only the products at the non-zeros are computed. beta = 0 would still read the values, so that
  // a NaN among them spread.
  const at::Tensor pattern = at::_sparse_csr_tensor_unsafe(
      mat1.crow_indices(),
      mat1.col_indices(),
      at::zeros_like(mat1.values()),
      mat1.sizes(),
      mat1.options());
  return at::sparse_sampled_addmm(pattern, grad, mat2.mH(), /*beta=*/1, alpha.conj());
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> sparse_sampled_addmm_backward(
    const at::Tensor& grad,
    const at::Tensor& self,
    const std::optional<at::Tensor>& mat1,
    const std::optional<at::Tensor>& mat2,
    const c10::Scalar& alpha,
    const c10::Scalar& beta,
    const std::array<bool, 3>& grad_input_mask) {
  std::tuple<at::Tensor, at::Tensor, at::Tensor> result;
  if (!grad.defined()) {
    return result;
  }
  // The product was read at the non-zeros of self only.
  const at::Tensor sampled = grad.sparse_mask(self);
  if (grad_input_mask[0]) {
    std::get<0>(result) = times_conj(grad, beta);
  }
  if (grad_input_mask[1]) {
    std::get<1>(result) = times_conj(sampled.mm(mat2->mH()), alpha);
  }
  if (grad_input_mask[2]) {
    std::get<2>(result) = times_conj(mat1->mH().mm(sampled), alpha);
  }
  return result;
}

at::Tensor sparse_sparse_matmul_backward(
    const at::Tensor& grad, const at::Tensor& mat1, const at::Tensor& mat2, int64_t grad_order) {
  TORCH_CHECK(
      grad_order == 0 || grad_order == 1,
      "sparse_sparse_matmul_backward: grad_order must be 0 or 1, got ",
      grad_order);
  if (grad_order == 0) {
    return at::_sparse_sparse_matmul(grad, mat2.mH()).sparse_mask(mat1.coalesce());
  }
  return at::_sparse_sparse_matmul(mat1.mH(), grad).sparse_mask(mat2.coalesce());
}

// The four forms of _grouped_mm (a factor is one matrix cut into groups by offs, or a stack of them)
// turn into one another: groups of rows of the one factor are groups of rows of the result, groups
// of columns of the other are groups of its columns, and where both are cut along the summed dim the
// result is a stack. In each, the product of grad and a transposed factor is the form needed.
at::Tensor _grouped_mm_mat1_backward(
    const at::Tensor& grad,
    const at::Tensor& mat2,
    c10::SymIntArrayRef mat1_sizes,
    c10::SymIntArrayRef mat1_strides,
    c10::Layout mat1_layout,
    const std::optional<at::Tensor>& offs,
    const c10::Scalar& alpha) {
  const bool all_strided = is_strided(grad) && is_strided(mat2) && mat1_layout == c10::kStrided;
  if (all_strided && is_column_major(mat1_sizes, mat1_strides)) {
    return times_conj(at::_grouped_mm(mat2.conj(), grad.mT(), offs).mT(), alpha);
  }
  return times_conj(at::_grouped_mm(grad, mat2.mH(), offs), alpha);
}

at::Tensor _grouped_mm_mat2_backward(
    const at::Tensor& grad,
    const at::Tensor& mat1,
    c10::SymIntArrayRef mat2_sizes,
    c10::SymIntArrayRef mat2_strides,
    c10::Layout mat2_layout,
    const std::optional<at::Tensor>& offs,
    const c10::Scalar& alpha) {
  const bool all_strided = is_strided(grad) && is_strided(mat1) && mat2_layout == c10::kStrided;
  if (all_strided && is_column_major(mat2_sizes, mat2_strides)) {
    return times_conj(at::_grouped_mm(grad.mT(), mat1.conj(), offs).mT(), alpha);
  }
  return times_conj(at::_grouped_mm(mat1.mH(), grad, offs), alpha);
}

// _trilinear multiplies three tensors that have dims of size one at expand1..3 inserted, and sums
// over sumdim. The gradient of a factor is the same product with grad in its place: grad lacks the
// summed dims, and what is summed are the dims that the factor lacks.
std::tuple<at::Tensor, at::Tensor, at::Tensor> _trilinear_backward(
    const at::Tensor& grad_out,
    const std::optional<at::Tensor>& i1,
    const std::optional<at::Tensor>& i2,
    const std::optional<at::Tensor>& i3,
    at::IntArrayRef expand1,
    at::IntArrayRef expand2,
    at::IntArrayRef expand3,
    at::IntArrayRef sumdim,
    const std::array<bool, 3>& grad_mask) {
  std::tuple<at::Tensor, at::Tensor, at::Tensor> result;
  if (!grad_out.defined()) {
    return result;
  }
  if (grad_mask[0]) {
    std::get<0>(result) =
        at::_trilinear(grad_out, i2->conj(), i3->conj(), sumdim, expand2, expand3, expand1);
  }
  if (grad_mask[1]) {
    std::get<1>(result) =
        at::_trilinear(i1->conj(), grad_out, i3->conj(), expand1, sumdim, expand3, expand2);
  }
  if (grad_mask[2]) {
    std::get<2>(result) =
        at::_trilinear(i1->conj(), i2->conj(), grad_out, expand1, expand2, sumdim, expand3);
  }
  return result;
}

// linear_backward returns
//   grad_output @ weight,  grad_output^T @ self,  grad_output summed over its rows.
std::tuple<at::Tensor, at::Tensor, at::Tensor> linear_double_backward(
    at::TensorList grads,
    const at::Tensor& self,
    const at::Tensor& grad_output,
    const at::Tensor& weight) {
  at::Tensor of_self;
  at::Tensor of_grad_output;
  at::Tensor of_weight;
  if (!grad_output.defined() || grads.empty()) {
    return {of_self, of_grad_output, of_weight};
  }
  if (grads[0].defined()) {
    of_weight = as_rows(grad_output).mT().matmul(as_rows(grads[0]));
    of_grad_output = grads[0].matmul(weight.mT());
  }
  if (grads[1].defined()) {
    of_self = grad_output.matmul(grads[1]);
    of_grad_output = sum_if_defined(of_grad_output, self.matmul(grads[1].mT()));
  }
  if (grads[2].defined()) {
    of_grad_output = sum_if_defined(of_grad_output, grads[2].expand_as(grad_output));
  }
  return {of_self, of_grad_output, of_weight};
}

} // namespace derivatives
} // namespace v1
} // namespace torchext
