// SPDX-License-Identifier: BSD-3-Clause
//
// Derivatives of functions of a matrix: exponential, square root and polar decomposition.
#pragma once

#include <tuple>

#include <ATen/core/Tensor.h>

namespace torchext {
inline namespace v1 {
namespace derivatives {

/// Directional derivative of the matrix exponential at `self` along `grad`: the tangent, or the
/// gradient where `adjoint`.
at::Tensor linalg_matrix_exp_differential(
    const at::Tensor& self, const at::Tensor& grad, bool adjoint);

/// Gradient of A in its polar decomposition `A = U H`; an undefined gradient counts as zero, two of
/// them give an undefined result. A has full column rank.
at::Tensor linalg_polar_backward(
    const at::Tensor& grad_U,
    const at::Tensor& grad_H,
    const at::Tensor& A,
    const at::Tensor& U,
    const at::Tensor& H);

/// Tangents of U and H in the same.
std::tuple<at::Tensor, at::Tensor> linalg_polar_jvp(
    const at::Tensor& dA, const at::Tensor& A, const at::Tensor& U, const at::Tensor& H);

/// Directional derivative of the square root of the Hermitian `self` along `grad`, of which the
/// Hermitian part is taken: the tangent and the gradient, which are the same.
at::Tensor linalg_matrix_sqrth_differential(const at::Tensor& self, const at::Tensor& grad);

} // namespace derivatives
} // namespace v1
} // namespace torchext
