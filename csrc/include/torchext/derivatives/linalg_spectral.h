// SPDX-License-Identifier: BSD-3-Clause
//
// Derivatives of eigenvalues and singular values and of their vectors.
#pragma once

#include <tuple>

#include <ATen/core/Tensor.h>

namespace torchext {
inline namespace v1 {
namespace derivatives {

/// Gradient of A in `A = V diag(L) V^-1`, V unitary where `is_hermitian`; complex where V is. An
/// undefined gradient counts as zero; two of them give an undefined result. Raises where the loss
/// depends on the phases of complex eigenvectors.
at::Tensor linalg_eig_backward(
    const at::Tensor& gL,
    const at::Tensor& gV,
    const at::Tensor& L,
    const at::Tensor& V,
    const bool is_hermitian,
    const bool symeig_eigenvectors = true);

/// Tangents of L and V in the same.
std::tuple<at::Tensor, at::Tensor> linalg_eig_jvp(
    const at::Tensor& dA, const at::Tensor& L, const at::Tensor& V, const bool is_hermitian);

/// Gradient of A in its reduced decomposition `U diag(S) Vh`. An undefined gradient counts as zero;
/// three of them give an undefined result. Raises where the loss depends on the phases of complex
/// singular vectors.
at::Tensor svd_backward(
    const at::Tensor& gU,
    const at::Tensor& gS,
    const at::Tensor& gVh,
    const at::Tensor& U,
    const at::Tensor& S,
    const at::Tensor& Vh);

/// Tangents of U, S and Vh; those of the vectors that complete a basis (`full_matrices`) are zero.
std::tuple<at::Tensor, at::Tensor, at::Tensor> linalg_svd_jvp(
    const at::Tensor& dA,
    const at::Tensor& U,
    const at::Tensor& S,
    const at::Tensor& Vh,
    const bool full_matrices);

} // namespace derivatives
} // namespace v1
} // namespace torchext
