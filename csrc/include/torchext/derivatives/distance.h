// SPDX-License-Identifier: BSD-3-Clause
//
// Derivatives of pairwise distances: of cdist's two forward operators and of the gradients of cdist
// and pdist. All are those of real tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <tuple>

namespace torchext {
inline namespace v1 {
namespace derivatives {

/// Gradients of `_euclidean_dist` of `x1` (.., P, M) and `x2` (.., R, M), whose value is `res`
/// (.., P, R); zero from pairs at distance zero. Undefined without a gradient.
std::tuple<at::Tensor, at::Tensor> _euclidean_dist_backward(
    const at::Tensor& grad, const at::Tensor& x1, const at::Tensor& x2, const at::Tensor& res);

/// Gradients of `_cdist_backward`, the gradient of cdist with regard to `x1`, with regard to
/// `grad_output` (.., P, R), `x1` (.., P, M), `x2` (.., R, M) and `cdist` (.., P, R), given `grad` of
/// its result. Undefined where the mask says so, and without a gradient.
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> _cdist_backward_backward(
    const at::Tensor& grad,
    const at::Tensor& grad_output,
    const at::Tensor& x1,
    const at::Tensor& x2,
    double p,
    const at::Tensor& cdist,
    const std::array<bool, 4>& output_mask);

/// Gradients of `_pdist_backward` with regard to `grad_output` (N (N - 1) / 2), `self` (N, M) and
/// `pdist`, as above.
std::tuple<at::Tensor, at::Tensor, at::Tensor> _pdist_backward_backward(
    const at::Tensor& grad,
    const at::Tensor& grad_output,
    const at::Tensor& self,
    double p,
    const at::Tensor& pdist,
    const std::array<bool, 3>& output_mask);

} // namespace derivatives
} // namespace v1
} // namespace torchext
