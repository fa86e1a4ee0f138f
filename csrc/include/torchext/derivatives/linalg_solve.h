// SPDX-License-Identifier: BSD-3-Clause
//
// Derivatives of linear systems: general, triangular, and with a given LU or Cholesky factor.
#pragma once

#include <array>
#include <tuple>

#include <ATen/core/Tensor.h>

namespace torchext {
inline namespace v1 {
namespace derivatives {

/// Gradients of `self` and of the factor `input2` in `cholesky_solve`.
std::tuple<at::Tensor, at::Tensor> cholesky_solve_backward(
    const at::Tensor& grad_x,
    const at::Tensor& self,
    const at::Tensor& input2,
    const at::Tensor& result,
    const bool upper,
    std::array<bool, 2> output_mask);

/// Tangent of `X = cholesky_solve(B, U)`.
at::Tensor cholesky_solve_jvp(
    const at::Tensor& X,
    const at::Tensor& U,
    const at::Tensor& dU,
    const at::Tensor& dB,
    const bool upper);

/// Gradient of the packed LU in `X = linalg_lu_solve(LU, pivots, B)`.
at::Tensor linalg_lu_solve_LU(
    const at::Tensor& grad,
    const at::Tensor& LU,
    const at::Tensor& pivots,
    const at::Tensor& X,
    const bool left,
    const bool adjoint);

/// Tangent of `X = linalg_lu_solve(LU, pivots, B)`.
at::Tensor linalg_lu_solve_jvp(
    const at::Tensor& X,
    const at::Tensor& LU,
    const at::Tensor& pivots,
    const at::Tensor& dLU,
    const at::Tensor& dB,
    const bool left,
    const bool adjoint);

/// Gradients of A and B in `A X = B` (`X A = B` unless `left`): of A where it requires one, of B
/// where asked for. B may be a vector or a batch of them.
std::tuple<at::Tensor, at::Tensor> linalg_solve_backward(
    const at::Tensor& gX,
    const at::Tensor& X,
    const at::Tensor& A,
    const at::Tensor& LU,
    const at::Tensor& pivots,
    const bool left,
    const bool B_requires_grad);

/// Tangent of X in `A X = B` (`X A = B` unless `left`).
at::Tensor linalg_solve_jvp(
    const at::Tensor& dA,
    const at::Tensor& dB,
    const at::Tensor& X,
    const at::Tensor& LU,
    const at::Tensor& pivots,
    const bool left);

/// Tangent of the solution X of `triangular_solve`.
at::Tensor triangular_solve_jvp(
    const at::Tensor& X,
    const at::Tensor& A,
    const at::Tensor& dA,
    const at::Tensor& dB,
    const bool upper,
    const bool transpose,
    const bool unitriangular);

/// Gradients of `b` and `a` in `triangular_solve`, from those of its solution and of its copy of
/// `a`, either of which may be undefined.
std::tuple<at::Tensor, at::Tensor> triangular_solve_backward(
    const at::Tensor& grad_x,
    const at::Tensor& grad_m,
    const at::Tensor& b,
    const at::Tensor& a,
    const at::Tensor& x,
    const bool upper,
    const bool transpose,
    const bool unitriangular,
    std::array<bool, 2> output_mask);

/// Gradients of A (its triangle) and B in `linalg_solve_triangular`.
std::tuple<at::Tensor, at::Tensor> linalg_solve_triangular_backward(
    const at::Tensor& grad,
    const at::Tensor& A,
    const at::Tensor& X,
    const bool upper,
    const bool left,
    const bool unitriangular,
    std::array<bool, 2> output_mask);

/// Tangent of `X = linalg_solve_triangular(A, B)`.
at::Tensor linalg_solve_triangular_forward_AD(
    const at::Tensor& A_t,
    const at::Tensor& B_t,
    const at::Tensor& A,
    const at::Tensor& X,
    const bool upper,
    const bool left,
    const bool unitriangular);

} // namespace derivatives
} // namespace v1
} // namespace torchext
