// SPDX-License-Identifier: BSD-3-Clause
//
// Derivatives of the products of Householder reflectors.
#pragma once

#include <array>
#include <tuple>

#include <ATen/core/Tensor.h>

namespace torchext {
inline namespace v1 {
namespace derivatives {

/// Gradients of the reflectors (`input`, below its diagonal) and of `tau` in `result`, the product
/// `H_1 ... H_k C` for any constant C (the leading columns of the identity in householder_product);
/// `H_k ... H_1 C` where `flip_order`. Undefined where `grad` is or nothing is to differentiate.
std::tuple<at::Tensor, at::Tensor> householder_product_backward(
    const at::Tensor& grad,
    const at::Tensor& result,
    const at::Tensor& input,
    const at::Tensor& tau,
    const bool flip_order = false);

/// Tangent of `prod`, the product of the reflectors in `V` and `tau`.
at::Tensor householder_product_jvp(
    const at::Tensor& dV,
    const at::Tensor& dtau,
    const at::Tensor& prod,
    const at::Tensor& V,
    const at::Tensor& tau);

/// Gradients of `self` (the reflectors), `tau` and `other` in `ormqr`; those that the mask does not
/// ask for are undefined.
std::tuple<at::Tensor, at::Tensor, at::Tensor> ormqr_backward(
    const at::Tensor& grad,
    const at::Tensor& result,
    const at::Tensor& self,
    const at::Tensor& tau,
    const at::Tensor& other,
    bool left,
    bool transpose,
    std::array<bool, 3> grad_output_mask);

} // namespace derivatives
} // namespace v1
} // namespace torchext
