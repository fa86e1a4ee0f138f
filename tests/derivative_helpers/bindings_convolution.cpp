// SPDX-License-Identifier: BSD-3-Clause
//
// The derivative helpers of convolution and max pooling as operators for the tests.
#include "bindings.h"

#include <torch/library.h>

#include <torchext/derivatives/convolution-inl.h>

namespace derivatives = torchext::derivatives;

namespace {

using at::Tensor;
using Given = std::optional<at::Tensor>;
using Sizes = c10::SymIntArrayRef;

Tensor convolution_jvp(
    Tensor input_p,
    Given input_t,
    Tensor weight_p,
    Given weight_t,
    Given bias_p,
    Given bias_t,
    Sizes stride,
    Sizes padding,
    Sizes dilation,
    bool transposed,
    Sizes output_padding,
    c10::SymInt groups) {
  return derivatives::convolution_jvp(
      input_p,
      or_undefined(input_t),
      weight_p,
      or_undefined(weight_t),
      or_undefined(bias_p),
      or_undefined(bias_t),
      stride,
      padding,
      dilation,
      transposed,
      output_padding,
      groups);
}

Tensor _convolution_jvp(
    Tensor input_p,
    Given input_t,
    Tensor weight_p,
    Given weight_t,
    Given bias_p,
    Given bias_t,
    Sizes stride,
    Sizes padding,
    Sizes dilation,
    bool transposed,
    Sizes output_padding,
    c10::SymInt groups) {
  return derivatives::_convolution_jvp(
      input_p,
      or_undefined(input_t),
      weight_p,
      or_undefined(weight_t),
      or_undefined(bias_p),
      or_undefined(bias_t),
      stride,
      padding,
      dilation,
      transposed,
      output_padding,
      groups,
      /*benchmark=*/false,
      /*deterministic=*/false,
      /*cudnn_enabled=*/true,
      /*allow_tf32=*/true);
}

} // namespace

TORCH_LIBRARY_FRAGMENT(derivative_helpers, m) {
  m.def("convolution_jvp", &convolution_jvp);
  m.def("_convolution_jvp", &_convolution_jvp);
  m.def(
      "convolution_backward_jvp_grad_bias(Tensor grad_out_t, Tensor? grad_bias) -> Tensor",
      [](Tensor grad_out_t, Given grad_bias) {
        return derivatives::convolution_backward_jvp_grad_bias(grad_out_t, or_undefined(grad_bias));
      });
  m.def(
      "_cudnn_convolution_backward(Tensor self, Tensor? grad_output, Tensor weight, "
      "SymInt[] padding, SymInt[] output_padding, SymInt[] stride, SymInt[] dilation, "
      "bool transposed, SymInt groups, bool[2] mask) -> (Tensor, Tensor)",
      [](Tensor self,
         Given grad_output,
         Tensor weight,
         Sizes padding,
         Sizes output_padding,
         Sizes stride,
         Sizes dilation,
         bool transposed,
         c10::SymInt groups,
         std::array<bool, 2> mask) {
        return derivatives::_cudnn_convolution_backward(
            self,
            or_undefined(grad_output),
            weight,
            padding,
            output_padding,
            stride,
            dilation,
            transposed,
            groups,
            mask);
      });
  m.def("max_pool_double_backward", &derivatives::max_pool_double_backward);
  m.def("error_for_max_pool2d_double_backward", &derivatives::error_for_max_pool2d_double_backward);
}
