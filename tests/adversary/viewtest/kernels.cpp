// SPDX-License-Identifier: BSD-3-Clause
#include <torchext/precompiled.h>

#include <ATen/ATen.h>
#include <viewtest/kernels.h>

namespace viewtest::native {} // each kernel is defined by its qualified name

at::Tensor viewtest::native::turn(const at::Tensor& self, int64_t dim0, int64_t dim1) {
  return self.transpose(dim0, dim1);
}

at::Tensor& viewtest::native::turn_(at::Tensor& self, int64_t dim0, int64_t dim1) {
  return self.transpose_(dim0, dim1);
}

at::Tensor viewtest::native::part_symint(
    const at::Tensor& self, int64_t dim, c10::SymInt start, c10::SymInt length) {
  return self.narrow_symint(dim, std::move(start), std::move(length));
}

at::Tensor viewtest::native::deepen(const at::Tensor& self, int64_t dim) {
  return self.unsqueeze(dim);
}

at::Tensor& viewtest::native::deepen_(at::Tensor& self, int64_t dim) {
  return self.unsqueeze_(dim);
}

std::vector<at::Tensor> viewtest::native::pieces_symint(
    const at::Tensor& self, c10::SymInt size, int64_t dim) {
  return self.split_symint(std::move(size), dim);
}

at::Tensor viewtest::native::pairs(const at::Tensor& self) {
  return at::view_as_real(self);
}

at::Tensor viewtest::native::numbers(const at::Tensor& self) {
  return at::view_as_complex(self);
}

at::Tensor viewtest::native::minus(const at::Tensor& self) {
  return self._neg_view();
}

at::Tensor viewtest::native::mirrored(const at::Tensor& self) {
  return self.is_complex() ? self._conj() : self;
}

at::Tensor viewtest::native::placed_symint(const at::Tensor& self, c10::SymInt offset) {
  return self.as_strided_symint({2}, {1}, offset);
}

at::Tensor viewtest::native::view_symint(const at::Tensor& self, c10::SymIntArrayRef size) {
  return self.view_symint(size);
}

at::Tensor viewtest::native::wide_symint(const at::Tensor& self, c10::SymIntArrayRef size) {
  return self.expand_symint(size);
}

at::Tensor viewtest::native::shaped_symint(const at::Tensor& self, c10::SymIntArrayRef size) {
  return self.view_symint(size);
}

at::Tensor viewtest::native::diagonal_of(
    int64_t offset, const at::Tensor& matrix, const std::optional<at::Tensor>& mask) {
  TORCH_CHECK(!mask.has_value() || mask->dim() == 1, "diagonal_of: the mask must be a vector");
  return matrix.diagonal(offset);
}

at::Tensor viewtest::native::itself(const at::Tensor& self) {
  return self;
}

at::Tensor viewtest::native::row_symint(const at::Tensor& self, c10::SymInt index) {
  return self.select_symint(0, std::move(index));
}

std::vector<at::Tensor> viewtest::native::rows(const at::Tensor& self) {
  return self.unbind();
}

at::Tensor& viewtest::native::flipped_(at::Tensor& self) {
  return self.t_();
}

at::Tensor viewtest::native::opaque(const at::Tensor& self) {
  return self.alias();
}

at::Tensor viewtest::native::marked(const at::Tensor& self) {
  return self.alias();
}

at::Tensor viewtest::native::no_view(const at::Tensor& self) {
  return self.clone();
}

at::Tensor viewtest::native::keyword(const at::Tensor& x) {
  return x.t();
}

std::tuple<at::Tensor, at::Tensor> viewtest::native::with_sum(const at::Tensor& x) {
  return {x.t(), x.sum()};
}

std::vector<at::Tensor> viewtest::native::turned_all(at::TensorList xs) {
  std::vector<at::Tensor> views;
  for (const at::Tensor& x : xs) {
    views.push_back(x.t());
  }
  return views;
}
