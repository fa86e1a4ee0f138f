// SPDX-License-Identifier: BSD-3-Clause
//
// The helpers of derivatives/linalg_determinant.h as operators, for their tests.
#include "bindings.h"

#include <torch/library.h>

#include <torchext/derivatives/linalg_determinant-inl.h>

namespace {

namespace derivatives = torchext::derivatives;
using at::Tensor;
using MaybeTensor = std::optional<Tensor>;

} // namespace

TORCH_LIBRARY_FRAGMENT(derivative_helpers, m) {
  m.def("linalg_det_backward", &derivatives::linalg_det_backward);
  m.def("linalg_det_jvp", &derivatives::linalg_det_jvp);
  m.def("slogdet_jvp", &derivatives::slogdet_jvp);
  m.def(
      "slogdet_backward",
      [](const MaybeTensor& grad_sign,
         const MaybeTensor& grad_logabsdet,
         const Tensor& A,
         const Tensor& sign,
         const Tensor& LU,
         const Tensor& pivots) {
        return derivatives::slogdet_backward(
            or_undefined(grad_sign), or_undefined(grad_logabsdet), A, sign, LU, pivots);
      });
}
