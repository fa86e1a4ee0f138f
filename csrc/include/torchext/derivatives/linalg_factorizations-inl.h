// SPDX-License-Identifier: BSD-3-Clause
//
// Definitions of linalg_factorizations.h.
#pragma once

#include <torchext/derivatives/linalg_factorizations.h>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <c10/util/Exception.h>

namespace torchext {
inline namespace v1 {
namespace derivatives {

namespace {

using at::Tensor;

/// B A^-1, or A^-1 B where `left`, of a triangular A.
Tensor divide_by_triangular(const Tensor& A, const Tensor& B, bool upper, bool left) {
  return at::linalg_solve_triangular(A, B, upper, left, /*unitriangular=*/false);
}

/// `x` with zero columns on the right and zero rows below, `m` by `n` in all.
Tensor pad_matrix(const Tensor& x, const c10::SymInt& m, const c10::SymInt& n) {
  return at::constant_pad_nd_symint(
      x, {c10::SymInt(0), n - x.sym_size(-1), c10::SymInt(0), m - x.sym_size(-2)});
}

Tensor leading_rows(const Tensor& x, const c10::SymInt& count) {
  return x.narrow_symint(-2, 0, count);
}

Tensor leading_columns(const Tensor& x, const c10::SymInt& count) {
  return x.narrow_symint(-1, 0, count);
}

Tensor trailing_rows(const Tensor& x, const c10::SymInt& start) {
  return x.narrow_symint(-2, start, x.sym_size(-2) - start);
}

Tensor trailing_columns(const Tensor& x, const c10::SymInt& start) {
  return x.narrow_symint(-1, start, x.sym_size(-1) - start);
}

c10::SymInt smaller(const c10::SymInt& a, const c10::SymInt& b) {
  return a < b ? a : b;
}

} // namespace

// Murray 2016, "Differentiation of the Cholesky decomposition": with Phi(X) the lower triangle of X
// with its diagonal halved, dL = L Phi(L^-1 dA L^-H).
at::Tensor cholesky_jvp(const at::Tensor& input_tangent, const at::Tensor& L, bool upper) {
  const Tensor lower = upper ? L.mH() : L;
  Tensor inner = divide_by_triangular(lower, input_tangent, /*upper=*/false, /*left=*/true);
  inner = divide_by_triangular(lower.mH(), inner, /*upper=*/true, /*left=*/false);
  const Tensor d_lower = at::matmul(lower, (inner.tril() + inner.tril(-1)) * 0.5);
  return upper ? d_lower.mH() : d_lower;
}

// The adjoint of the above, projected onto the Hermitian matrices: A is one.
at::Tensor cholesky_backward(const at::Tensor& grad, bool upper, const at::Tensor& L) {
  if (!grad.defined()) {
    return {};
  }
  const Tensor lower = upper ? L.mH() : L;
  const Tensor inner = at::matmul(lower.mH(), upper ? grad.mH() : grad).tril();
  const Tensor middle = (inner + inner.tril(-1).mH()) * 0.5;
  const Tensor right = divide_by_triangular(lower, middle, /*upper=*/false, /*left=*/false);
  return divide_by_triangular(lower.mH(), right, /*upper=*/true, /*left=*/true);
}

at::Tensor cholesky_inverse_jvp(
    const at::Tensor& F, const at::Tensor& dF, const at::Tensor& X, bool upper) {
  const Tensor half = upper ? at::matmul(dF.mH(), F) : at::matmul(dF, F.mH());
  return -at::matmul(X, at::matmul(half + half.mH(), X));
}

at::Tensor cholesky_inverse_backward(
    const at::Tensor& grad, const at::Tensor& L, bool upper, const at::Tensor& inverse) {
  if (!grad.defined()) {
    return {};
  }
  const Tensor product_grad = -at::matmul(inverse, at::matmul(grad + grad.mH(), inverse));
  return upper ? at::matmul(L, product_grad) : at::matmul(product_grad, L);
}

at::Tensor lu_unpack_backward(
    const at::Tensor& L_grad,
    const at::Tensor& U_grad,
    const c10::SymInt& m,
    const c10::SymInt& n) {
  const Tensor lower = L_grad.defined() ? pad_matrix(L_grad.tril(-1), m, n) : Tensor();
  const Tensor upper = U_grad.defined() ? pad_matrix(U_grad.triu(), m, n) : Tensor();
  if (lower.defined() && upper.defined()) {
    return lower + upper;
  }
  return lower.defined() ? lower : upper;
}

// Let B = P^T A and let the index 1 be its leading square block, 2 the remaining rows or columns.
// From dB1 = dL1 U1 + L1 dU1 follows W = L1^-1 dB1 U1^-1 = L1^-1 dL1 + dU1 U1^-1, a strictly lower
// plus an upper triangular matrix. The rest is dL2 = (dB2 - L2 dU1) U1^-1 for a tall A and
// dU2 = L1^-1 (dB2 - dL1 U2) for a wide one.
std::tuple<at::Tensor, at::Tensor> linalg_lu_jvp(
    const at::Tensor& dA,
    const at::Tensor& P,
    const at::Tensor& L,
    const at::Tensor& U,
    const bool pivot) {
  const auto m = dA.sym_size(-2);
  const auto n = dA.sym_size(-1);
  const auto k = smaller(m, n);
  const Tensor dB = pivot ? at::matmul(P.mT(), dA) : dA;
  const Tensor L1 = leading_rows(L, k);
  const Tensor U1 = leading_columns(U, k);

  const auto solve_L1 = [&](const Tensor& x) {
    return at::linalg_solve_triangular(
        L1, x, /*upper=*/false, /*left=*/true, /*unitriangular=*/true);
  };
  const auto solve_U1 = [&](const Tensor& x) {
    return divide_by_triangular(U1, x, /*upper=*/true, /*left=*/false);
  };

  const Tensor W = solve_L1(solve_U1(leading_columns(leading_rows(dB, k), k)));
  const Tensor strictly_lower = W.tril(-1);
  const Tensor upper = W.triu();
  Tensor dL = at::matmul(L1, strictly_lower);
  Tensor dU = at::matmul(upper, U1);
  if (m > n) {
    const Tensor dL2 = solve_U1(trailing_rows(dB, k)) - at::matmul(trailing_rows(L, k), upper);
    dL = at::cat({dL, dL2}, -2);
  } else if (m < n) {
    const Tensor dU2 =
        solve_L1(trailing_columns(dB, k)) - at::matmul(strictly_lower, trailing_columns(U, k));
    dU = at::cat({dU, dU2}, -1);
  }
  return std::make_tuple(dL, dU);
}

// The adjoint of the above.
at::Tensor linalg_lu_backward(
    const at::Tensor& L_grad,
    const at::Tensor& U_grad,
    const at::Tensor& P,
    const at::Tensor& L,
    const at::Tensor& U,
    const bool pivot) {
  if (!L_grad.defined() && !U_grad.defined()) {
    return {};
  }
  const Tensor gL = L_grad.defined() ? L_grad : at::zeros_like(L);
  const Tensor gU = U_grad.defined() ? U_grad : at::zeros_like(U);
  const auto m = L.sym_size(-2);
  const auto n = U.sym_size(-1);
  const auto k = smaller(m, n);
  const Tensor L1H = leading_rows(L, k).mH();
  const Tensor U1H = leading_columns(U, k).mH();

  Tensor lower = at::matmul(L1H, leading_rows(gL, k));
  Tensor upper = at::matmul(leading_columns(gU, k), U1H);
  if (m > n) {
    upper = upper - at::matmul(trailing_rows(L, k).mH(), trailing_rows(gL, k));
  } else if (m < n) {
    lower = lower - at::matmul(trailing_columns(gU, k), trailing_columns(U, k).mH());
  }
  const auto solve_U1H = [&](const Tensor& x) {
    return divide_by_triangular(U1H, x, /*upper=*/false, /*left=*/false);
  };

  Tensor gB = lower.tril(-1) + upper.triu();
  if (m < n) {
    gB = at::cat({solve_U1H(gB), trailing_columns(gU, k)}, -1);
  }
  gB = at::linalg_solve_triangular(L1H, gB, /*upper=*/true, /*left=*/true, /*unitriangular=*/true);
  if (m > n) {
    gB = at::cat({gB, trailing_rows(gL, k)}, -2);
  }
  if (m >= n) {
    gB = solve_U1H(gB);
  }
  return pivot ? at::matmul(P, gB) : gB;
}

at::Tensor lu_factor_ex_backward(
    const at::Tensor& grad, const at::Tensor& LU, const at::Tensor& pivs, const bool pivot) {
  if (!grad.defined()) {
    return {};
  }
  const auto [P, L, U] = at::lu_unpack(LU, pivs, /*unpack_data=*/true, /*unpack_pivots=*/pivot);
  // linalg_lu_backward does not read the entries of the other triangle.
  const auto k = L.sym_size(-1);
  return linalg_lu_backward(leading_columns(grad, k), leading_rows(grad, k), P, L, U, pivot);
}

at::Tensor lu_factor_ex_jvp(
    const at::Tensor& dX, const at::Tensor& LU, const at::Tensor& pivs, const bool pivot) {
  const auto [P, L, U] = at::lu_unpack(LU, pivs, /*unpack_data=*/true, /*unpack_pivots=*/pivot);
  const auto [dL, dU] = linalg_lu_jvp(dX, P, L, U, pivot);
  const auto m = dX.sym_size(-2);
  const auto n = dX.sym_size(-1);
  return pad_matrix(dL, m, n) + pad_matrix(dU, m, n);
}

namespace {

/// Raises unless Q and R of this mode are functions of A that can be differentiated.
void check_qr_is_differentiable(std::string_view mode, bool is_tall) {
  TORCH_CHECK(
      mode != "r",
      "linalg.qr: mode='r' has no derivative, because it needs Q, which this mode does not "
      "compute; use mode='reduced'");
  TORCH_CHECK(
      mode != "complete" || !is_tall,
      "linalg.qr: mode='complete' has no derivative for a matrix with more rows than columns");
}

} // namespace

// Walter, Lehmann and Lamour 2012, "On evaluating higher-order derivatives of the QR decomposition
// of tall matrices": with M = Q^H dA1 R1^-1 = Q^H dQ + dR1 R1^-1, where Q^H dQ is skew-Hermitian
// and T = dR1 R1^-1 is upper triangular with a real diagonal, T is the upper triangle of M + M^H
// with its diagonal halved. The index 1 means the leading square block of a wide matrix.
std::tuple<at::Tensor, at::Tensor> linalg_qr_jvp(
    const at::Tensor& dA, const at::Tensor& Q, const at::Tensor& R, const std::string_view mode) {
  const auto m = dA.sym_size(-2);
  const auto n = dA.sym_size(-1);
  check_qr_is_differentiable(mode, m > n);
  const auto k = smaller(m, n);
  const Tensor R1 = leading_columns(R, k);
  const Tensor dA1_over_R1 =
      divide_by_triangular(R1, leading_columns(dA, k), /*upper=*/true, /*left=*/false);
  const Tensor M = at::matmul(Q.mH(), dA1_over_R1);
  const Tensor hermitian = M + M.mH();
  const Tensor T = (hermitian.triu() + hermitian.triu(1)) * 0.5;
  const Tensor dQ = dA1_over_R1 - at::matmul(Q, T);
  Tensor dR = at::matmul(T, R1);
  if (m < n) {
    // R2 = Q^H A2, and dQ^H A2 = -(Q^H dQ) R2.
    const Tensor dR2 =
        at::matmul(Q.mH(), trailing_columns(dA, k)) - at::matmul(M - T, trailing_columns(R, k));
    dR = at::cat({dR, dR2}, -1);
  }
  return std::make_tuple(dQ, dR);
}

// The adjoint of the above.
at::Tensor linalg_qr_backward(
    const at::Tensor& gQ,
    const at::Tensor& gR,
    const at::Tensor& Q,
    const at::Tensor& R,
    const std::string_view mode) {
  if (!gQ.defined() && !gR.defined()) {
    return {};
  }
  const auto m = Q.sym_size(-2);
  const auto n = R.sym_size(-1);
  check_qr_is_differentiable(mode, m > n);
  const auto k = smaller(m, n);
  const bool has_R2_grad = gR.defined() && m < n;

  Tensor total_gQ = gQ;
  if (has_R2_grad) {
    const Tensor from_R2 =
        at::matmul(Q, at::matmul(trailing_columns(gR, k), trailing_columns(R, k).mH()));
    total_gQ = gQ.defined() ? gQ - from_R2 : -from_R2;
  }
  const Tensor R1H = leading_columns(R, k).mH();
  Tensor inner = gR.defined() ? at::matmul(leading_columns(gR, k), R1H) : Tensor();
  if (total_gQ.defined()) {
    const Tensor from_Q = at::matmul(Q.mH(), total_gQ);
    inner = inner.defined() ? inner - from_Q : -from_Q;
  }
  const Tensor upper = inner.triu() + inner.triu(1);
  Tensor gA = at::matmul(Q, (upper + upper.mH()) * 0.5);
  gA = total_gQ.defined() ? total_gQ + gA : gA;
  gA = divide_by_triangular(R1H, gA, /*upper=*/false, /*left=*/false);
  if (m < n) {
    const Tensor gA2 = has_R2_grad ? at::matmul(Q, trailing_columns(gR, k))
                                   : at::zeros_like(trailing_columns(R, k));
    gA = at::cat({gA, gA2}, -1);
  }
  return gA;
}

} // namespace derivatives
} // namespace v1
} // namespace torchext
