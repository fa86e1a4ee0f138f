// SPDX-License-Identifier: BSD-3-Clause
//
// The helpers of derivatives/fft.h as operators, for their tests.
#include <torch/library.h>

#include <torchext/derivatives/fft-inl.h>

namespace {

namespace derivatives = torchext::derivatives;

} // namespace

TORCH_LIBRARY_FRAGMENT(derivative_helpers, m) {
  m.def(
      "fft_r2c_backward",
      [](const at::Tensor& grad,
         at::IntArrayRef dim,
         int64_t normalization,
         bool onesided,
         c10::SymInt last_dim_size) {
        return derivatives::fft_r2c_backward(grad, dim, normalization, onesided, last_dim_size);
      });
  m.def("fft_c2r_backward", &derivatives::fft_c2r_backward);
}
