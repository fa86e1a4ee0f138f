// SPDX-License-Identifier: BSD-3-Clause
//
// Definitions of fft.h.
#pragma once

#include <torchext/derivatives/fft.h>

#include <vector>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

namespace torchext {
inline namespace v1 {
namespace derivatives {

// The adjoint of a transform is the transform with the opposite sign in the exponent and the same
// factor. A one-sided result lacks frequencies: they have the gradient zero.
at::Tensor fft_r2c_backward(
    const at::Tensor& grad,
    at::IntArrayRef dim,
    int64_t normalization,
    bool onesided,
    const c10::SymInt& last_dim_size) {
  if (!grad.defined()) {
    return {};
  }
  at::Tensor full = grad;
  if (onesided) {
    // Padding is given from the last dimension on, and behind the entries second.
    const int64_t halved = dim.back();
    std::vector<c10::SymInt> padding(2 * (grad.dim() - halved), c10::SymInt(0));
    padding.back() = last_dim_size - grad.sym_size(halved);
    full = at::constant_pad_nd_symint(grad, padding);
  }
  return at::real(at::_fft_c2c(full, dim, normalization, /*forward=*/false));
}

// Each frequency but the zeroth (and the middle one of an even size) stands for its conjugate as
// well.
at::Tensor fft_c2r_backward(const at::Tensor& grad, at::IntArrayRef dim, int64_t normalization) {
  if (!grad.defined()) {
    return {};
  }
  const int64_t last = dim.back();
  const at::Tensor once = at::_fft_r2c(grad, dim, normalization, /*onesided=*/true);
  const c10::SymInt paired = grad.sym_size(last) - once.sym_size(last);
  if (paired <= 0) {
    return once;
  }
  const c10::SymInt unpaired = once.sym_size(last) - 1 - paired;
  std::vector<at::Tensor> parts = {
      once.narrow_symint(last, 0, 1), once.narrow_symint(last, 1, paired) * 2};
  if (unpaired > 0) {
    parts.push_back(once.narrow_symint(last, 1 + paired, unpaired));
  }
  return at::cat(parts, last);
}

} // namespace derivatives
} // namespace v1
} // namespace torchext
