// SPDX-License-Identifier: BSD-3-Clause
//
// The functions of torchext/derivatives/conversion.h as operators, which take the tensor whose
// layout or options a function needs.
#include <torch/library.h>
#include <torchext/derivatives/conversion-inl.h>

namespace {

namespace derivatives = torchext::derivatives;
using at::Tensor;

Tensor to_sparse_backward(
    const Tensor& grad, const Tensor& self, at::OptionalIntArrayRef blocksize) {
  if (!blocksize.has_value()) {
    return derivatives::to_sparse_backward(grad, self.layout(), std::nullopt);
  }
  const c10::SymInt symbolic[]{(*blocksize)[0], (*blocksize)[1]};
  return derivatives::to_sparse_backward(grad, self.layout(), c10::SymIntArrayRef(symbolic));
}

Tensor sparse_mask_backward(const Tensor& grad, const Tensor& mask, const Tensor& self) {
  return derivatives::sparse_mask_backward(grad, mask, self.layout());
}

Tensor to_copy_backward(const Tensor& grad, const Tensor& self) {
  return derivatives::_to_copy_backward(grad, self.options());
}

} // namespace

TORCH_LIBRARY_FRAGMENT(derivative_helpers, m) {
  m.def(
      "to_sparse_backward(Tensor grad, Tensor self, int[]? blocksize=None) -> Tensor",
      &to_sparse_backward);
  m.def(
      "sparse_mask_backward(Tensor grad, Tensor mask, Tensor self) -> Tensor",
      &sparse_mask_backward);
  m.def("_to_copy_backward(Tensor grad, Tensor self) -> Tensor", &to_copy_backward);
  m.def("_nested_from_padded_backward", &derivatives::_nested_from_padded_backward);
  m.def("warn_backwards", &derivatives::warn_backwards);
}
