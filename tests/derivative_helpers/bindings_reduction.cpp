// SPDX-License-Identifier: BSD-3-Clause

#include <torchext/derivatives/reduction-inl.h>

#include "bindings.h"

#include <torch/library.h>

namespace derivatives = torchext::derivatives;

namespace {

using OptionalTensor = std::optional<at::Tensor>;
using OptionalScalar = std::optional<c10::Scalar>;

at::Tensor unsqueeze_to_all(const at::Tensor& self, c10::SymIntArrayRef sizes) {
  return derivatives::unsqueeze_to(self, sizes);
}

at::Tensor unsqueeze_to_dim(const at::Tensor& self, int64_t dim, c10::SymIntArrayRef sizes) {
  return derivatives::unsqueeze_to(self, dim, sizes);
}

at::Tensor unsqueeze_to_dims(
    const at::Tensor& self, at::IntArrayRef dim, c10::SymIntArrayRef sizes) {
  return derivatives::unsqueeze_to(self, dim, sizes);
}

at::Tensor sum_backward(
    const at::Tensor& grad, c10::SymIntArrayRef sizes, at::OptionalIntArrayRef dims, bool keepdim) {
  return derivatives::sum_backward(grad, sizes, dims, keepdim);
}

at::Tensor sum_backward_dims(
    const at::Tensor& grad, c10::SymIntArrayRef sizes, at::IntArrayRef dims, bool keepdim) {
  return derivatives::sum_backward(grad, sizes, dims, keepdim);
}

at::Tensor mean_backward(
    const at::Tensor& grad,
    c10::SymIntArrayRef sizes,
    at::OptionalIntArrayRef dim,
    c10::SymInt numel,
    bool keepdim) {
  return derivatives::mean_backward(grad, sizes, dim, numel, keepdim);
}

at::Tensor prod_backward(
    const at::Tensor& grad, const at::Tensor& input, const at::Tensor& result) {
  return derivatives::prod_backward(grad, input, result);
}

at::Tensor prod_backward_dim(
    const at::Tensor& grad,
    const at::Tensor& input,
    const at::Tensor& result,
    int64_t dim,
    bool keepdim) {
  return derivatives::prod_backward(grad, input, result, dim, keepdim);
}

at::Tensor var_mean_backward(
    const OptionalTensor& gvar,
    const OptionalTensor& gmean,
    const at::Tensor& self,
    at::OptionalIntArrayRef dim,
    const OptionalScalar& correction,
    bool keepdim) {
  return derivatives::var_mean_backward(
      or_undefined(gvar), or_undefined(gmean), self, dim, correction, keepdim);
}

at::Tensor std_mean_backward(
    const OptionalTensor& gstd,
    const OptionalTensor& gmean,
    const at::Tensor& self,
    const at::Tensor& std,
    at::OptionalIntArrayRef dim,
    const OptionalScalar& correction,
    bool keepdim) {
  return derivatives::std_mean_backward(
      or_undefined(gstd), or_undefined(gmean), self, std, dim, correction, keepdim);
}

at::Tensor aminmax_backward(
    const at::Tensor& self,
    std::optional<int64_t> dim,
    bool keepdim,
    const OptionalTensor& grad_min,
    const OptionalTensor& grad_max,
    const at::Tensor& min,
    const at::Tensor& max) {
  return derivatives::aminmax_backward(
      self, dim, keepdim, or_undefined(grad_min), or_undefined(grad_max), min, max);
}

} // namespace

TORCH_LIBRARY_FRAGMENT(derivative_helpers, m) {
  m.def("restore_reduced_dims", &derivatives::restore_reduced_dims);
  m.def("unsqueeze_to", &unsqueeze_to_all);
  m.def("unsqueeze_to.dim", &unsqueeze_to_dim);
  m.def("unsqueeze_to.dims", &unsqueeze_to_dims);
  m.def("sum_backward", &sum_backward);
  m.def("sum_backward.dims", &sum_backward_dims);
  m.def("nansum_backward", &derivatives::nansum_backward);
  m.def("mean_backward", &mean_backward);
  m.def("prod_backward", &prod_backward);
  m.def("prod_backward.dim", &prod_backward_dim);
  m.def("var_backward", &derivatives::var_backward);
  m.def("std_backward", &derivatives::std_backward);
  m.def("var_mean_backward", &var_mean_backward);
  m.def("std_mean_backward", &std_mean_backward);
  m.def("logsumexp_backward", &derivatives::logsumexp_backward);
  m.def("logsumexp_jvp", &derivatives::logsumexp_jvp);
  m.def("safe_logsumexp_jvp", &derivatives::safe_logsumexp_jvp);
  m.def("gather_with_keepdimed_indices", &derivatives::gather_with_keepdimed_indices);
  m.def("scale_grad_by_count", &derivatives::scale_grad_by_count);
  m.def("amaxamin_jvp", &derivatives::amaxamin_jvp);
  m.def("aminmax_backward", &aminmax_backward);
  m.def("aminmax_jvp", &derivatives::aminmax_jvp);
  m.def("evenly_distribute_backward", &derivatives::evenly_distribute_backward);
  m.def("evenly_read_jvp", &derivatives::evenly_read_jvp);
}
