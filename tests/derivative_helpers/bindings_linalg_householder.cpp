// SPDX-License-Identifier: BSD-3-Clause
//
// The helpers of derivatives/linalg_householder.h as operators, for their tests.
#include "bindings.h"

#include <torch/library.h>

#include <torchext/derivatives/linalg_householder-inl.h>

namespace {

namespace derivatives = torchext::derivatives;
using at::Tensor;
using MaybeTensor = std::optional<Tensor>;

} // namespace

TORCH_LIBRARY_FRAGMENT(derivative_helpers, m) {
  m.def("householder_product_jvp", &derivatives::householder_product_jvp);
  m.def(
      "householder_product_backward",
      [](const MaybeTensor& grad,
         const Tensor& result,
         const Tensor& input,
         const Tensor& tau,
         bool flip_order) {
        return derivatives::householder_product_backward(
            or_undefined(grad), result, input, tau, flip_order);
      });
  m.def(
      "ormqr_backward",
      [](const MaybeTensor& grad,
         const Tensor& result,
         const Tensor& self,
         const Tensor& tau,
         const Tensor& other,
         bool left,
         bool transpose,
         std::array<bool, 3> mask) {
        return derivatives::ormqr_backward(
            or_undefined(grad), result, self, tau, other, left, transpose, mask);
      });
}
