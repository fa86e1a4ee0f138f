// SPDX-License-Identifier: BSD-3-Clause
#include <torchext/precompiled.h>

#include <ATen/ATen.h>
#include <readingtest/formulas.h>
#include <readingtest/kernels.h>

using at::Tensor;

Tensor readingtest::native::cube(const Tensor& self) {
  return self * self * self;
}

Tensor readingtest::native::product(const Tensor& self, const Tensor& other) {
  return self * other;
}

Tensor readingtest::native::shifted(const Tensor& self) {
  return self + 1;
}

Tensor& readingtest::native::shifted_(Tensor& self) {
  return self.add_(1);
}

Tensor& readingtest::native::copied_(Tensor& self, const Tensor& source) {
  return self.copy_(source);
}

Tensor readingtest::native::flattened(const Tensor& self) {
  return self.flatten().clone();
}

std::tuple<Tensor, Tensor> readingtest::native::two_of(const Tensor& self) {
  return {self + 1, self + 2};
}

std::vector<Tensor> readingtest::native::shifted_all(at::TensorList tensors) {
  std::vector<Tensor> shifted;
  for (const Tensor& tensor : tensors) {
    shifted.push_back(tensor + 1);
  }
  return shifted;
}

Tensor readingtest::native::either(const Tensor& self, const Tensor& other, bool first) {
  return (first ? self : other).clone();
}

Tensor readingtest::native::gathered(at::TensorList tensors) {
  return tensors[0].clone();
}

Tensor readingtest::formulas::tangent_of_first(at::TensorList tensors) {
  return tensors[0]._fw_grad(/*level=*/0);
}

void readingtest::native::weighed(
    const Tensor& self,
    at::TensorList more,
    const std::optional<Tensor>& weight,
    const Tensor& out) {
  out.copy_(weight.has_value() ? self * *weight : self);
  for (const Tensor& tensor : more) {
    out.mul_(tensor);
  }
}

void readingtest::native::weighed_anywhere(
    const Tensor& self, const std::optional<Tensor>& weight, const Tensor& out) {
  out.copy_(weight.has_value() ? self * *weight : self);
}

void readingtest::meta::structured_scaled::meta(const Tensor& self, const Tensor& /*factor*/) {
  set_output_contiguous_symint(0, self.sym_sizes(), self.options());
}

void readingtest::native::structured_scaled_cpu::impl(
    const Tensor& self, const Tensor& factor, const Tensor& out) {
  at::mul_out(const_cast<Tensor&>(out), self, factor);
}
