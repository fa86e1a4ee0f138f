// SPDX-License-Identifier: BSD-3-Clause
//
// The functions of torchext/derivatives/rearrangement.h as operators. Where they take geometries,
// sizes, dtypes or options, the operators take tensors that have them.
#include "bindings.h"

#include <torch/library.h>
#include <torchext/derivatives/rearrangement-inl.h>

namespace {

namespace derivatives = torchext::derivatives;
using at::Tensor;
using OptionalTensors = c10::List<std::optional<Tensor>>;

std::vector<at::ScalarType> dtypes_of(at::TensorList tensors) {
  std::vector<at::ScalarType> dtypes;
  for (const Tensor& tensor : tensors) {
    dtypes.push_back(tensor.scalar_type());
  }
  return dtypes;
}

Tensor as_strided_backward(
    const Tensor& grad,
    const Tensor& self,
    c10::SymIntArrayRef size,
    c10::SymIntArrayRef stride,
    std::optional<c10::SymInt> storage_offset) {
  return derivatives::as_strided_backward(
      grad, at::TensorGeometry(self), size, stride, storage_offset);
}

Tensor as_strided_scatter_backward(
    const Tensor& grad,
    const Tensor& self,
    const Tensor& src,
    c10::SymIntArrayRef size,
    c10::SymIntArrayRef stride,
    std::optional<c10::SymInt> storage_offset) {
  return derivatives::as_strided_scatter_backward(
      grad, at::TensorGeometry(self), at::TensorGeometry(src), size, stride, storage_offset);
}

Tensor repeat_backward(
    const Tensor& grad, c10::SymIntArrayRef repeats, c10::SymIntArrayRef input_shape) {
  return derivatives::repeat_backward(grad, repeats, input_shape);
}

Tensor slice_backward(
    const Tensor& grad,
    c10::SymIntArrayRef input_sizes,
    int64_t dim,
    std::optional<c10::SymInt> start,
    std::optional<c10::SymInt> end,
    c10::SymInt step) {
  return derivatives::slice_backward_wrapper(grad, input_sizes, dim, start, end, step);
}

Tensor constant_pad_nd_backward(const Tensor& grad, c10::SymIntArrayRef pad) {
  return derivatives::constant_pad_nd_backward(grad, pad);
}

Tensor split_backward(
    const OptionalTensors& grads, c10::SymInt split_size, int64_t dim, const Tensor& self) {
  return derivatives::split_backward(
      or_undefined(grads), split_size, dim, self.sym_sizes(), self.options());
}

Tensor split_with_sizes_backward(
    const OptionalTensors& grads,
    c10::SymIntArrayRef split_sizes,
    int64_t dim,
    const Tensor& self) {
  return derivatives::split_with_sizes_backward(
      or_undefined(grads), split_sizes, dim, self.sym_sizes(), self.options());
}

std::vector<Tensor> cat_tensors_backward(
    const std::optional<Tensor>& grad, at::TensorList tensors, int64_t dim) {
  std::vector<std::vector<c10::SymInt>> sizes;
  for (const Tensor& tensor : tensors) {
    sizes.push_back(tensor.sym_sizes().vec());
  }
  return derivatives::cat_tensors_backward(or_undefined(grad), sizes, dtypes_of(tensors), dim);
}

std::vector<Tensor> stack_tensors_backward(
    const std::optional<Tensor>& grad, int64_t dim, at::TensorList tensors) {
  return derivatives::stack_tensors_backward(or_undefined(grad), dim, dtypes_of(tensors));
}

std::vector<Tensor> block_diag_backward(const std::optional<Tensor>& grad, at::TensorList tensors) {
  std::vector<std::vector<int64_t>> sizes;
  for (const Tensor& tensor : tensors) {
    sizes.push_back(tensor.sizes().vec());
  }
  return derivatives::block_diag_backward(or_undefined(grad), sizes, dtypes_of(tensors));
}

std::vector<int64_t> reverse_list_symint(c10::SymIntArrayRef list) {
  std::vector<int64_t> reversed;
  for (const c10::SymInt& item : derivatives::reverse_list_symint(list)) {
    reversed.push_back(item.expect_int());
  }
  return reversed;
}

} // namespace

TORCH_LIBRARY_FRAGMENT(derivative_helpers, m) {
  m.def(
      "as_strided_backward(Tensor grad, Tensor self, SymInt[] size, SymInt[] stride, "
      "SymInt? storage_offset=None) -> Tensor",
      &as_strided_backward);
  m.def(
      "as_strided_scatter_backward(Tensor grad, Tensor self, Tensor src, SymInt[] size, "
      "SymInt[] stride, SymInt? storage_offset=None) -> Tensor",
      &as_strided_scatter_backward);
  m.def(
      "repeat_backward(Tensor grad, SymInt[] repeats, SymInt[] input_shape) -> Tensor",
      &repeat_backward);
  m.def(
      "slice_backward_wrapper(Tensor grad, SymInt[] input_sizes, int dim, SymInt? start, "
      "SymInt? end, SymInt step) -> Tensor",
      &slice_backward);
  m.def("constant_pad_nd_backward(Tensor grad, SymInt[] pad) -> Tensor", &constant_pad_nd_backward);
  m.def(
      "split_backward(Tensor?[] grads, SymInt split_size, int dim, Tensor self) -> Tensor",
      &split_backward);
  m.def(
      "split_with_sizes_backward(Tensor?[] grads, SymInt[] split_sizes, int dim, Tensor self) "
      "-> Tensor",
      &split_with_sizes_backward);
  m.def("cat_jvp(Tensor[] tensors, int dim) -> Tensor", [](at::TensorList tensors, int64_t dim) {
    return derivatives::cat_jvp(tensors, dim);
  });
  m.def(
      "cat_tensors_backward(Tensor? grad, Tensor[] tensors, int dim) -> Tensor[]",
      &cat_tensors_backward);
  m.def("stack_jvp(Tensor[] tensors, int dim) -> Tensor", &derivatives::stack_jvp);
  m.def(
      "stack_tensors_backward(Tensor? grad, int dim, Tensor[] tensors) -> Tensor[]",
      &stack_tensors_backward);
  m.def("block_diag_jvp(Tensor[] tensors) -> Tensor", &derivatives::block_diag_jvp);
  m.def("block_diag_backward(Tensor? grad, Tensor[] tensors) -> Tensor[]", &block_diag_backward);
  m.def("reverse_list_symint(SymInt[] list) -> int[]", &reverse_list_symint);
  m.def("reverse_list(int[] list) -> int[]", [](at::IntArrayRef list) {
    return derivatives::reverse_list(list);
  });
}
