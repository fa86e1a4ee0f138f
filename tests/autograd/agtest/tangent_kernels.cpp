// SPDX-License-Identifier: BSD-3-Clause
//
// Kernels of the operators that have formulas of forward mode, in-place forms or formulas per key.
#include <torchext/precompiled.h>

#include <agtest/kernels.h>

#include <ATen/ATen.h>

using at::Tensor;

Tensor& agtest::native::expo_(Tensor& self) {
  return self.exp_();
}

Tensor agtest::native::squared(const Tensor& self) {
  return self * self;
}

Tensor& agtest::native::squared_(Tensor& self) {
  return self.mul_(self);
}

Tensor agtest::native::negative(const Tensor& self) {
  return -self;
}

Tensor& agtest::native::negate(Tensor& self) {
  return self.neg_();
}

Tensor agtest::native::scaled_sum(
    const Tensor& self, const Tensor& other, const at::Scalar& alpha) {
  return self + other * alpha;
}

Tensor& agtest::native::scaled_sum_(Tensor& self, const Tensor& other, const at::Scalar& alpha) {
  return self.add_(other * alpha);
}

std::tuple<Tensor, Tensor> agtest::native::turned(const Tensor& self, const Tensor& angle) {
  return {self * angle.cos(), self * angle.sin()};
}

Tensor agtest::native::stacked(at::TensorList tensors) {
  return at::stack(tensors);
}

// Lists reach a formula with their tangents.
Tensor agtest::native::stacked_tangents(at::TensorList tensors) {
  std::vector<Tensor> tangents;
  for (const Tensor& tensor : tensors) {
    const Tensor tangent = tensor._fw_grad(/*level=*/0);
    tangents.push_back(tangent.defined() ? tangent : at::zeros_like(tensor));
  }
  return at::stack(tangents);
}

Tensor agtest::native::times_total_tangent(
    const Tensor& self, const Tensor& self_tangent, at::TensorList tensors) {
  Tensor sum = at::zeros_like(self);
  for (const Tensor& tensor : tensors) {
    const Tensor tangent = tensor._fw_grad(/*level=*/0);
    sum = sum + self_tangent * tensor._fw_primal(/*level=*/0);
    sum = tangent.defined() ? sum + self * tangent : sum;
  }
  return sum;
}

std::vector<Tensor> agtest::native::each_product(at::TensorList self, at::TensorList other) {
  std::vector<Tensor> products;
  for (size_t i = 0; i < self.size(); ++i) {
    products.push_back(self[i] * other[i]);
  }
  return products;
}

std::vector<Tensor> agtest::native::each_expo(at::TensorList self) {
  std::vector<Tensor> found;
  for (const Tensor& tensor : self) {
    found.push_back(tensor.exp());
  }
  return found;
}

std::vector<Tensor> agtest::native::each_scaled(
    at::TensorList self, at::ArrayRef<at::Scalar> factors) {
  std::vector<Tensor> scaled;
  for (size_t i = 0; i < self.size(); ++i) {
    scaled.push_back(self[i] * factors[i]);
  }
  return scaled;
}

Tensor& agtest::native::root_(Tensor& self) {
  return self.sqrt_();
}

std::tuple<Tensor&, Tensor&> agtest::native::accumulate(Tensor& self, Tensor& other) {
  self.add_(other);
  other.mul_(other.clone());
  return {self, other};
}

Tensor agtest::native::twice(const Tensor& self) {
  return self * 2;
}

Tensor& agtest::native::twice_(Tensor& self) {
  return self.mul_(2);
}

// Without a tensor that the mask does not ask for.
std::tuple<Tensor, Tensor> agtest::native::wrapped_backward(
    const Tensor& grad,
    const std::optional<Tensor>& self,
    const std::optional<Tensor>& other,
    std::array<bool, 2> mask) {
  return {mask[0] ? grad * *other : Tensor(), mask[1] ? grad * *self : Tensor()};
}

Tensor agtest::native::measured(
    const Tensor& self, const std::optional<Tensor>& /*maybe*/, at::TensorList /*tensors*/) {
  return self.clone();
}

// Multiplies by a number to which every attribute adds its part.
Tensor agtest::native::measured_backward_symint(
    const Tensor& grad,
    c10::SymIntArrayRef sizes,
    c10::SymIntArrayRef strides,
    c10::SymInt first,
    c10::SymInt last,
    int64_t numel,
    c10::SymInt sym_numel,
    int64_t dim,
    at::ScalarType dtype,
    at::Layout layout,
    bool is_conj,
    at::OptionalSymIntArrayRef maybe,
    c10::SymIntArrayRef geometry,
    at::IntArrayRef first_sizes,
    c10::SymIntArrayRef second_sizes,
    at::ScalarType second_dtype) {
  c10::SymInt sum = first * 7 + last * 11 + sym_numel * 17;
  sum += numel * 13 + dim * 19;
  sum += (dtype == at::kFloat ? 23 : 0) + (layout == at::kStrided ? 29 : 0) + (is_conj ? 31 : 0);
  const auto add = [&](const auto& values, int64_t factor) {
    for (const auto& value : values) {
      sum += c10::SymInt(value) * factor;
    }
  };
  add(sizes, 1);
  add(strides, 3);
  if (maybe.has_value()) {
    add(*maybe, 37);
  }
  add(geometry, 41);
  add(first_sizes, 43);
  add(second_sizes, 47);
  sum += second_dtype == at::kHalf ? 53 : 0;
  return grad * at::Scalar(sum);
}

// Undefined where the mask leaves a result out.
std::tuple<Tensor, Tensor> agtest::native::masked_pair(
    const Tensor& self, std::array<bool, 2> mask) {
  return {mask[0] ? self.exp() : Tensor(), mask[1] ? self * self : Tensor()};
}

std::tuple<Tensor&, Tensor&> agtest::native::crossed_(Tensor& self, Tensor& other) {
  const Tensor old = self.clone();
  self.copy_(other * 2);
  other.copy_(old * 3);
  return std::tuple<Tensor&, Tensor&>(self, other);
}

Tensor& agtest::native::scaled_add_(Tensor& self, const Tensor& other, const at::Scalar& alpha) {
  return self.copy_(self * alpha + other);
}

Tensor agtest::native::assigned(const Tensor& self, const Tensor& src) {
  return src.expand_as(self).clone();
}

Tensor& agtest::native::assigned_(Tensor& self, const Tensor& src) {
  return self.copy_(src);
}

Tensor agtest::native::widened(const Tensor& self) {
  return self.to(at::kDouble);
}

std::tuple<Tensor&, Tensor&> agtest::native::swapped_(Tensor& self, Tensor& other) {
  const Tensor old = self.clone();
  self.copy_(other);
  other.copy_(old);
  return std::tuple<Tensor&, Tensor&>(self, other);
}

std::tuple<Tensor&, Tensor&> agtest::native::tripled_(Tensor& self, Tensor& other) {
  other.copy_(self * 2);
  self.mul_(3);
  return std::tuple<Tensor&, Tensor&>(self, other);
}
