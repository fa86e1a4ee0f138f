// SPDX-License-Identifier: BSD-3-Clause

#include <torchext/derivatives/norm-inl.h>

#include <torch/library.h>

namespace derivatives = torchext::derivatives;

namespace {

using OptionalScalar = std::optional<c10::Scalar>;

at::Tensor norm_backward(
    const at::Tensor& grad,
    const at::Tensor& self,
    const OptionalScalar& p,
    const at::Tensor& norm) {
  return derivatives::norm_backward(grad, self, p, norm);
}

at::Tensor norm_backward_dim(
    const at::Tensor& grad,
    const at::Tensor& self,
    const OptionalScalar& p,
    const at::Tensor& norm,
    at::IntArrayRef dim,
    bool keepdim) {
  return derivatives::norm_backward(grad, self, p, norm, dim, keepdim);
}

at::Tensor norm_jvp(
    const at::Tensor& self_p,
    const at::Tensor& self_t,
    const OptionalScalar& p,
    const at::Tensor& norm) {
  return derivatives::norm_jvp(self_p, self_t, p, norm);
}

at::Tensor norm_jvp_dim(
    const at::Tensor& self_p,
    const at::Tensor& self_t,
    const OptionalScalar& p,
    const at::Tensor& norm,
    at::IntArrayRef dim,
    bool keepdim) {
  return derivatives::norm_jvp(self_p, self_t, p, norm, dim, keepdim);
}

} // namespace

TORCH_LIBRARY_FRAGMENT(derivative_helpers, m) {
  m.def("norm_backward", &norm_backward);
  m.def("norm_backward.dim", &norm_backward_dim);
  m.def("norm_jvp", &norm_jvp);
  m.def("norm_jvp.dim", &norm_jvp_dim);
  m.def("linalg_vector_norm_backward", &derivatives::linalg_vector_norm_backward);
  m.def("linalg_vector_norm_jvp", &derivatives::linalg_vector_norm_jvp);
  m.def("renorm_backward", &derivatives::renorm_backward);
  m.def("renorm_jvp", &derivatives::renorm_jvp);
}
