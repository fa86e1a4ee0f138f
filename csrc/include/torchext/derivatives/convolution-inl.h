// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <torchext/derivatives/convolution.h>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <c10/util/Exception.h>

#include <optional>
#include <vector>

namespace torchext {
inline namespace v1 {
namespace derivatives {

namespace {

using at::Tensor;
using OptionalTensor = std::optional<at::Tensor>;

// The tangent of `convolve(input, weight, bias)`, which is linear in each of input and weight,
// and adds the bias.
template <typename Convolve>
Tensor tangent_of_convolution(
    const Tensor& input_p,
    const Tensor& input_t,
    const Tensor& weight_p,
    const Tensor& weight_t,
    const Tensor& bias_t,
    const Convolve& convolve) {
  const OptionalTensor bias = bias_t.defined() ? OptionalTensor(bias_t) : std::nullopt;
  Tensor tangent;
  if (weight_t.defined()) {
    tangent = convolve(input_p, weight_t, bias);
  } else if (bias.has_value()) {
    tangent = convolve(input_p, at::zeros_like(weight_p), bias);
  }
  if (input_t.defined()) {
    const Tensor of_input = convolve(input_t, weight_p, OptionalTensor());
    tangent = tangent.defined() ? of_input + tangent : of_input;
  }
  return tangent;
}

} // namespace

at::Tensor convolution_jvp(
    const at::Tensor& input_p,
    const at::Tensor& input_t,
    const at::Tensor& weight_p,
    const at::Tensor& weight_t,
    const at::Tensor& /*bias_p*/,
    const at::Tensor& bias_t,
    at::SymIntArrayRef stride,
    at::SymIntArrayRef padding,
    at::SymIntArrayRef dilation,
    bool transposed,
    at::SymIntArrayRef output_padding,
    const c10::SymInt& groups) {
  const auto convolve = [&](const Tensor& input, const Tensor& weight, const OptionalTensor& bias) {
    return at::convolution_symint(
        input, weight, bias, stride, padding, dilation, transposed, output_padding, groups);
  };
  return tangent_of_convolution(input_p, input_t, weight_p, weight_t, bias_t, convolve);
}

at::Tensor _convolution_jvp(
    const at::Tensor& input_p,
    const at::Tensor& input_t,
    const at::Tensor& weight_p,
    const at::Tensor& weight_t,
    const at::Tensor& /*bias_p*/,
    const at::Tensor& bias_t,
    at::SymIntArrayRef stride,
    at::SymIntArrayRef padding,
    at::SymIntArrayRef dilation,
    bool transposed,
    at::SymIntArrayRef output_padding,
    const c10::SymInt& groups,
    bool benchmark,
    bool deterministic,
    bool cudnn_enabled,
    bool allow_tf32) {
  const auto convolve = [&](const Tensor& input, const Tensor& weight, const OptionalTensor& bias) {
    return at::_convolution_symint(
        input,
        weight,
        bias,
        stride,
        padding,
        dilation,
        transposed,
        output_padding,
        groups,
        benchmark,
        deterministic,
        cudnn_enabled,
        allow_tf32);
  };
  return tangent_of_convolution(input_p, input_t, weight_p, weight_t, bias_t, convolve);
}

at::Tensor convolution_backward_jvp_grad_bias(
    const at::Tensor& grad_out_t, const at::Tensor& grad_bias) {
  if (!grad_bias.defined()) {
    return Tensor();
  }
  TORCH_CHECK(
      grad_out_t.dim() >= 3 && grad_out_t.dim() <= 5,
      "convolution_backward: expected a gradient of 3 to 5 dimensions, got ",
      grad_out_t.dim());
  // The gradient of the bias is the sum over all dimensions but the channels.
  return grad_out_t.transpose(0, 1).flatten(1).sum(1);
}

std::tuple<at::Tensor, at::Tensor> _cudnn_convolution_backward(
    const at::Tensor& self,
    const at::Tensor& grad_output,
    const at::Tensor& weight,
    at::SymIntArrayRef padding,
    at::SymIntArrayRef output_padding,
    at::SymIntArrayRef stride,
    at::SymIntArrayRef dilation,
    bool transposed,
    c10::SymInt groups,
    std::array<bool, 2> output_mask) {
  if (!grad_output.defined()) {
    return {};
  }
  // The operator has no bias.
  auto gradients = at::convolution_backward_symint(
      grad_output,
      self,
      weight,
      /*bias_sizes=*/std::nullopt,
      stride,
      padding,
      dilation,
      transposed,
      output_padding,
      std::move(groups),
      {output_mask[0], output_mask[1], false});
  return {std::get<0>(gradients), std::get<1>(gradients)};
}

at::Tensor max_pool_double_backward(
    const at::Tensor& grad, const at::Tensor& indices, int64_t dim) {
  TORCH_CHECK(
      indices.dim() >= dim,
      "max_pool: expected indices of at least ",
      dim,
      " dimensions, got ",
      indices.dim());
  if (indices.sym_numel() == 0) { // the pooled dimensions of `grad` may be empty, too
    return at::empty_symint(indices.sym_sizes(), grad.options());
  }
  // The indices count within the pooled dimensions.
  const Tensor places = indices.flatten(-dim);
  return grad.flatten(-dim).gather(-1, places).reshape_symint(indices.sym_sizes());
}

at::Tensor error_for_max_pool2d_double_backward() {
  TORCH_CHECK(
      false,
      "max_pool2d: second derivatives need the indices of the maxima; ",
      "call it with return_indices=True");
}

} // namespace derivatives
} // namespace v1
} // namespace torchext
