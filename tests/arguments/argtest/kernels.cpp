// SPDX-License-Identifier: BSD-3-Clause

#include <torchext/precompiled.h>

#include <ATen/ops/add.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <argtest/kernels.h>

#include <tuple>
#include <vector>

namespace {

void expect_contiguous(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.is_contiguous(), "the kernel was given strides ", tensor.strides());
}

void expect_last_dim_contiguous(const at::Tensor& tensor) {
  TORCH_CHECK(
      tensor.dim() == 0 || tensor.stride(-1) == 1,
      "the kernel was given strides ",
      tensor.strides());
}

} // namespace

at::Tensor argtest::native::plain(
    const at::Tensor& self, const at::Tensor& other, const at::Tensor& any) {
  expect_contiguous(self);
  expect_last_dim_contiguous(other);
  return self.add(other).mul(any.stride(0));
}

void argtest::native::ruled(
    const at::Tensor& self, const std::optional<at::Tensor>& weight, const at::Tensor& out) {
  expect_last_dim_contiguous(self);
  out.copy_(self);
  if (weight.has_value()) {
    expect_contiguous(*weight);
    out.mul_(*weight);
  }
}

void argtest::meta::structured_classed::meta(const at::Tensor& self, int64_t) {
  set_output_contiguous_symint(0, self.sym_sizes(), self.options());
}

void argtest::native::structured_classed::impl(
    const at::Tensor& self, int64_t n, const at::Tensor& out) {
  expect_contiguous(self);
  out.copy_(self.mul(n));
}

at::Tensor argtest::native::listed(
    at::TensorList xs, const c10::List<std::optional<at::Tensor>>& ys) {
  double total = 0;
  for (const at::Tensor& x : xs) {
    expect_contiguous(x);
    total += x.sum().item<double>();
  }
  for (const std::optional<at::Tensor> y : ys) {
    if (y.has_value()) {
      expect_contiguous(*y);
      total += y->sum().item<double>();
    }
  }
  return at::scalar_tensor(total, at::kDouble);
}

at::Tensor argtest::native::through_parts(const at::Tensor& self) {
  expect_contiguous(self);
  return self.mul(2);
}

at::Tensor& argtest::native::changed_(at::Tensor& self, const at::Tensor& other) {
  expect_contiguous(self);
  expect_contiguous(other);
  return self.add_(other);
}

void argtest::native::all_changed(
    at::Tensor& first, const std::optional<at::Tensor>& second, at::TensorList rest) {
  expect_last_dim_contiguous(first);
  first.add_(1);
  if (second.has_value()) {
    expect_contiguous(*second);
    second->add_(2);
  }
  for (const at::Tensor& tensor : rest) {
    expect_contiguous(tensor);
    tensor.add_(3);
  }
}

at::Tensor argtest::native::changed_beside(at::Tensor& self) {
  expect_contiguous(self);
  self.add_(1);
  return self.mul(2);
}

std::tuple<at::Tensor, std::vector<at::Tensor>> argtest::native::weighted(
    at::TensorList xs, const std::optional<at::Tensor>& weight) {
  at::Tensor total = weight.has_value() ? *weight : at::scalar_tensor(1);
  for (const at::Tensor& x : xs) {
    total = at::add(total, x);
  }
  std::vector<at::Tensor> found{total.mul(2), total.mul(3)};
  return {total, found};
}

at::Tensor argtest::native::rows(
    const at::Tensor& x, const at::Tensor& y, const at::Tensor& weight) {
  return x.mul(weight).add(y.unsqueeze(-1));
}

at::Tensor& argtest::native::rows_(at::Tensor& x, const at::Tensor& y) {
  expect_contiguous(x);
  TORCH_CHECK(x.dim() == 2, "rows of a matrix, got ", x.dim(), " dimensions");
  return x.mul_(y);
}

at::Tensor argtest::native::spread(
    const at::Tensor& x, const std::optional<at::Tensor>& weight, int64_t times) {
  const at::Tensor centred = x.dim() > 1 ? x.sub(x.mean(-1, true)) : x.div(x.sum());
  const at::Tensor repeated = times > 1 ? centred.mul(x.sum()) : centred;
  return weight.has_value() ? repeated.mul(*weight) : repeated;
}

at::Tensor argtest::native::turned(
    const at::Tensor& x, const std::optional<at::Tensor>& weight, at::IntArrayRef turns) {
  const at::Tensor rows = x.dim() > 1 ? x : x.unsqueeze(0);
  std::vector<at::Tensor> found;
  for (const int64_t turn : turns) {
    found.push_back(rows.roll(turn, -1));
  }
  const at::Tensor all = at::stack(found, 1).flatten(0, 1);
  return weight.has_value() ? all.mul(*weight) : all;
}

at::Tensor& argtest::native::spread_(at::Tensor& x) {
  return x.dim() > 1 ? x.sub_(x.mean(-1, true)) : x.div_(x.sum());
}

at::Tensor argtest::native::total(const at::Tensor& self) {
  return self.sum();
}

at::Tensor argtest::native::first_row(const at::Tensor& self) {
  return self.select(0, 0).clone();
}
