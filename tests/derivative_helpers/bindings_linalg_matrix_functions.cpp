// SPDX-License-Identifier: BSD-3-Clause
//
// The helpers of derivatives/linalg_matrix_functions.h as operators, for their tests.
#include "bindings.h"

#include <torch/library.h>

#include <torchext/derivatives/linalg_matrix_functions-inl.h>

namespace {

namespace derivatives = torchext::derivatives;
using at::Tensor;
using MaybeTensor = std::optional<Tensor>;

} // namespace

TORCH_LIBRARY_FRAGMENT(derivative_helpers, m) {
  m.def("linalg_matrix_exp_differential", &derivatives::linalg_matrix_exp_differential);
  m.def("linalg_polar_jvp", &derivatives::linalg_polar_jvp);
  m.def("linalg_matrix_sqrth_differential", &derivatives::linalg_matrix_sqrth_differential);
  m.def(
      "linalg_polar_backward",
      [](const MaybeTensor& grad_U,
         const MaybeTensor& grad_H,
         const Tensor& A,
         const Tensor& U,
         const Tensor& H) {
        return derivatives::linalg_polar_backward(
            or_undefined(grad_U), or_undefined(grad_H), A, U, H);
      });
}
