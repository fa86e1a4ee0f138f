// SPDX-License-Identifier: BSD-3-Clause
//
// The helpers of derivatives/linalg_lstsq.h as operators, for their tests.
#include "bindings.h"

#include <torch/library.h>

#include <torchext/derivatives/linalg_lstsq-inl.h>

namespace {

namespace derivatives = torchext::derivatives;
using at::Tensor;
using MaybeTensor = std::optional<Tensor>;

} // namespace

TORCH_LIBRARY_FRAGMENT(derivative_helpers, m) {
  m.def("pinv_jvp", &derivatives::pinv_jvp);
  m.def("pinv_backward", &derivatives::pinv_backward);
  m.def("linalg_lstsq_residuals_jvp", &derivatives::linalg_lstsq_residuals_jvp);
  m.def("linalg_lstsq_solution_jvp", &derivatives::linalg_lstsq_solution_jvp);
  m.def(
      "linalg_lstsq_backward",
      [](const MaybeTensor& gX,
         const MaybeTensor& gL,
         const Tensor& A,
         const Tensor& B,
         const Tensor& X,
         std::array<bool, 2> mask) {
        return derivatives::linalg_lstsq_backward(
            or_undefined(gX), or_undefined(gL), A, B, X, mask);
      });
}
