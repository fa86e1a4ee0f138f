// SPDX-License-Identifier: BSD-3-Clause
//
// The helpers of derivatives/linalg_spectral.h as operators, for their tests.
#include <torch/library.h>

#include <torchext/derivatives/linalg_spectral-inl.h>

namespace {

namespace derivatives = torchext::derivatives;
using at::Tensor;
using MaybeTensor = std::optional<Tensor>;

Tensor given(const MaybeTensor& tensor) {
  return tensor.value_or(Tensor());
}

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
            given(gL), given(gV), L, V, is_hermitian, symeig_eigenvectors);
      });
  m.def(
      "svd_backward",
      [](const MaybeTensor& gU,
         const MaybeTensor& gS,
         const MaybeTensor& gVh,
         const Tensor& U,
         const Tensor& S,
         const Tensor& Vh) {
        return derivatives::svd_backward(given(gU), given(gS), given(gVh), U, S, Vh);
      });
}
