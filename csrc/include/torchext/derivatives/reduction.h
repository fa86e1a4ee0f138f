// SPDX-License-Identifier: BSD-3-Clause
//
// Derivatives of reductions: sums, means, products, variances, log-sum-exp and what selects among
// the elements (max, min, median, sort).
//
// `dim` and `keepdim` are those of the operator; an absent or empty list of dims means all of them.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/core/SymInt.h>
#include <c10/core/SymIntArrayRef.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/OptionalArrayRef.h>

#include <cstdint>
#include <optional>

namespace torchext {
inline namespace v1 {
namespace derivatives {

/// `output` with the dims of size one that a reduction over `dims` took away, so that it broadcasts
/// against what was reduced; `output` itself with `keepdim`.
at::Tensor restore_reduced_dims(const at::Tensor& output, at::IntArrayRef dims, bool keepdim);

/// `self` with a dim inserted wherever `sizes` is one: undoes `squeeze()` of a tensor of that shape.
at::Tensor unsqueeze_to(const at::Tensor& self, c10::SymIntArrayRef sizes);

/// `self` with `dim` inserted if `sizes` is one there: undoes `squeeze(dim)`.
at::Tensor unsqueeze_to(const at::Tensor& self, int64_t dim, c10::SymIntArrayRef sizes);

/// `self` with those of `dim` inserted where `sizes` is one: undoes `squeeze` of several dims.
at::Tensor unsqueeze_to(const at::Tensor& self, at::IntArrayRef dim, c10::SymIntArrayRef sizes);

/// Gradient of `sum` of a tensor of shape `sizes`: `grad` expanded to it.
at::Tensor sum_backward(
    const at::Tensor& grad, c10::SymIntArrayRef sizes, at::OptionalIntArrayRef dims, bool keepdim);

/// The same for a list of dims that is always given.
at::Tensor sum_backward(
    const at::Tensor& grad, c10::SymIntArrayRef sizes, at::IntArrayRef dims, bool keepdim);

/// Gradient of `nansum`: that of `sum`, zero where `self` is NaN.
at::Tensor nansum_backward(
    const at::Tensor& grad, const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim);

/// Gradient of `mean` of a tensor of shape `sizes` with `numel` elements.
at::Tensor mean_backward(
    const at::Tensor& grad,
    c10::SymIntArrayRef sizes,
    at::OptionalIntArrayRef dim,
    const c10::SymInt& numel,
    bool keepdim);

/// Gradient of the product of all elements. Exact with any number of zeros; `result` is not read.
at::Tensor prod_backward(const at::Tensor& grad, const at::Tensor& input, const at::Tensor& result);

/// Gradient of the product along `dim`. Exact with any number of zeros; `result` is not read.
at::Tensor prod_backward(
    const at::Tensor& grad,
    const at::Tensor& input,
    const at::Tensor& result,
    int64_t dim,
    bool keepdim);

/// Gradient of `var`. `correction` defaults to one; `grad` may also have the shape of `self` if
/// `keepdim`. Infinite or NaN, as the variance, without degrees of freedom.
at::Tensor var_backward(
    const at::Tensor& grad,
    const at::Tensor& self,
    at::OptionalIntArrayRef dim,
    const std::optional<c10::Scalar>& correction,
    bool keepdim);

/// Gradient of `std`, whose value is `result`; zero where that is zero.
at::Tensor std_backward(
    const at::Tensor& result,
    const at::Tensor& grad,
    const at::Tensor& self,
    at::OptionalIntArrayRef dim,
    const std::optional<c10::Scalar>& correction,
    bool keepdim);

/// Gradient of `var_mean`: the sum over the gradients that are defined, undefined if none is.
at::Tensor var_mean_backward(
    const at::Tensor& gvar,
    const at::Tensor& gmean,
    const at::Tensor& self,
    at::OptionalIntArrayRef dim,
    const std::optional<c10::Scalar>& correction,
    bool keepdim);

/// Gradient of `std_mean`, whose first result is `std`; undefined gradients as in `var_mean`.
at::Tensor std_mean_backward(
    const at::Tensor& gstd,
    const at::Tensor& gmean,
    const at::Tensor& self,
    const at::Tensor& std,
    at::OptionalIntArrayRef dim,
    const std::optional<c10::Scalar>& correction,
    bool keepdim);

/// Gradient of `logsumexp`, whose value is `result`.
at::Tensor logsumexp_backward(
    const at::Tensor& grad,
    const at::Tensor& self,
    const at::Tensor& result,
    at::IntArrayRef dim,
    bool keepdim);

/// Tangent of `logsumexp`: the mean of `self_t` with weights softmax(`self_p`). NaN where all of
/// `self_p` is -inf.
at::Tensor logsumexp_jvp(
    const at::Tensor& self_p, const at::Tensor& self_t, at::IntArrayRef dim, bool keepdim);

/// The same, but zero where all of `self_p` is -inf.
at::Tensor safe_logsumexp_jvp(
    const at::Tensor& self_p, const at::Tensor& self_t, at::IntArrayRef dim, bool keepdim);

/// Tangent of an operator that selects along `dim`: `input` read at the `indices` it returned.
at::Tensor gather_with_keepdimed_indices(
    const at::Tensor& input, int64_t dim, const at::Tensor& indices, bool keepdim);

/// `grad` times `mask`, divided by the number of elements of `mask` that are set along `dims`.
at::Tensor scale_grad_by_count(
    const at::Tensor& grad, const at::Tensor& mask, at::IntArrayRef dims);

/// Tangent of `amax` or `amin`: the mean of `dx` where `x` equals `result`.
at::Tensor amaxamin_jvp(
    const at::Tensor& x,
    const at::Tensor& dx,
    const at::Tensor& result,
    at::IntArrayRef dim,
    bool keepdim);

/// Gradient of `aminmax`, spread evenly over ties. An undefined gradient counts as zero; undefined
/// if both are.
at::Tensor aminmax_backward(
    const at::Tensor& self,
    std::optional<int64_t> dim,
    bool keepdim,
    const at::Tensor& grad_min,
    const at::Tensor& grad_max,
    const at::Tensor& min,
    const at::Tensor& max);

/// Tangent of the one output `result` of `aminmax`.
at::Tensor aminmax_jvp(
    const at::Tensor& self_p,
    const at::Tensor& self_t,
    const at::Tensor& result,
    std::optional<int64_t> dim,
    bool keepdim);

/// Gradient of an operator that returns one `value` out of all of `input`: spread evenly over the
/// elements equal to it, where NaN equals NaN.
at::Tensor evenly_distribute_backward(
    const at::Tensor& grad, const at::Tensor& input, const at::Tensor& value);

/// Tangent of such an operator: the mean of `fw_grad` over the elements equal to `value`.
at::Tensor evenly_read_jvp(
    const at::Tensor& fw_grad, const at::Tensor& input, const at::Tensor& value);

} // namespace derivatives
} // namespace v1
} // namespace torchext
