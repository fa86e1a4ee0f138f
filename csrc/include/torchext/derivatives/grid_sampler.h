// SPDX-License-Identifier: BSD-3-Clause
//
// Second derivatives of grid sampling. `interpolation_mode` is 0: linear, 1: nearest, 2: cubic
// (two dimensions only); `padding_mode` 0: zeros, 1: border, 2: reflection.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <tuple>

namespace torchext {
inline namespace v1 {
namespace derivatives {

/// Gradients of (grad_output, input, grid) in grid_sampler_2d_backward from `ggI` and `ggGrid`,
/// the gradients of its results, either of which may be undefined. Undefined where it would be
/// zero for want of them, and where the mask says so.
std::tuple<at::Tensor, at::Tensor, at::Tensor> grid_sampler_2d_double_backward(
    const at::Tensor& ggI,
    const at::Tensor& ggGrid,
    const at::Tensor& grad_output,
    const at::Tensor& input,
    const at::Tensor& grid,
    int64_t interpolation_mode,
    int64_t padding_mode,
    bool align_corners,
    std::array<bool, 3> output_mask);

/// The same for grid_sampler_3d_backward.
std::tuple<at::Tensor, at::Tensor, at::Tensor> grid_sampler_3d_double_backward(
    const at::Tensor& ggI,
    const at::Tensor& ggGrid,
    const at::Tensor& grad_output,
    const at::Tensor& input,
    const at::Tensor& grid,
    int64_t interpolation_mode,
    int64_t padding_mode,
    bool align_corners,
    std::array<bool, 3> output_mask);

} // namespace derivatives
} // namespace v1
} // namespace torchext
