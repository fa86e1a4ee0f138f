// SPDX-License-Identifier: BSD-3-Clause

#include "rms_norm.h"

#include <ATen/ops/empty.h>
#include <myns/kernels/rms_norm_backward.h>

std::tuple<at::Tensor, at::Tensor> myns::native::rms_norm_backward_meta(
    const at::Tensor& grad_output,
    const at::Tensor& input,
    const std::optional<at::Tensor>& weight,
    double /*eps*/,
    std::array<bool, 2> output_mask) {
  constexpr auto op = "myns::rms_norm_backward";
  check_rms_norm(op, input, weight);
  check_floating(op, "grad_output", grad_output);
  check_shape(op, "grad_output", grad_output, input.sym_sizes());
  at::Tensor grad_input;
  at::Tensor grad_weight;
  if (output_mask[0]) {
    grad_input = at::empty_symint(input.sym_sizes(), input.options());
  }
  if (output_mask[1] && has_weight(weight)) {
    grad_weight = at::empty_symint(weight->sym_sizes(), weight->options());
  }
  return {grad_input, grad_weight};
}
