// SPDX-License-Identifier: BSD-3-Clause
//
// The functions of torchext/derivatives/dropout.h as operators.
#include <torch/library.h>
#include <torchext/derivatives/dropout-inl.h>

TORCH_LIBRARY_FRAGMENT(derivative_helpers, m) {
  namespace derivatives = torchext::derivatives;
  m.def("_fused_dropout_backward", &derivatives::_fused_dropout_backward);
  m.def(
      "infinitely_differentiable_native_dropout_backward",
      &derivatives::infinitely_differentiable_native_dropout_backward);
  m.def("native_dropout_double_backward", &derivatives::native_dropout_double_backward);
}
