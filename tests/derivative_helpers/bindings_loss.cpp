// SPDX-License-Identifier: BSD-3-Clause
//
// The derivative helpers of losses as operators for the tests.
#include <torch/library.h>

#include <torchext/derivatives/loss-inl.h>

namespace derivatives = torchext::derivatives;

namespace {

void define_cross_entropy(torch::Library& m) {
  m.def("binary_cross_entropy_target_backward", &derivatives::binary_cross_entropy_target_backward);
  m.def(
      "binary_cross_entropy_with_logits_backward",
      &derivatives::binary_cross_entropy_with_logits_backward);
  m.def(
      "binary_cross_entropy_with_logits_target_backward",
      &derivatives::binary_cross_entropy_with_logits_target_backward);
  m.def("binary_cross_entropy_double_backward", &derivatives::binary_cross_entropy_double_backward);
  m.def(
      "binary_cross_entropy_double_backward_target",
      &derivatives::binary_cross_entropy_double_backward_target);
  m.def(
      "binary_cross_entropy_double_backward_grad_output",
      &derivatives::binary_cross_entropy_double_backward_grad_output);
}

} // namespace

TORCH_LIBRARY_FRAGMENT(derivative_helpers, m) {
  m.def("apply_loss_reduction", &derivatives::apply_loss_reduction);
  define_cross_entropy(m);
  m.def("mse_loss_double_backward", &derivatives::mse_loss_double_backward);
  m.def("smooth_l1_loss_double_backward", &derivatives::smooth_l1_loss_double_backward);
  m.def("huber_loss_double_backward", &derivatives::huber_loss_double_backward);
  m.def(
      "huber_loss_double_backward_grad_output",
      &derivatives::huber_loss_double_backward_grad_output);
  m.def("soft_margin_loss_double_backward", &derivatives::soft_margin_loss_double_backward);
  m.def(
      "soft_margin_loss_double_backward_grad_output",
      &derivatives::soft_margin_loss_double_backward_grad_output);
  m.def("_cudnn_ctc_loss_backward", &derivatives::_cudnn_ctc_loss_backward);
  m.def("_miopen_ctc_loss_backward", &derivatives::_miopen_ctc_loss_backward);
}
