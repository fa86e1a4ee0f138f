// SPDX-License-Identifier: BSD-3-Clause
//
// Definitions of linalg_matrix_functions.h.
#pragma once

#include <torchext/derivatives/linalg_matrix_functions.h>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

namespace torchext {
inline namespace v1 {
namespace derivatives {

namespace {

using at::Tensor;

/// The solution X of H X + X H = Y for H = V diag(values) V^H.
Tensor solve_sylvester(const Tensor& values, const Tensor& V, const Tensor& Y) {
  const Tensor sums = values.unsqueeze(-1) + values.unsqueeze(-2);
  const Tensor inner = at::matmul(V.mH(), at::matmul(Y, V)) / sums;
  return at::matmul(V, at::matmul(inner, V.mH()));
}

/// (I - U U^H) x H^-1, for U with orthonormal columns.
Tensor outside_over_H(const Tensor& x, const Tensor& U, const Tensor& values, const Tensor& V) {
  const Tensor outside = x - at::matmul(U, at::matmul(U.mH(), x));
  return at::matmul(at::matmul(outside, V) / values.unsqueeze(-2), V.mH());
}

} // namespace

// Mathias 1996, "A chain rule for matrix functions and applications": the exponential of
// [[A, G], [0, A]] has the derivative along G in its upper right corner. The adjoint of the
// derivative at A is the derivative at A^H.
at::Tensor linalg_matrix_exp_differential(
    const at::Tensor& self, const at::Tensor& grad, bool adjoint) {
  if (!grad.defined()) {
    return {};
  }
  const Tensor A = adjoint ? self.mH() : self;
  const auto n = A.sym_size(-1);
  const Tensor upper = at::cat({A, grad}, -1);
  const Tensor lower = at::cat({at::zeros_like(A), A}, -1);
  const Tensor exponential = at::linalg_matrix_exp(at::cat({upper, lower}, -2));
  return exponential.narrow_symint(-2, 0, n).narrow_symint(-1, n, n);
}

// From dA = dU H + U dH follows, with the skew-Hermitian W = U^H dU,
//   W H + H W = U^H dA - dA^H U, dH = U^H dA - W H, dU = U W + (I - U U^H) dA H^-1.
std::tuple<at::Tensor, at::Tensor> linalg_polar_jvp(
    const at::Tensor& dA, const at::Tensor& /*A*/, const at::Tensor& U, const at::Tensor& H) {
  const auto [values, V] = at::linalg_eigh(H);
  const Tensor UH_dA = at::matmul(U.mH(), dA);
  const Tensor W = solve_sylvester(values, V, UH_dA - UH_dA.mH());
  Tensor dU = at::matmul(U, W);
  if (U.sym_size(-2) > U.sym_size(-1)) {
    dU = dU + outside_over_H(dA, U, values, V);
  }
  return std::make_tuple(dU, UH_dA - at::matmul(W, H));
}

// The adjoint of the above, in which the solution of the Sylvester equation is its own adjoint.
at::Tensor linalg_polar_backward(
    const at::Tensor& grad_U,
    const at::Tensor& grad_H,
    const at::Tensor& /*A*/,
    const at::Tensor& U,
    const at::Tensor& H) {
  if (!grad_U.defined() && !grad_H.defined()) {
    return {};
  }
  const auto [values, V] = at::linalg_eigh(H);
  const Tensor from_U = grad_U.defined() ? at::matmul(U.mH(), grad_U) : Tensor();
  const Tensor from_H = grad_H.defined() ? at::matmul(grad_H, H) : Tensor();
  Tensor W_grad = from_U.defined() ? from_U : -from_H;
  if (from_U.defined() && from_H.defined()) {
    W_grad = from_U - from_H;
  }
  const Tensor solution = solve_sylvester(values, V, W_grad);
  Tensor inner = solution - solution.mH();
  if (grad_H.defined()) {
    inner = inner + grad_H;
  }
  const Tensor gA = at::matmul(U, inner);
  if (grad_U.defined() && U.sym_size(-2) > U.sym_size(-1)) {
    return gA + outside_over_H(grad_U, U, values, V);
  }
  return gA;
}

// Y dY + dY Y = dA for Y = sqrt(A), Higham 2008, "Functions of matrices", 6.1.
at::Tensor linalg_matrix_sqrth_differential(const at::Tensor& self, const at::Tensor& grad) {
  if (!grad.defined()) {
    return {};
  }
  const auto [values, V] = at::linalg_eigh(self);
  return solve_sylvester(values.sqrt(), V, (grad + grad.mH()) * 0.5);
}

} // namespace derivatives
} // namespace v1
} // namespace torchext
