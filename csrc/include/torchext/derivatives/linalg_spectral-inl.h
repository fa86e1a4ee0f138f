// SPDX-License-Identifier: BSD-3-Clause
//
// Definitions of linalg_spectral.h.
#pragma once

#include <torchext/derivatives/linalg_spectral.h>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/TensorSubclassLikeUtils.h>
#include <c10/util/Exception.h>

namespace torchext {
inline namespace v1 {
namespace derivatives {

namespace {

using at::Tensor;

Tensor diagonal_of(const Tensor& x) {
  return x.diagonal(0, -2, -1);
}

Tensor without_diagonal(const Tensor& x) {
  return x - at::diag_embed(diagonal_of(x));
}

/// diag(factors) x, or x diag(factors).
Tensor scale_rows(const Tensor& factors, const Tensor& x) {
  return factors.unsqueeze(-1) * x;
}

Tensor scale_columns(const Tensor& x, const Tensor& factors) {
  return x * factors.unsqueeze(-2);
}

/// `values[j] - values[i]` at (i, j), and one on the diagonal, to divide by.
Tensor differences(const Tensor& values) {
  return values.unsqueeze(-2) - values.unsqueeze(-1) +
         at::eye_symint(values.sym_size(-1), values.options());
}

/// `values[j]^2 - values[i]^2` at (i, j), and ones on the diagonal, to divide by.
Tensor squared_differences(const Tensor& values) {
  const Tensor row = values.unsqueeze(-2);
  const Tensor column = values.unsqueeze(-1);
  return (row - column) * (row + column) + at::eye_symint(values.sym_size(-1), values.options());
}

Tensor times_i(const Tensor& imaginary) {
  return at::complex(at::zeros_like(imaginary), imaginary);
}

Tensor add_defined(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) {
    return a.defined() ? a : b;
  }
  return a + b;
}

/// Raises where a loss with these derivatives by the phases of the vectors is not a function of the
/// matrix. Inside transforms the numbers cannot be looked at.
void check_phase_invariance(const Tensor& phase_grads, const char* vectors) {
  if (at::isTensorSubclassLike(phase_grads)) {
    return;
  }
  TORCH_CHECK(
      at::allclose(phase_grads, at::zeros_like(phase_grads), /*rtol=*/1e-2, /*atol=*/1e-2),
      "the complex ",
      vectors,
      " are determined up to factors exp(i phi), on which the loss depends: its gradient does not "
      "exist");
}

} // namespace

// Boeddeker et al. 2017, "On the computation of complex-valued gradients with application to
// statistically optimum beamforming", and Giles 2008, "An extended collection of matrix derivative
// results", 3.1: with P = V^-1 dA V and E_ij = L_j - L_i, dL = diag(P) and dV = V (P / E) without
// the diagonal, from which the columns, of unit norm, lose their part along V.
std::tuple<at::Tensor, at::Tensor> linalg_eig_jvp(
    const at::Tensor& dA, const at::Tensor& L, const at::Tensor& V, const bool is_hermitian) {
  const Tensor dA_V = at::matmul(dA.to(V.scalar_type()), V);
  const Tensor P = is_hermitian ? at::matmul(V.mH(), dA_V) : at::linalg_solve(V, dA_V);
  const Tensor dL = is_hermitian ? at::real(diagonal_of(P)) : diagonal_of(P);
  const Tensor dV = at::matmul(V, without_diagonal(P) / differences(L));
  if (is_hermitian) {
    return std::make_tuple(dL, dV);
  }
  const Tensor along_V = at::real((V.conj() * dV).sum(-2));
  return std::make_tuple(dL, dV - scale_columns(V, along_V));
}

// The adjoint of the above; of a Hermitian A, its Hermitian part.
at::Tensor linalg_eig_backward(
    const at::Tensor& gL,
    const at::Tensor& gV,
    const at::Tensor& L,
    const at::Tensor& V,
    const bool is_hermitian,
    const bool symeig_eigenvectors) {
  TORCH_CHECK(
      symeig_eigenvectors,
      "the derivative of the eigenvalues needs the eigenvectors, which were not computed");
  if (!gL.defined() && !gV.defined()) {
    return {};
  }
  const Tensor VH = V.mH();
  Tensor inner;
  if (gV.defined()) {
    const Tensor VH_gV = at::matmul(VH, gV);
    const Tensor along_V = diagonal_of(VH_gV);
    if (V.is_complex()) {
      check_phase_invariance(at::imag(along_V), "eigenvectors");
    }
    if (is_hermitian) {
      const Tensor rotations = without_diagonal(VH_gV) / differences(L);
      inner = (rotations + rotations.mH()) * 0.5;
    } else {
      const Tensor tangential = VH_gV - scale_columns(at::matmul(VH, V), at::real(along_V));
      inner = without_diagonal(tangential) / differences(L).conj();
    }
  }
  if (!inner.defined()) {
    const Tensor right = scale_rows(gL, VH);
    return is_hermitian ? at::matmul(V, right) : at::linalg_solve(VH, right);
  }
  if (gL.defined()) {
    inner = inner + at::diag_embed(gL);
  }
  const Tensor right = at::matmul(inner, VH);
  return is_hermitian ? at::matmul(V, right) : at::linalg_solve(VH, right);
}

// Townsend 2016, "Differentiating the singular value decomposition", and for complex matrices Wan
// and Zhang 2019, "Automatic differentiation for complex valued SVD". With P = U^H dA V and
// E_ij = S_j^2 - S_i^2, dS = Re diag(P) and off the diagonal
//   U^H dU = (P S + S P^H) / E and V^H dV = (S P + P^H S) / E.
// Im diag(P) = S Im diag(U^H dU - V^H dV) leaves the phases open: each takes half of it.
std::tuple<at::Tensor, at::Tensor, at::Tensor> linalg_svd_jvp(
    const at::Tensor& dA,
    const at::Tensor& U_,
    const at::Tensor& S,
    const at::Tensor& Vh_,
    const bool full_matrices) {
  const auto m = dA.sym_size(-2);
  const auto n = dA.sym_size(-1);
  const auto k = S.sym_size(-1);
  const Tensor U = full_matrices ? U_.narrow_symint(-1, 0, k) : U_;
  const Tensor Vh = full_matrices ? Vh_.narrow_symint(-2, 0, k) : Vh_;
  const Tensor UH_dA = at::matmul(U.mH(), dA);
  const Tensor dA_V = at::matmul(dA, Vh.mH());
  const Tensor P = at::matmul(UH_dA, Vh.mH());
  const Tensor dS = at::real(diagonal_of(P));

  const Tensor E = squared_differences(S);
  const Tensor off = without_diagonal(P);
  Tensor U_rotation = (scale_columns(off, S) + scale_rows(S, off.mH())) / E;
  Tensor V_rotation = (scale_rows(S, off) + scale_columns(off.mH(), S)) / E;
  if (P.is_complex()) {
    const Tensor phases = at::diag_embed(times_i(at::imag(diagonal_of(P)) / (2 * S)));
    U_rotation = U_rotation + phases;
    V_rotation = V_rotation - phases;
  }
  Tensor dU = at::matmul(U, U_rotation);
  Tensor dVh = at::matmul(V_rotation.mH(), Vh);
  if (m > k) {
    dU = dU + scale_columns(dA_V - at::matmul(U, P), S.reciprocal());
  }
  if (n > k) {
    dVh = dVh + scale_rows(S.reciprocal(), UH_dA - at::matmul(P, Vh));
  }
  if (full_matrices) {
    const c10::SymInt none(0);
    dU = at::constant_pad_nd_symint(dU, {none, m - k});
    dVh = at::constant_pad_nd_symint(dVh, {none, none, none, n - k});
  }
  return std::make_tuple(dU, dS, dVh);
}

namespace {

/// (X - X^H) / E: what X, the gradient of a rotation of the vectors, gives to P.
Tensor rotation_grad(const Tensor& X, const Tensor& E) {
  return without_diagonal(X - X.mH()) / E;
}

/// The gradient of P in linalg_svd_jvp.
Tensor svd_inner_grad(const Tensor& UH_gU, const Tensor& gS, const Tensor& VH_gV, const Tensor& S) {
  const Tensor E = squared_differences(S);
  Tensor inner = gS.defined() ? at::diag_embed(gS) : Tensor();
  Tensor U_phases;
  Tensor V_phases;
  if (UH_gU.defined()) {
    inner = add_defined(inner, scale_columns(rotation_grad(UH_gU, E), S));
    U_phases = diagonal_of(UH_gU);
  }
  if (VH_gV.defined()) {
    inner = add_defined(inner, scale_rows(S, rotation_grad(VH_gV, E)));
    V_phases = diagonal_of(VH_gV);
  }
  if (!inner.is_complex()) {
    return inner;
  }
  check_phase_invariance(at::imag(add_defined(U_phases, V_phases)), "singular vectors");
  const Tensor phases = add_defined(U_phases, V_phases.defined() ? -V_phases : V_phases);
  return inner + at::diag_embed(times_i(at::imag(phases) / (2 * S)));
}

} // namespace

// The adjoint of the above.
at::Tensor svd_backward(
    const at::Tensor& gU,
    const at::Tensor& gS,
    const at::Tensor& gVh,
    const at::Tensor& U,
    const at::Tensor& S,
    const at::Tensor& Vh) {
  if (!gU.defined() && !gS.defined() && !gVh.defined()) {
    return {};
  }
  const auto m = U.sym_size(-2);
  const auto n = Vh.sym_size(-1);
  const auto k = S.sym_size(-1);
  if (!gU.defined() && !gVh.defined()) {
    return m >= n ? at::matmul(U, scale_rows(gS, Vh)) : at::matmul(scale_columns(U, gS), Vh);
  }
  const Tensor UH_gU = gU.defined() ? at::matmul(U.mH(), gU) : Tensor();
  const Tensor VH_gV = gVh.defined() ? at::matmul(Vh, gVh.mH()) : Tensor();
  const Tensor inner = svd_inner_grad(UH_gU, gS, VH_gV, S);

  Tensor left = at::matmul(U, inner);
  if (gU.defined() && m > k) {
    left = left + scale_columns(gU - at::matmul(U, UH_gU), S.reciprocal());
  }
  Tensor gA = at::matmul(left, Vh);
  if (gVh.defined() && n > k) {
    const Tensor outside = gVh - at::matmul(VH_gV.mH(), Vh);
    gA = gA + at::matmul(U, scale_rows(S.reciprocal(), outside));
  }
  return gA;
}

} // namespace derivatives
} // namespace v1
} // namespace torchext
