// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/ScalarOps.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/TypeProperties.h>
#include <c10/util/TypeCast.h>
#include <torchext/elementwise.h>

namespace myns::native {

/// Whether `c` decides on the dtype of a * b + c, as a float beside integers does. The product has
/// another dtype then, so that there is no single pass.
inline bool is_promoted_by_addend(const at::Tensor& a, const at::Tensor& b, const at::Scalar& c) {
  const at::ScalarType product = at::native::result_type({a, b});
  return torchext::promote_with_scalar(product, c) != product;
}

/// `c` in the arithmetic type, as a 0-dim tensor would be converted: 1e40 is infinite in float32.
template <typename Acc>
Acc converted_addend(const at::Scalar& c) {
  if (c.isComplex()) {
    return c10::convert<Acc>(c.toComplexDouble());
  }
  if (c.type() == at::kUInt64) {
    return c10::convert<Acc>(c.toUInt64());
  }
  return c.isFloatingPoint() ? c10::convert<Acc>(c.toDouble()) : c10::convert<Acc>(c.toLong());
}

} // namespace myns::native
