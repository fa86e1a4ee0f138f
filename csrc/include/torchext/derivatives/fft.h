// SPDX-License-Identifier: BSD-3-Clause
//
// Derivatives of the Fourier transforms between real and complex numbers.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>
#include <c10/core/SymInt.h>
#include <c10/util/ArrayRef.h>

namespace torchext {
inline namespace v1 {
namespace derivatives {

/// Gradient of the real input of `_fft_r2c`, of size `last_dim_size` in `dim.back()`.
at::Tensor fft_r2c_backward(
    const at::Tensor& grad,
    at::IntArrayRef dim,
    int64_t normalization,
    bool onesided,
    const c10::SymInt& last_dim_size);

/// Gradient of the one-sided complex input of `_fft_c2r`.
at::Tensor fft_c2r_backward(const at::Tensor& grad, at::IntArrayRef dim, int64_t normalization);

} // namespace derivatives
} // namespace v1
} // namespace torchext
