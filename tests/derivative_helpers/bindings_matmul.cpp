// SPDX-License-Identifier: BSD-3-Clause

#include <torchext/derivatives/matmul-inl.h>

#include <torch/library.h>

namespace derivatives = torchext::derivatives;

namespace {

using OptionalTensor = std::optional<at::Tensor>;
using ThreeTensors = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

ThreeTensors linear_double_backward(
    const c10::List<OptionalTensor>& grads,
    const at::Tensor& self,
    const at::Tensor& grad_output,
    const at::Tensor& weight) {
  std::vector<at::Tensor> defined_or_not;
  for (const OptionalTensor& grad : grads) {
    defined_or_not.push_back(grad.value_or(at::Tensor()));
  }
  return derivatives::linear_double_backward(defined_or_not, self, grad_output, weight);
}

OptionalTensor wrap_opt_if(const at::Tensor& t, bool condition) {
  return derivatives::wrap_opt_if(t, condition);
}

// The sizes, strides and layout of the factor that gets the gradient are read off `of`.
at::Tensor mm_mat1_backward(
    const at::Tensor& grad,
    const at::Tensor& mat2,
    const at::Tensor& of,
    const c10::Scalar& alpha) {
  const auto strides = of.layout() == c10::kStrided ? of.sym_strides() : c10::SymIntArrayRef();
  return derivatives::mm_mat1_backward(grad, mat2, of.sym_sizes(), strides, of.layout(), alpha);
}

at::Tensor mm_mat2_backward(
    const at::Tensor& grad,
    const at::Tensor& mat1,
    const at::Tensor& of,
    const c10::Scalar& alpha) {
  const auto strides = of.layout() == c10::kStrided ? of.sym_strides() : c10::SymIntArrayRef();
  return derivatives::mm_mat2_backward(grad, mat1, of.sym_sizes(), strides, of.layout(), alpha);
}

at::Tensor grouped_mm_mat1_backward(
    const at::Tensor& grad,
    const at::Tensor& mat2,
    const at::Tensor& of,
    const OptionalTensor& offs,
    const c10::Scalar& alpha) {
  return derivatives::_grouped_mm_mat1_backward(
      grad, mat2, of.sym_sizes(), of.sym_strides(), of.layout(), offs, alpha);
}

at::Tensor grouped_mm_mat2_backward(
    const at::Tensor& grad,
    const at::Tensor& mat1,
    const at::Tensor& of,
    const OptionalTensor& offs,
    const c10::Scalar& alpha) {
  return derivatives::_grouped_mm_mat2_backward(
      grad, mat1, of.sym_sizes(), of.sym_strides(), of.layout(), offs, alpha);
}

ThreeTensors sparse_sampled_addmm_backward(
    const OptionalTensor& grad,
    const at::Tensor& self,
    const OptionalTensor& mat1,
    const OptionalTensor& mat2,
    const c10::Scalar& alpha,
    const c10::Scalar& beta,
    std::array<bool, 3> mask) {
  return derivatives::sparse_sampled_addmm_backward(
      grad.value_or(at::Tensor()), self, mat1, mat2, alpha, beta, mask);
}

ThreeTensors trilinear_backward(
    const OptionalTensor& grad,
    const OptionalTensor& i1,
    const OptionalTensor& i2,
    const OptionalTensor& i3,
    at::IntArrayRef expand1,
    at::IntArrayRef expand2,
    at::IntArrayRef expand3,
    at::IntArrayRef sumdim,
    std::array<bool, 3> mask) {
  return derivatives::_trilinear_backward(
      grad.value_or(at::Tensor()), i1, i2, i3, expand1, expand2, expand3, sumdim, mask);
}

} // namespace

TORCH_LIBRARY_FRAGMENT(derivative_helpers, m) {
  m.def("wrap_opt_if", &wrap_opt_if);
  m.def("mm_mat1_backward", &mm_mat1_backward);
  m.def("mm_mat2_backward", &mm_mat2_backward);
  m.def("mm_mat1_sparse_backward", &derivatives::mm_mat1_sparse_backward);
  m.def("sparse_sampled_addmm_backward", &sparse_sampled_addmm_backward);
  m.def("sparse_sparse_matmul_backward", &derivatives::sparse_sparse_matmul_backward);
  m.def("_grouped_mm_mat1_backward", &grouped_mm_mat1_backward);
  m.def("_grouped_mm_mat2_backward", &grouped_mm_mat2_backward);
  m.def("_trilinear_backward", &trilinear_backward);
  m.def("linear_double_backward", &linear_double_backward);
}
