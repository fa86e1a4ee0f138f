// SPDX-License-Identifier: BSD-3-Clause
//
// The functions of torchext/derivatives/view.h as operators. Where they take sizes or options, the
// operators take tensors that have them.
#include "bindings.h"

#include <torch/library.h>
#include <torchext/derivatives/view-inl.h>

namespace {

namespace derivatives = torchext::derivatives;
using at::Tensor;
using OptionalTensors = c10::List<std::optional<Tensor>>;

at::Tensor nested_sizes(const Tensor& self) {
  return at::native::get_nested_tensor_impl(self)->get_nested_sizes();
}

Tensor unsqueeze_multiple(const Tensor& tensor, at::OptionalIntArrayRef dims, int64_t dim) {
  return derivatives::unsqueeze_multiple(tensor, dims, static_cast<size_t>(dim));
}

Tensor unbind_backward(const OptionalTensors& grads, int64_t dim) {
  return derivatives::unbind_backward(or_undefined(grads), dim);
}

Tensor unbind_backward_nested(const OptionalTensors& grads, const Tensor& self, int64_t dim) {
  return derivatives::unbind_backward_nested(
      or_undefined(grads), nested_sizes(self), dim, self.options());
}

Tensor unbind_backward_nested_jagged(
    const OptionalTensors& grads, const Tensor& self, int64_t dim) {
  return derivatives::unbind_backward_nested_jagged(or_undefined(grads), self, dim);
}

Tensor chunk_backward_nested(
    const OptionalTensors& grads, const Tensor& self, int64_t chunks, int64_t dim) {
  return derivatives::chunk_backward_nested(or_undefined(grads), self, chunks, dim);
}

Tensor nested_split_with_sizes_backward(
    const OptionalTensors& grads,
    c10::SymIntArrayRef split_sizes,
    int64_t dim,
    const Tensor& self) {
  return derivatives::_nested_split_with_sizes_backward(
      or_undefined(grads), split_sizes, dim, nested_sizes(self), self.options());
}

Tensor values_backward(const std::optional<Tensor>& grad, const Tensor& self) {
  return derivatives::values_backward(or_undefined(grad), self);
}

} // namespace

TORCH_LIBRARY_FRAGMENT(derivative_helpers, m) {
  m.def("permute_backwards(Tensor grad, int[] dims) -> Tensor", &derivatives::permute_backwards);
  m.def("unsqueeze_multiple(Tensor tensor, int[]? dims, int dim) -> Tensor", &unsqueeze_multiple);
  m.def("unbind_backward(Tensor?[] grads, int dim) -> Tensor", &unbind_backward);
  m.def(
      "unbind_backward_nested(Tensor?[] grads, Tensor self, int dim) -> Tensor",
      &unbind_backward_nested);
  m.def(
      "unbind_backward_nested_jagged(Tensor?[] grads, Tensor self, int dim) -> Tensor",
      &unbind_backward_nested_jagged);
  m.def(
      "chunk_backward_nested(Tensor?[] grads, Tensor self, int chunks, int dim) -> Tensor",
      &chunk_backward_nested);
  m.def(
      "_nested_split_with_sizes_backward(Tensor?[] grads, SymInt[] split_sizes, int dim, "
      "Tensor self) -> Tensor",
      &nested_split_with_sizes_backward);
  m.def("values_backward(Tensor? grad, Tensor self) -> Tensor", &values_backward);
}
