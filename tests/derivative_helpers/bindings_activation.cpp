// SPDX-License-Identifier: BSD-3-Clause
//
// The derivative helpers of activation functions as operators for the tests.
#include <torch/library.h>

#include <torchext/derivatives/activation-inl.h>

namespace derivatives = torchext::derivatives;

TORCH_LIBRARY_FRAGMENT(derivative_helpers, m) {
  m.def(
      "infinitely_differentiable_silu_backward",
      &derivatives::infinitely_differentiable_silu_backward);
  m.def(
      "infinitely_differentiable_mish_backward",
      &derivatives::infinitely_differentiable_mish_backward);
  m.def("gelu_double_backward", &derivatives::gelu_double_backward);
  m.def("elu_double_backward", &derivatives::elu_double_backward);
  m.def("log_sigmoid_double_backward", &derivatives::log_sigmoid_double_backward);
  m.def("softplus_double_backward", &derivatives::softplus_double_backward);
  m.def("softmax_double_backward", &derivatives::softmax_double_backward);
  m.def("glu_double_backward", &derivatives::glu_double_backward);
  m.def("glu_double_backward_grad_output", &derivatives::glu_double_backward_grad_output);
}
