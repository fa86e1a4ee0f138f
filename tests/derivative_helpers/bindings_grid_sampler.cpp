// SPDX-License-Identifier: BSD-3-Clause
//
// The derivative helpers of grid sampling as operators for the tests.
#include "bindings.h"

#include <torch/library.h>

#include <torchext/derivatives/grid_sampler-inl.h>

#include <string>

namespace derivatives = torchext::derivatives;

namespace {

using at::Tensor;
using Given = std::optional<at::Tensor>;
using Triple = std::tuple<Tensor, Tensor, Tensor>;

template <auto helper>
Triple double_backward(
    Given ggI,
    Given ggGrid,
    Tensor grad_output,
    Tensor input,
    Tensor grid,
    int64_t interpolation,
    int64_t padding,
    bool align_corners,
    std::array<bool, 3> mask) {
  return helper(
      or_undefined(ggI),
      or_undefined(ggGrid),
      grad_output,
      input,
      grid,
      interpolation,
      padding,
      align_corners,
      mask);
}

} // namespace

TORCH_LIBRARY_FRAGMENT(derivative_helpers, m) {
  const std::string arguments =
      "(Tensor? ggI, Tensor? ggGrid, Tensor grad_output, Tensor input, Tensor grid, "
      "int interpolation, int padding, bool align_corners, bool[3] mask)"
      " -> (Tensor, Tensor, Tensor)";
  m.def(
      ("grid_sampler_2d_double_backward" + arguments).c_str(),
      &double_backward<&derivatives::grid_sampler_2d_double_backward>);
  m.def(
      ("grid_sampler_3d_double_backward" + arguments).c_str(),
      &double_backward<&derivatives::grid_sampler_3d_double_backward>);
}
