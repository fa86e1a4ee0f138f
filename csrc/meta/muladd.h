// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/native/TypeProperties.h>
#include <torchext/elementwise.h>

#include <utility>

namespace myns::native {

/// The factors in the dtype of a * b + c. They differ from `a` and `b` only where `c` decides on
/// the dtype, as a float beside integers does: then both are converted first.
inline std::pair<at::Tensor, at::Tensor> muladd_factors(
    const at::Tensor& a,
    const at::Tensor& b,
    const at::Scalar& c) {
  const at::ScalarType product = at::native::result_type({a, b});
  const at::ScalarType dtype = torchext::promote_with_scalar(product, c);
  return dtype == product ? std::pair(a, b) : std::pair(a.to(dtype), b.to(dtype));
}

} // namespace myns::native
