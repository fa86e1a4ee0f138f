// SPDX-License-Identifier: BSD-3-Clause
//
// The helpers of derivatives/linalg_factorizations.h as operators, for their tests.
#include "bindings.h"

#include <torch/library.h>

#include <torchext/derivatives/linalg_factorizations-inl.h>

namespace {

namespace derivatives = torchext::derivatives;
using at::Tensor;
using MaybeTensor = std::optional<Tensor>;

} // namespace

TORCH_LIBRARY_FRAGMENT(derivative_helpers, m) {
  m.def("cholesky_backward", &derivatives::cholesky_backward);
  m.def("cholesky_jvp", &derivatives::cholesky_jvp);
  m.def("cholesky_inverse_jvp", &derivatives::cholesky_inverse_jvp);
  m.def("cholesky_inverse_backward", &derivatives::cholesky_inverse_backward);
  m.def("lu_factor_ex_backward", &derivatives::lu_factor_ex_backward);
  m.def("lu_factor_ex_jvp", &derivatives::lu_factor_ex_jvp);
  m.def("linalg_lu_jvp", &derivatives::linalg_lu_jvp);
  m.def("linalg_qr_jvp", &derivatives::linalg_qr_jvp);
  m.def(
      "lu_unpack_backward",
      [](const MaybeTensor& L_grad, const MaybeTensor& U_grad, c10::SymInt m, c10::SymInt n) {
        return derivatives::lu_unpack_backward(or_undefined(L_grad), or_undefined(U_grad), m, n);
      });
  m.def(
      "linalg_lu_backward",
      [](const MaybeTensor& L_grad,
         const MaybeTensor& U_grad,
         const Tensor& P,
         const Tensor& L,
         const Tensor& U,
         bool pivot) {
        return derivatives::linalg_lu_backward(
            or_undefined(L_grad), or_undefined(U_grad), P, L, U, pivot);
      });
  m.def(
      "linalg_qr_backward",
      [](const MaybeTensor& gQ,
         const MaybeTensor& gR,
         const Tensor& Q,
         const Tensor& R,
         std::string_view mode) {
        return derivatives::linalg_qr_backward(or_undefined(gQ), or_undefined(gR), Q, R, mode);
      });
}
