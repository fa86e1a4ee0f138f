// SPDX-License-Identifier: BSD-3-Clause
//
// The functions of torchext/derivatives/indexing.h as operators.
#include "bindings.h"

#include <torch/library.h>
#include <torchext/derivatives/indexing-inl.h>

namespace {

namespace derivatives = torchext::derivatives;
using at::Tensor;

template <auto backward>
std::tuple<Tensor, Tensor> reduce_backward(
    const std::optional<Tensor>& grad,
    const Tensor& self,
    int64_t dim,
    const Tensor& index,
    const Tensor& src,
    c10::string_view reduce,
    bool include_self,
    const Tensor& result) {
  const int narrow_dim = static_cast<int>(dim);
  return backward(or_undefined(grad), self, narrow_dim, index, src, reduce, include_self, result);
}

Tensor scatter_reduce_jvp(
    const Tensor& self_p,
    const std::optional<Tensor>& self_t,
    int64_t dim,
    const Tensor& index,
    const Tensor& src_p,
    const std::optional<Tensor>& src_t,
    c10::string_view reduce,
    bool include_self,
    const Tensor& result) {
  return derivatives::scatter_reduce_jvp(
      self_p,
      or_undefined(self_t),
      static_cast<int>(dim),
      index,
      src_p,
      or_undefined(src_t),
      reduce,
      include_self,
      result);
}

} // namespace

TORCH_LIBRARY_FRAGMENT(derivative_helpers, m) {
  m.def(
      "index_backward(Tensor zeros_like_self, Tensor?[] indices, Tensor grad) -> Tensor",
      &derivatives::index_backward);
  m.def("take_backward", &derivatives::take_backward);
  m.def(
      "index_reduce_backward(Tensor? grad, Tensor self, int dim, Tensor index, Tensor source, "
      "str reduce, bool include_self, Tensor result) -> (Tensor, Tensor)",
      &reduce_backward<derivatives::index_reduce_backward>);
  m.def(
      "scatter_reduce_backward(Tensor? grad, Tensor self, int dim, Tensor index, Tensor src, "
      "str reduce, bool include_self, Tensor result) -> (Tensor, Tensor)",
      &reduce_backward<derivatives::scatter_reduce_backward>);
  m.def(
      "scatter_reduce_jvp(Tensor self_p, Tensor? self_t, int dim, Tensor index, Tensor src_p, "
      "Tensor? src_t, str reduce, bool include_self, Tensor result) -> Tensor",
      &scatter_reduce_jvp);
  m.def("masked_fill_backward", &derivatives::masked_fill_backward);
  m.def(
      "masked_fill_inplace_if_safe(Tensor tensor, Tensor mask, Scalar value) -> Tensor",
      &derivatives::masked_fill_inplace_if_safe);
  m.def(
      "embedding_dense_double_backward_symint(Tensor grad, Tensor indices, SymInt padding_idx) "
      "-> Tensor",
      [](const Tensor& grad, const Tensor& indices, c10::SymInt padding_idx) {
        return derivatives::embedding_dense_double_backward_symint(grad, indices, padding_idx);
      });
}
