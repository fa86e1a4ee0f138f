// SPDX-License-Identifier: BSD-3-Clause
//
// Derivatives of vector norms and of what is made of them: norm, dist, linalg_vector_norm, renorm.
//
// At a kink the derivative is a subgradient: zero at a vector of zeros, and for the maximum norm
// spread evenly over ties. `dim` and `keepdim` are those of the operator; no dims means all.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/OptionalArrayRef.h>

#include <cstdint>
#include <optional>

namespace torchext {
inline namespace v1 {
namespace derivatives {

/// Gradient of the `p`-norm (2 if absent) of all elements, whose value is `norm`. Undefined, which
/// means zero, for p = 0.
at::Tensor norm_backward(
    const at::Tensor& grad,
    const at::Tensor& self,
    const std::optional<c10::Scalar>& p,
    const at::Tensor& norm);

/// Gradient of the `p`-norm along `dim`.
at::Tensor norm_backward(
    const at::Tensor& grad,
    const at::Tensor& self,
    const std::optional<c10::Scalar>& p,
    const at::Tensor& norm,
    at::IntArrayRef dim,
    bool keepdim);

/// Tangent of the `p`-norm (2 if absent) of all elements, whose value is `norm`.
at::Tensor norm_jvp(
    const at::Tensor& self_p,
    const at::Tensor& self_t,
    const std::optional<c10::Scalar>& p,
    const at::Tensor& norm);

/// Tangent of the `p`-norm along `dim`.
at::Tensor norm_jvp(
    const at::Tensor& self_p,
    const at::Tensor& self_t,
    const std::optional<c10::Scalar>& p,
    const at::Tensor& norm,
    at::IntArrayRef dim,
    bool keepdim);

/// Gradient of `linalg_vector_norm`, whose value is `norm`. Undefined for ord = 0.
at::Tensor linalg_vector_norm_backward(
    const at::Tensor& grad,
    const at::Tensor& self,
    const c10::Scalar& ord,
    const at::Tensor& norm,
    at::OptionalIntArrayRef dim,
    bool keepdim);

/// Tangent of `linalg_vector_norm`, whose value is `norm`.
at::Tensor linalg_vector_norm_jvp(
    const at::Tensor& self_p,
    const at::Tensor& self_t,
    const c10::Scalar& ord,
    const at::Tensor& norm,
    at::OptionalIntArrayRef dim,
    bool keepdim);

/// Gradient of `renorm`, which scales the slices along `dim` down to the norm `maxnorm`.
at::Tensor renorm_backward(
    const at::Tensor& grad,
    const at::Tensor& self,
    const c10::Scalar& p,
    int64_t dim,
    const c10::Scalar& maxnorm);

/// Tangent of `renorm`.
at::Tensor renorm_jvp(
    const at::Tensor& self_p,
    const at::Tensor& self_t,
    const c10::Scalar& p,
    int64_t dim,
    const c10::Scalar& maxnorm);

} // namespace derivatives
} // namespace v1
} // namespace torchext
