// SPDX-License-Identifier: BSD-3-Clause
//
// Definitions of linalg_solve.h.
#pragma once

#include <torchext/derivatives/linalg_conditions.h>
#include <torchext/derivatives/linalg_solve.h>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

namespace torchext {
inline namespace v1 {
namespace derivatives {

namespace {

using at::Tensor;

/// The entries of `x` that a triangular solver reads.
Tensor triangle(const Tensor& x, bool upper, bool unitriangular) {
  if (upper) {
    return x.triu(unitriangular ? 1 : 0);
  }
  return x.tril(unitriangular ? -1 : 0);
}

/// L^-1 x for a lower triangular L with a unit diagonal.
Tensor solve_unit_lower(const Tensor& L, const Tensor& x) {
  return at::linalg_solve_triangular(L, x, /*upper=*/false, /*left=*/true, /*unitriangular=*/true);
}

/// L^-H x for the same.
Tensor solve_unit_lower_adjoint(const Tensor& L, const Tensor& x) {
  return at::linalg_solve_triangular(
      L.mH(), x, /*upper=*/true, /*left=*/true, /*unitriangular=*/true);
}

} // namespace

// With A = L L^H (U^H U), gB = A^-1 gX and gA = -gB X^H, whose Hermitian part the factor takes
// twice.
std::tuple<at::Tensor, at::Tensor> cholesky_solve_backward(
    const at::Tensor& grad_x,
    const at::Tensor& /*self*/,
    const at::Tensor& input2,
    const at::Tensor& result,
    const bool upper,
    std::array<bool, 2> output_mask) {
  if (!grad_x.defined() || (!output_mask[0] && !output_mask[1])) {
    return {};
  }
  const Tensor gB = at::cholesky_solve(grad_x, input2, upper);
  Tensor factor_grad;
  if (output_mask[1]) {
    const Tensor half = at::matmul(gB, result.mH());
    const Tensor gA = -(half + half.mH());
    factor_grad = upper ? at::matmul(input2, gA) : at::matmul(gA, input2);
  }
  return std::make_tuple(output_mask[0] ? gB : Tensor(), factor_grad);
}

at::Tensor cholesky_solve_jvp(
    const at::Tensor& X,
    const at::Tensor& U,
    const at::Tensor& dU,
    const at::Tensor& dB,
    const bool upper) {
  const Tensor half = upper ? at::matmul(dU.mH(), U) : at::matmul(dU, U.mH());
  return at::cholesky_solve(dB - at::matmul(half + half.mH(), X), U, upper);
}

// For L U X = P^T B: dX = -U^-1 (dU X + L^-1 dL U X). For its adjoint system U^H L^H Y = B with
// Y = P^T X: dY = -L^-H (dL^H Y + U^-H dU^H L^H Y). X A = B is the adjoint of A^H X^H = B^H.
at::Tensor linalg_lu_solve_LU(
    const at::Tensor& grad,
    const at::Tensor& LU,
    const at::Tensor& pivots,
    const at::Tensor& X,
    const bool left,
    const bool adjoint) {
  if (!grad.defined()) {
    return {};
  }
  const auto [P, L, U] = at::lu_unpack(LU, pivots, /*unpack_data=*/true, /*unpack_pivots=*/true);
  const Tensor G = left ? grad : grad.mH();
  const Tensor left_X = left ? X : X.mH();
  const Tensor UH = U.mH();
  if (left == adjoint) {
    const Tensor Y = at::matmul(P.mT(), left_X);
    const Tensor S = solve_unit_lower(L, at::matmul(P.mT(), G));
    const Tensor lower = at::matmul(Y, S.mH());
    const Tensor upper =
        at::linalg_solve_triangular(UH, at::matmul(L.mH(), lower), /*upper=*/false, /*left=*/false);
    return -(lower.tril(-1) + upper.triu());
  }
  const Tensor S = at::linalg_solve_triangular(UH, G, /*upper=*/false);
  const Tensor upper = at::matmul(S, left_X.mH());
  const Tensor lower = solve_unit_lower_adjoint(L, at::matmul(upper, UH));
  return -(lower.tril(-1) + upper.triu());
}

// The formulas above linalg_lu_solve_LU.
at::Tensor linalg_lu_solve_jvp(
    const at::Tensor& X,
    const at::Tensor& LU,
    const at::Tensor& pivots,
    const at::Tensor& dLU,
    const at::Tensor& dB,
    const bool left,
    const bool adjoint) {
  const auto [P, L, U] = at::lu_unpack(LU, pivots, /*unpack_data=*/true, /*unpack_pivots=*/true);
  const Tensor dL = dLU.tril(-1);
  const Tensor dU = dLU.triu();
  const Tensor left_X = left ? X : X.mH();
  Tensor from_LU;
  if (left == adjoint) {
    const Tensor Y = at::matmul(P.mT(), left_X);
    const Tensor from_U = at::linalg_solve_triangular(
        U.mH(), at::matmul(dU.mH(), at::matmul(L.mH(), Y)), /*upper=*/false);
    from_LU = at::matmul(P, solve_unit_lower_adjoint(L, at::matmul(dL.mH(), Y) + from_U));
  } else {
    const Tensor from_L = solve_unit_lower(L, at::matmul(dL, at::matmul(U, left_X)));
    from_LU = at::linalg_solve_triangular(U, at::matmul(dU, left_X) + from_L, /*upper=*/true);
  }
  const Tensor from_B = at::linalg_lu_solve(LU, pivots, dB, left, adjoint);
  return from_B - (left ? from_LU : from_LU.mH());
}

// gB = A^-H gX and gA = -gB X^H; from the right gB = gX A^-H and gA = -X^H gB.
std::tuple<at::Tensor, at::Tensor> linalg_solve_backward(
    const at::Tensor& gX,
    const at::Tensor& X,
    const at::Tensor& A,
    const at::Tensor& LU,
    const at::Tensor& pivots,
    const bool left,
    const bool B_requires_grad) {
  const bool A_requires_grad = A.requires_grad();
  if (!gX.defined() || (!A_requires_grad && !B_requires_grad)) {
    return {};
  }
  const bool is_vector = has_vector_rhs(A, X);
  const Tensor matrix_gX = is_vector ? gX.unsqueeze(-1) : gX;
  const Tensor matrix_X = is_vector ? X.unsqueeze(-1) : X;
  const Tensor gB = may_be_differentiated(A)
                        ? at::linalg_solve(A.mH(), matrix_gX, left)
                        : at::linalg_lu_solve(LU, pivots, matrix_gX, left, /*adjoint=*/true);
  Tensor gA;
  if (A_requires_grad) {
    gA = left ? -at::matmul(gB, matrix_X.mH()) : -at::matmul(matrix_X.mH(), gB);
  }
  if (!B_requires_grad) {
    return std::make_tuple(gA, Tensor());
  }
  return std::make_tuple(gA, is_vector ? gB.squeeze(-1) : gB);
}

at::Tensor linalg_solve_jvp(
    const at::Tensor& dA,
    const at::Tensor& dB,
    const at::Tensor& X,
    const at::Tensor& LU,
    const at::Tensor& pivots,
    const bool left) {
  const bool is_vector = has_vector_rhs(dA, X);
  const Tensor matrix_X = is_vector ? X.unsqueeze(-1) : X;
  const Tensor matrix_dB = is_vector ? dB.unsqueeze(-1) : dB;
  const Tensor from_A = left ? at::matmul(dA, matrix_X) : at::matmul(matrix_X, dA);
  const Tensor dX = at::linalg_lu_solve(LU, pivots, matrix_dB - from_A, left, /*adjoint=*/false);
  return is_vector ? dX.squeeze(-1) : dX;
}

at::Tensor triangular_solve_jvp(
    const at::Tensor& X,
    const at::Tensor& A,
    const at::Tensor& dA,
    const at::Tensor& dB,
    const bool upper,
    const bool transpose,
    const bool unitriangular) {
  const Tensor d_triangle = triangle(dA, upper, unitriangular);
  const Tensor rhs = dB - at::matmul(transpose ? d_triangle.mT() : d_triangle, X);
  return at::linalg_solve_triangular(
      transpose ? A.mT() : A, rhs, /*upper=*/upper != transpose, /*left=*/true, unitriangular);
}

// A is transposed, not conjugated: A^T X = B gives gB = conj(A)^-1 gX and gA = -conj(X) gB^T.
std::tuple<at::Tensor, at::Tensor> triangular_solve_backward(
    const at::Tensor& grad_x,
    const at::Tensor& grad_m,
    const at::Tensor& /*b*/,
    const at::Tensor& a,
    const at::Tensor& x,
    const bool upper,
    const bool transpose,
    const bool unitriangular,
    std::array<bool, 2> output_mask) {
  Tensor grad_b;
  Tensor grad_a;
  if (grad_x.defined() && (output_mask[0] || output_mask[1])) {
    grad_b = at::linalg_solve_triangular(
        transpose ? a.conj() : a.mH(),
        grad_x,
        /*upper=*/upper == transpose,
        /*left=*/true,
        unitriangular);
    if (output_mask[1]) {
      const Tensor full =
          transpose ? at::matmul(x.conj(), grad_b.mT()) : at::matmul(grad_b, x.mH());
      grad_a = -triangle(full, upper, unitriangular);
    }
  }
  if (output_mask[1] && grad_m.defined()) {
    grad_a = grad_a.defined() ? grad_a + grad_m : grad_m;
  }
  return std::make_tuple(output_mask[0] ? grad_b : Tensor(), grad_a);
}

std::tuple<at::Tensor, at::Tensor> linalg_solve_triangular_backward(
    const at::Tensor& grad,
    const at::Tensor& A,
    const at::Tensor& X,
    const bool upper,
    const bool left,
    const bool unitriangular,
    std::array<bool, 2> output_mask) {
  if (!grad.defined() || (!output_mask[0] && !output_mask[1])) {
    return {};
  }
  const Tensor gB = at::linalg_solve_triangular(A.mH(), grad, !upper, left, unitriangular);
  Tensor gA;
  if (output_mask[0]) {
    const Tensor full = left ? at::matmul(gB, X.mH()) : at::matmul(X.mH(), gB);
    gA = -triangle(full, upper, unitriangular);
  }
  return std::make_tuple(gA, output_mask[1] ? gB : Tensor());
}

at::Tensor linalg_solve_triangular_forward_AD(
    const at::Tensor& A_t,
    const at::Tensor& B_t,
    const at::Tensor& A,
    const at::Tensor& X,
    const bool upper,
    const bool left,
    const bool unitriangular) {
  const Tensor d_triangle = triangle(A_t, upper, unitriangular);
  const Tensor from_A = left ? at::matmul(d_triangle, X) : at::matmul(X, d_triangle);
  return at::linalg_solve_triangular(A, B_t - from_A, upper, left, unitriangular);
}

} // namespace derivatives
} // namespace v1
} // namespace torchext
