// SPDX-License-Identifier: BSD-3-Clause
//
// The derivative helpers of recurrent networks as operators for the tests.
#include <torch/library.h>

#include <torchext/derivatives/rnn-inl.h>

namespace derivatives = torchext::derivatives;

TORCH_LIBRARY_FRAGMENT(derivative_helpers, m) {
  m.def(
      "mkldnn_rnn_layer_differentiable_backward",
      &derivatives::mkldnn_rnn_layer_differentiable_backward);
}
