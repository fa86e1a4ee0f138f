// SPDX-License-Identifier: BSD-3-Clause

#include <torchext/derivatives/distance-inl.h>

#include <torch/library.h>

namespace derivatives = torchext::derivatives;

namespace {

using OptionalTensor = std::optional<at::Tensor>;

std::tuple<at::Tensor, at::Tensor> euclidean_dist_backward(
    const OptionalTensor& grad, const at::Tensor& x1, const at::Tensor& x2, const at::Tensor& res) {
  return derivatives::_euclidean_dist_backward(grad.value_or(at::Tensor()), x1, x2, res);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> cdist_backward_backward(
    const OptionalTensor& grad,
    const at::Tensor& grad_output,
    const at::Tensor& x1,
    const at::Tensor& x2,
    double p,
    const at::Tensor& cdist,
    std::array<bool, 4> mask) {
  return derivatives::_cdist_backward_backward(
      grad.value_or(at::Tensor()), grad_output, x1, x2, p, cdist, mask);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> pdist_backward_backward(
    const OptionalTensor& grad,
    const at::Tensor& grad_output,
    const at::Tensor& self,
    double p,
    const at::Tensor& pdist,
    std::array<bool, 3> mask) {
  return derivatives::_pdist_backward_backward(
      grad.value_or(at::Tensor()), grad_output, self, p, pdist, mask);
}

} // namespace

TORCH_LIBRARY_FRAGMENT(derivative_helpers, m) {
  m.def("_euclidean_dist_backward", &euclidean_dist_backward);
  m.def("_cdist_backward_backward", &cdist_backward_backward);
  m.def("_pdist_backward_backward", &pdist_backward_backward);
}
