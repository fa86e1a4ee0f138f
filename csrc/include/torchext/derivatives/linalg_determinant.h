// SPDX-License-Identifier: BSD-3-Clause
//
// Derivatives of the determinant and of its logarithm.
#pragma once

#include <tuple>

#include <ATen/core/Tensor.h>

namespace torchext {
inline namespace v1 {
namespace derivatives {

/// Gradient of A in `det(A)`, also where A is singular. LU and pivots are of A, or of its transpose
/// where A is real and contiguous; they are not read where the result may be differentiated.
at::Tensor linalg_det_backward(
    const at::Tensor& grad,
    const at::Tensor& det,
    const at::Tensor& A,
    const at::Tensor& LU,
    const at::Tensor& pivots);

/// Tangent of `det(A)`, also where A is singular. LU and pivots are of A, or of its transpose where
/// `use_A_T`.
at::Tensor linalg_det_jvp(
    const at::Tensor& dA,
    const at::Tensor& det,
    const at::Tensor& LU,
    const at::Tensor& pivots,
    const bool use_A_T);

/// Gradient of A in `slogdet(A)`; either gradient may be undefined. LU and pivots as in
/// linalg_det_backward.
at::Tensor slogdet_backward(
    const at::Tensor& grad_sign,
    const at::Tensor& grad_logabsdet,
    const at::Tensor& A,
    const at::Tensor& signdet,
    const at::Tensor& LU,
    const at::Tensor& pivots);

/// Tangents of the sign and of the logarithm of `slogdet(A)`.
std::tuple<at::Tensor, at::Tensor> slogdet_jvp(
    const at::Tensor& LU,
    const at::Tensor& pivots,
    const at::Tensor& dA,
    const at::Tensor& sign,
    const bool use_A_T);

} // namespace derivatives
} // namespace v1
} // namespace torchext
