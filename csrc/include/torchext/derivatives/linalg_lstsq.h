// SPDX-License-Identifier: BSD-3-Clause
//
// Derivatives of the pseudo-inverse and of least squares.
#pragma once

#include <array>
#include <tuple>

#include <ATen/core/Tensor.h>

namespace torchext {
inline namespace v1 {
namespace derivatives {

/// Tangent of the pseudo-inverse of A, whose rank is taken to be constant.
at::Tensor pinv_jvp(const at::Tensor& A, const at::Tensor& pinvA, const at::Tensor& dA);

/// Gradient of A in its pseudo-inverse, whose rank is taken to be constant.
at::Tensor pinv_backward(const at::Tensor& grad, const at::Tensor& pinvA, const at::Tensor& A);

/// Tangent of the residuals `L` of `linalg_lstsq`, which are empty where it does not compute them.
at::Tensor linalg_lstsq_residuals_jvp(
    const at::Tensor& A,
    const at::Tensor& B_,
    const at::Tensor& dA,
    const at::Tensor& dB_,
    const at::Tensor& X_,
    const at::Tensor& L);

/// Tangent of the solution of `linalg_lstsq`, where B is a matrix or a (batch of) vector(s).
at::Tensor linalg_lstsq_solution_jvp(
    const at::Tensor& A, const at::Tensor& B_, const at::Tensor& dA, const at::Tensor& dB_);

/// Gradients of A and B in `linalg_lstsq`, from those of the solution and of the residuals, either
/// of which may be undefined.
std::tuple<at::Tensor, at::Tensor> linalg_lstsq_backward(
    const at::Tensor& gX_,
    const at::Tensor& gL,
    const at::Tensor& A,
    const at::Tensor& B_,
    const at::Tensor& X_,
    const std::array<bool, 2>& grad_input_mask);

} // namespace derivatives
} // namespace v1
} // namespace torchext
