// SPDX-License-Identifier: BSD-3-Clause
//
// Definitions of linalg_lstsq.h.
#pragma once

#include <torchext/derivatives/linalg_conditions.h>
#include <torchext/derivatives/linalg_lstsq.h>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

namespace torchext {
inline namespace v1 {
namespace derivatives {

namespace {

using at::Tensor;

/// X Y Z, from the left or from the right: what keeps the intermediate product small.
Tensor product(const Tensor& X, const Tensor& Y, const Tensor& Z, bool left_first) {
  return left_first ? at::matmul(at::matmul(X, Y), Z) : at::matmul(X, at::matmul(Y, Z));
}

} // namespace

// Golub and Pereyra 1973, "The differentiation of pseudo-inverses and nonlinear least squares
// problems whose variables separate", theorem 4.3:
//   dP = -P dA P + P P^H dA^H (I - A P) + (I - P A) dA^H P^H P.
at::Tensor pinv_jvp(const at::Tensor& A, const at::Tensor& pinvA, const at::Tensor& dA) {
  const bool is_tall = A.sym_size(-2) >= A.sym_size(-1);
  const Tensor dAH = dA.mH();
  const Tensor pinvAH = pinvA.mH();
  const Tensor rows = product(pinvA, pinvAH, dAH, is_tall);
  const Tensor columns = product(dAH, pinvAH, pinvA, is_tall);
  return rows - product(rows, A, pinvA, is_tall) + columns - product(pinvA, A, columns, is_tall) -
         product(pinvA, dA, pinvA, is_tall);
}

// The adjoint of the above.
at::Tensor pinv_backward(const at::Tensor& grad, const at::Tensor& pinvA, const at::Tensor& A) {
  if (!grad.defined()) {
    return {};
  }
  const bool is_wide = A.sym_size(-2) < A.sym_size(-1);
  const Tensor gradH = grad.mH();
  const Tensor pinvAH = pinvA.mH();
  const Tensor rows = product(gradH, pinvA, pinvAH, is_wide);
  const Tensor columns = product(pinvAH, pinvA, gradH, is_wide);
  return rows - product(A, pinvA, rows, is_wide) + columns - product(columns, pinvA, A, is_wide) -
         product(pinvAH, grad, pinvAH, is_wide);
}

// L is the sum of |A X - B|^2 over the rows, one number of one dimension where B is a vector. It
// does not move with X to first order: A^H (A X - B) is zero, as a function of A and B, so that
// leaving it out is right for further derivatives too.
at::Tensor linalg_lstsq_residuals_jvp(
    const at::Tensor& A,
    const at::Tensor& B_,
    const at::Tensor& dA,
    const at::Tensor& dB_,
    const at::Tensor& X_,
    const at::Tensor& L) {
  if (L.sym_numel() == 0) {
    return at::zeros_like(L);
  }
  const bool is_vector = has_vector_rhs(A, B_);
  const Tensor X = is_vector ? X_.unsqueeze(-1) : X_;
  const Tensor B = is_vector ? B_.unsqueeze(-1) : B_;
  const Tensor dB = is_vector ? dB_.unsqueeze(-1) : dB_;
  const Tensor r = at::matmul(A, X) - B;
  const Tensor dr = at::matmul(dA, X) - dB;
  return 2 * at::real(r.conj() * dr).sum(-2);
}

at::Tensor linalg_lstsq_solution_jvp(
    const at::Tensor& A, const at::Tensor& B_, const at::Tensor& dA, const at::Tensor& dB_) {
  const bool is_vector = has_vector_rhs(A, B_);
  const Tensor B = is_vector ? B_.unsqueeze(-1) : B_;
  const Tensor dB = is_vector ? dB_.unsqueeze(-1) : dB_;
  const Tensor pinvA = at::linalg_pinv(A);
  const Tensor dX = at::matmul(pinv_jvp(A, pinvA, dA), B) + at::matmul(pinvA, dB);
  return is_vector ? dX.squeeze(-1) : dX;
}

// With X = A^+ B and r = A X - B: gX gives gX B^H to A^+ and (A^+)^H gX to B, and gL gives
// 2 r gL X^H to A and -2 r gL to B.
std::tuple<at::Tensor, at::Tensor> linalg_lstsq_backward(
    const at::Tensor& gX_,
    const at::Tensor& gL,
    const at::Tensor& A,
    const at::Tensor& B_,
    const at::Tensor& X_,
    const std::array<bool, 2>& grad_input_mask) {
  Tensor gA;
  Tensor gB;
  if (!grad_input_mask[0] && !grad_input_mask[1]) {
    return std::make_tuple(gA, gB);
  }
  const bool is_vector = has_vector_rhs(A, B_);
  const auto as_matrix = [&](const Tensor& x) { return is_vector ? x.unsqueeze(-1) : x; };
  const Tensor B = as_matrix(B_);
  if (gX_.defined()) {
    const Tensor gX = as_matrix(gX_);
    const Tensor pinvA = at::linalg_pinv(A);
    if (grad_input_mask[0]) {
      gA = pinv_backward(at::matmul(gX, B.mH()), pinvA, A);
    }
    if (grad_input_mask[1]) {
      gB = at::matmul(pinvA.mH(), gX);
    }
  }
  if (gL.defined() && gL.sym_numel() != 0) {
    const Tensor X = as_matrix(X_);
    const Tensor row_weights = gL.unsqueeze(-2);
    const Tensor r_grad = 2 * (at::matmul(A, X) - B) * row_weights;
    if (grad_input_mask[0]) {
      const Tensor from_residuals = at::matmul(r_grad, X.mH());
      gA = gA.defined() ? gA + from_residuals : from_residuals;
    }
    if (grad_input_mask[1]) {
      gB = gB.defined() ? gB - r_grad : -r_grad;
    }
  }
  return std::make_tuple(gA, is_vector && gB.defined() ? gB.squeeze(-1) : gB);
}

} // namespace derivatives
} // namespace v1
} // namespace torchext
