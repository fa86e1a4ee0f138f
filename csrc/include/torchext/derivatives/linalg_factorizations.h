// SPDX-License-Identifier: BSD-3-Clause
//
// Derivatives of the triangular and orthogonal factorizations: Cholesky, LU and QR.
#pragma once

#include <string_view>
#include <tuple>

#include <ATen/core/Tensor.h>
#include <c10/core/SymInt.h>

namespace torchext {
inline namespace v1 {
namespace derivatives {

/// Gradient of A in `L = cholesky(A)` (`U` where `upper`); Hermitian where the diagonal of
/// `L^H grad` is real.
at::Tensor cholesky_backward(const at::Tensor& grad, bool upper, const at::Tensor& L);

/// Tangent of the Cholesky factor `L` (upper triangular where `upper`).
at::Tensor cholesky_jvp(const at::Tensor& input_tangent, const at::Tensor& L, bool upper);

/// Tangent of `X = cholesky_inverse(F)`, the inverse of `F F^H` (`F^H F` where `upper`).
at::Tensor cholesky_inverse_jvp(
    const at::Tensor& F, const at::Tensor& dF, const at::Tensor& X, bool upper);

/// Gradient of the factor in `cholesky_inverse`; a full matrix, not only the triangle.
at::Tensor cholesky_inverse_backward(
    const at::Tensor& grad, const at::Tensor& L, bool upper, const at::Tensor& inverse);

/// Gradient of the `m` by `n` packed matrix of `lu_unpack`. An undefined gradient counts as zero;
/// two of them give an undefined result.
at::Tensor lu_unpack_backward(
    const at::Tensor& L_grad, const at::Tensor& U_grad, const c10::SymInt& m, const c10::SymInt& n);

/// Gradient of A in `linalg_lu_factor_ex`, from the gradient of the packed LU.
at::Tensor lu_factor_ex_backward(
    const at::Tensor& grad, const at::Tensor& LU, const at::Tensor& pivs, const bool pivot);

/// Tangent of the packed LU of `linalg_lu_factor_ex`.
at::Tensor lu_factor_ex_jvp(
    const at::Tensor& dX, const at::Tensor& LU, const at::Tensor& pivs, const bool pivot);

/// Tangents of L and U in `A = P L U` (`A = L U` where `pivot` is false, then P is not read).
std::tuple<at::Tensor, at::Tensor> linalg_lu_jvp(
    const at::Tensor& dA,
    const at::Tensor& P,
    const at::Tensor& L,
    const at::Tensor& U,
    const bool pivot);

/// Gradient of A in `A = P L U`. An undefined gradient counts as zero; two of them give an
/// undefined result.
at::Tensor linalg_lu_backward(
    const at::Tensor& L_grad,
    const at::Tensor& U_grad,
    const at::Tensor& P,
    const at::Tensor& L,
    const at::Tensor& U,
    const bool pivot);

/// Tangents of Q and R in `A = Q R`. Raises where the decomposition has no unique derivative.
std::tuple<at::Tensor, at::Tensor> linalg_qr_jvp(
    const at::Tensor& dA, const at::Tensor& Q, const at::Tensor& R, const std::string_view mode);

/// Gradient of A in `A = Q R`. An undefined gradient counts as zero; two of them give an undefined
/// result. Raises where the decomposition has no unique derivative.
at::Tensor linalg_qr_backward(
    const at::Tensor& gQ,
    const at::Tensor& gR,
    const at::Tensor& Q,
    const at::Tensor& R,
    const std::string_view mode);

} // namespace derivatives
} // namespace v1
} // namespace torchext
