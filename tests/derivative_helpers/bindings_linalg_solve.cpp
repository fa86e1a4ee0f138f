// SPDX-License-Identifier: BSD-3-Clause
//
// The helpers of derivatives/linalg_solve.h as operators, for their tests.
#include "bindings.h"

#include <torch/library.h>

#include <torchext/derivatives/linalg_solve-inl.h>

namespace {

namespace derivatives = torchext::derivatives;
using at::Tensor;
using MaybeTensor = std::optional<Tensor>;

} // namespace

TORCH_LIBRARY_FRAGMENT(derivative_helpers, m) {
  m.def("cholesky_solve_jvp", &derivatives::cholesky_solve_jvp);
  m.def("linalg_lu_solve_LU", &derivatives::linalg_lu_solve_LU);
  m.def("linalg_lu_solve_jvp", &derivatives::linalg_lu_solve_jvp);
  m.def("linalg_solve_jvp", &derivatives::linalg_solve_jvp);
  m.def("triangular_solve_jvp", &derivatives::triangular_solve_jvp);
  m.def("linalg_solve_triangular_forward_AD", &derivatives::linalg_solve_triangular_forward_AD);
  m.def(
      "cholesky_solve_backward",
      [](const MaybeTensor& grad,
         const Tensor& self,
         const Tensor& input2,
         const Tensor& result,
         bool upper,
         std::array<bool, 2> mask) {
        return derivatives::cholesky_solve_backward(
            or_undefined(grad), self, input2, result, upper, mask);
      });
  m.def(
      "linalg_solve_backward",
      [](const MaybeTensor& gX,
         const Tensor& X,
         const Tensor& A,
         const Tensor& LU,
         const Tensor& pivots,
         bool left,
         bool B_requires_grad) {
        return derivatives::linalg_solve_backward(
            or_undefined(gX), X, A, LU, pivots, left, B_requires_grad);
      });
  m.def(
      "triangular_solve_backward",
      [](const MaybeTensor& grad_x,
         const MaybeTensor& grad_m,
         const Tensor& b,
         const Tensor& a,
         const Tensor& x,
         bool upper,
         bool transpose,
         bool unitriangular,
         std::array<bool, 2> mask) {
        return derivatives::triangular_solve_backward(
            or_undefined(grad_x),
            or_undefined(grad_m),
            b,
            a,
            x,
            upper,
            transpose,
            unitriangular,
            mask);
      });
  m.def(
      "linalg_solve_triangular_backward",
      [](const MaybeTensor& grad,
         const Tensor& A,
         const Tensor& X,
         bool upper,
         bool left,
         bool unitriangular,
         std::array<bool, 2> mask) {
        return derivatives::linalg_solve_triangular_backward(
            or_undefined(grad), A, X, upper, left, unitriangular, mask);
      });
}
