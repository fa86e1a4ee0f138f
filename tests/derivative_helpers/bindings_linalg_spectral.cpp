// SPDX-License-Identifier: BSD-3-Clause
//
// The helpers of derivatives/linalg_spectral.h as operators, for their tests.
#include "bindings.h"

#include <torch/library.h>

#include <torchext/derivatives/linalg_spectral-inl.h>

namespace {

namespace derivatives = torchext::derivatives;
using at::Tensor;
using MaybeTensor = std::optional<Tensor>;

} // namespace

TORCH_LIBRARY_FRAGMENT(derivative_helpers, m) {
  m.def("linalg_eig_jvp", &derivatives::linalg_eig_jvp);
  m.def("linalg_svd_jvp", &derivatives::linalg_svd_jvp);
  m.def(
      "linalg_eig_backward",
      [](const MaybeTensor& gL,
         const MaybeTensor& gV,
         const Tensor& L,
         const Tensor& V,
         bool is_hermitian,
         bool symeig_eigenvectors) {
        return derivatives::linalg_eig_backward(
            or_undefined(gL), or_undefined(gV), L, V, is_hermitian, symeig_eigenvectors);
      });
  m.def(
      "svd_backward",
      [](const MaybeTensor& gU,
         const MaybeTensor& gS,
         const MaybeTensor& gVh,
         const Tensor& U,
         const Tensor& S,
         const Tensor& Vh) {
        return derivatives::svd_backward(
            or_undefined(gU), or_undefined(gS), or_undefined(gVh), U, S, Vh);
      });
}
