// SPDX-License-Identifier: BSD-3-Clause
//
// Definitions of linalg_determinant.h.
#pragma once

#include <torchext/derivatives/linalg_conditions.h>
#include <torchext/derivatives/linalg_determinant.h>

#include <cmath>
#include <limits>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <c10/core/SymBool.h>
#include <c10/core/ScalarType.h>

namespace torchext {
inline namespace v1 {
namespace derivatives {

namespace {

using at::Tensor;

double machine_epsilon(const Tensor& x) {
  return c10::toRealValueType(x.scalar_type()) == at::kDouble
             ? std::numeric_limits<double>::epsilon()
             : std::numeric_limits<float>::epsilon();
}

/// The largest entry of the last dimension, one where that is zero.
Tensor nonzero_scale(const Tensor& magnitudes) {
  const Tensor largest = magnitudes.amax(-1);
  return at::where(largest == 0, at::ones_like(largest), largest);
}

/// Numbers times matrices, broadcast.
Tensor scale_matrices(const Tensor& factors, const Tensor& matrices) {
  return factors.unsqueeze(-1).unsqueeze(-1) * matrices;
}

Tensor trace_of(const Tensor& x) {
  return x.diagonal(0, -2, -1).sum(-1);
}

Tensor identity_like(const Tensor& A) {
  return at::eye_symint(A.sym_size(-1), A.options());
}

struct RegularFactors {
  Tensor LU;  // with no zero on the diagonal of U
  Tensor det; // of the matrix with these factors
};

/// The factors, with each zero on the diagonal of U replaced by the rounding error of the largest
/// entry. The cofactors are polynomials, so that they move by no more than such an error, and can
/// then be computed by division.
RegularFactors regular_factors(const Tensor& LU, const Tensor& pivots) {
  const Tensor diagonal = LU.diagonal(0, -2, -1);
  const Tensor tiny = nonzero_scale(LU.abs().flatten(-2)).unsqueeze(-1) * machine_epsilon(LU);
  const Tensor regular = at::where(diagonal == 0, tiny.to(LU.scalar_type()), diagonal);
  // Row i was exchanged with row pivots[i], counted from one.
  const Tensor unmoved = at::arange(1, pivots.sym_size(-1) + 1, pivots.options());
  const Tensor is_odd = (pivots != unmoved).sum(-1).remainder(2);
  return {LU + at::diag_embed(regular - diagonal), regular.prod(-1) * (1 - 2 * is_odd)};
}

/// Whether the factorization of A took its transpose, which is the cheaper one to copy.
bool is_factored_transposed(const Tensor& A) {
  return A.is_contiguous() && !A.is_complex();
}

/// The transposed cofactors of matrices of one, two or three rows, by the theorem of Cayley and
/// Hamilton.
Tensor small_adjugate(const Tensor& M) {
  const Tensor identity = at::eye_symint(M.sym_size(-1), M.options());
  if (M.sym_size(-1) == 1) {
    return identity;
  }
  const Tensor trace = trace_of(M);
  const Tensor adjugate_of_two = scale_matrices(trace, identity) - M;
  if (M.sym_size(-1) == 2) {
    return adjugate_of_two;
  }
  const Tensor square = at::matmul(M, M);
  const Tensor minors = (trace * trace - trace_of(square)) / 2; // the sum of the principal ones
  return scale_matrices(minors, identity) - at::matmul(M, adjugate_of_two);
}

/// The transposed cofactors of A, as a function that can be differentiated where A is singular too.
///
/// Let B = A + c U W, where U are columns and W as many rows, and M = 1 - c W B^-1 U. Whatever
/// these constants are, det(A) = det(B) det(M) and
///   adj(A) = det(B) (det(M) B^-1 + c B^-1 U adj(M) W B^-1).
/// The last three pairs of singular vectors and the largest singular value as c make B regular
/// unless the rank of A is too low by four or more. Then the cofactors are zero to second order,
/// whatever the other vanishing singular values are; they are raised to the root of the rounding
/// error.
Tensor differentiable_adjugate(const Tensor& A) {
  const auto n = A.sym_size(-1);
  const int64_t pairs = n == 1 ? 1 : n == 2 ? 2 : 3;
  const auto [all_U, S, all_W] = at::linalg_svd(A.detach(), /*full_matrices=*/false);
  const Tensor U = all_U.narrow_symint(-1, n - pairs, pairs);
  const Tensor W = all_W.narrow_symint(-2, n - pairs, pairs);
  const Tensor c = nonzero_scale(S).unsqueeze(-1);
  const double epsilon = machine_epsilon(A);
  const Tensor others = S.narrow_symint(-1, 0, n - pairs);
  // A rounding error for each row: what linalg_matrix_rank allows.
  const double tolerance = epsilon * static_cast<double>(n.guard_int(__FILE__, __LINE__));
  const Tensor raised =
      at::where(others <= c * tolerance, c * std::sqrt(epsilon), at::zeros_like(others));
  const Tensor added = at::cat({raised, at::cat(std::vector<Tensor>(pairs, c), -1)}, -1);

  const Tensor B = A + at::matmul(all_U * added.unsqueeze(-2), all_W);
  const Tensor inverse = std::get<0>(at::linalg_inv_ex(B));
  const Tensor columns = at::matmul(inverse, U * c.unsqueeze(-1));
  const Tensor rows = at::matmul(W, inverse);
  const Tensor M = at::eye(pairs, A.options()) - at::matmul(W, columns);
  const Tensor adjugate = small_adjugate(M);
  const Tensor det = trace_of(at::matmul(M, adjugate)) / pairs; // the product is det(M) times 1
  const Tensor middle = at::matmul(columns, at::matmul(adjugate, rows));
  return scale_matrices(at::linalg_det(B), scale_matrices(det, inverse) + middle);
}

} // namespace

at::Tensor linalg_det_backward(
    const at::Tensor& grad,
    const at::Tensor& /*det*/,
    const at::Tensor& A,
    const at::Tensor& LU,
    const at::Tensor& pivots) {
  if (!grad.defined()) {
    return {};
  }
  if (A.sym_numel() == 0) {
    return at::zeros_like(A);
  }
  if (TORCH_GUARD_OR_FALSE(A.sym_size(-1).sym_eq(1))) {
    return grad.unsqueeze(-1).unsqueeze(-1); // the determinant is the element
  }
  if (may_be_differentiated(A)) {
    return scale_matrices(grad, differentiable_adjugate(A).mH());
  }
  const RegularFactors factors = regular_factors(LU, pivots);
  return at::linalg_lu_solve(
      factors.LU,
      pivots,
      scale_matrices(grad * factors.det.conj(), identity_like(A)),
      /*left=*/true,
      /*adjoint=*/!is_factored_transposed(A));
}

// Jacobi's formula: d det(A) = det(A) tr(A^-1 dA).
at::Tensor linalg_det_jvp(
    const at::Tensor& dA,
    const at::Tensor& det,
    const at::Tensor& LU,
    const at::Tensor& pivots,
    const bool use_A_T) {
  if (LU.sym_numel() == 0) {
    return at::zeros_like(det);
  }
  const RegularFactors factors = regular_factors(LU, pivots);
  const Tensor quotient = at::linalg_lu_solve(factors.LU, pivots, use_A_T ? dA.mT() : dA);
  return at::where(det == 0, factors.det, det) * trace_of(quotient);
}

// With t = tr(A^-1 dA) the logarithm moves by Re t and the sign by i sign Im t. As functions of t
// their gradient is the number c below, and A has the gradient c A^-H.
at::Tensor slogdet_backward(
    const at::Tensor& grad_sign,
    const at::Tensor& grad_logabsdet,
    const at::Tensor& A,
    const at::Tensor& signdet,
    const at::Tensor& LU,
    const at::Tensor& pivots) {
  const bool has_sign_grad = grad_sign.defined() && A.is_complex();
  if (!has_sign_grad && !grad_logabsdet.defined()) {
    return {};
  }
  Tensor c = grad_logabsdet;
  if (has_sign_grad) {
    const Tensor imaginary = -at::imag(grad_sign.conj() * signdet);
    c = at::complex(c.defined() ? c : at::zeros_like(imaginary), imaginary);
  }
  if (may_be_differentiated(A)) {
    return at::linalg_solve(A.mH(), scale_matrices(c, identity_like(A)));
  }
  return at::linalg_lu_solve(
      LU,
      pivots,
      scale_matrices(c, identity_like(A)),
      /*left=*/true,
      /*adjoint=*/!is_factored_transposed(A));
}

std::tuple<at::Tensor, at::Tensor> slogdet_jvp(
    const at::Tensor& LU,
    const at::Tensor& pivots,
    const at::Tensor& dA,
    const at::Tensor& sign,
    const bool use_A_T) {
  const Tensor t = trace_of(at::linalg_lu_solve(LU, pivots, use_A_T ? dA.mT() : dA));
  const Tensor d_logabsdet = at::real(t);
  if (!t.is_complex()) {
    return std::make_tuple(at::zeros_like(sign), d_logabsdet);
  }
  return std::make_tuple(sign * (t - d_logabsdet), d_logabsdet);
}

} // namespace derivatives
} // namespace v1
} // namespace torchext
