// SPDX-License-Identifier: BSD-3-Clause

#include <torchext/precompiled.h>

#include <ATen/ops/cos.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sin.h>
#include <resultstest/kernels.h>
#include <resultstest/ops.h>

#include <optional>
#include <tuple>
#include <vector>

namespace {

void expect_contiguous(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.is_contiguous(), "the kernel was given strides ", tensor.strides());
}

using List = c10::List<std::optional<at::Tensor>>;

/// Of those tensors that the optionals say are there, without a look at what is in them.
at::Tensor product(const at::Tensor& x, const std::optional<at::Tensor>& y, const List& zs) {
  at::Tensor found = x.clone();
  if (y) {
    TORCH_CHECK(y->defined(), "an undefined tensor for a missing one");
    found = found.mul(*y);
  }
  for (const std::optional<at::Tensor> z : zs) {
    if (z) {
      TORCH_CHECK(z->defined(), "an undefined tensor in a list");
      found = found.mul(*z);
    }
  }
  return found;
}

} // namespace

std::tuple<at::Tensor, at::Tensor> resultstest::native::mixed(
    const at::Tensor& x, at::Tensor& out) {
  expect_contiguous(x);
  expect_contiguous(out);
  return {out.mul_(x), x.sin()};
}

std::tuple<at::Tensor, at::Tensor> resultstest::native::swapped(at::Tensor& x, at::Tensor& y) {
  x.mul_(y);
  y.sin_();
  return {y, x};
}

std::tuple<at::Tensor, at::Tensor> resultstest::native::pair(
    at::Tensor& x, at::Tensor& y, double s) {
  x.mul_(s);
  y.mul_(2 * s);
  return {x, y};
}

std::tuple<at::Tensor, at::Tensor> resultstest::native::composed(
    const at::Tensor& x, at::Tensor& out) {
  out.mul_(x);
  return {out, x.sin()};
}

std::tuple<at::Tensor, at::Tensor> resultstest::native::named(
    at::Tensor& self, const at::Tensor& result) {
  expect_contiguous(self);
  return {self.mul_(result), result.sin()};
}

std::tuple<at::Tensor, std::vector<at::Tensor>> resultstest::native::listed(
    at::Tensor& x, const at::Tensor& y) {
  x.add_(y);
  return {x, {y.mul(2), y.mul(3)}};
}

std::tuple<at::Tensor, int64_t> resultstest::native::measured(
    const at::Tensor& x, at::Tensor& total) {
  total.add_(x);
  return {x.mul(2), x.dim()};
}

std::vector<at::Tensor> resultstest::native::all_beside(at::TensorList xs, const at::Tensor& y) {
  std::vector<at::Tensor> found;
  for (const at::Tensor& x : xs) {
    found.push_back(x.mul(2));
    x.mul_(y);
  }
  return found;
}

void resultstest::native::counted_cpu(
    const at::Tensor& x, at::Tensor& count, const at::Tensor& out) {
  count.add_(1);
  out.copy_(x.exp().add(count));
}

at::Tensor resultstest::native::middle(const at::Tensor& x, at::Tensor& cache, double scale) {
  expect_contiguous(cache);
  return cache.mul_(scale).add_(x.mul(x));
}

at::Tensor resultstest::native::second(at::Tensor& count, at::Tensor& y) {
  count.add_(1);
  return y.mul_(y.clone());
}

at::Tensor resultstest::native::exponential(
    const at::Tensor& x, const std::optional<at::Tensor>& out) {
  return out ? out->copy_(x.exp()) : x.exp();
}

at::Tensor resultstest::native::accumulated(
    const at::Tensor& x, const std::optional<at::Tensor>& total) {
  expect_contiguous(x);
  if (!total) {
    return x.mul(x);
  }
  expect_contiguous(*total);
  return total->add_(x.mul(x));
}

at::Tensor resultstest::native::composed_or_new(
    const at::Tensor& x, const std::optional<at::Tensor>& out) {
  return out ? out->add_(x.mul(x)) : x.mul(x);
}

void resultstest::native::ruled_cpu(const at::Tensor& x, const at::Tensor& out) {
  expect_contiguous(out);
  out.copy_(x.mul(2));
}

at::Tensor resultstest::native::beside(
    const at::Tensor& x,
    const std::optional<at::Tensor>& weight,
    const std::optional<at::Tensor>& running) {
  if (running) {
    running->mul_(0.5).add_(x);
  }
  return weight ? x.mul(*weight) : x.clone();
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> resultstest::native::both(
    const at::Tensor& x, at::Tensor& out, const std::optional<at::Tensor>& extra) {
  out.add_(x);
  return {out, x.cos(), extra ? extra->copy_(x.exp()) : x.exp()};
}

void resultstest::native::nothing(
    const at::Tensor& x,
    const std::optional<at::Tensor>& first,
    const std::optional<at::Tensor>& then) {
  if (first) {
    first->add_(x);
  }
  if (then) {
    then->mul_(x);
  }
}

at::Tensor resultstest::native::gated(
    const at::Tensor& x, const std::optional<at::Tensor>& y, const List& zs) {
  return product(x, y, zs);
}

at::Tensor resultstest::native::gated_backward(
    const at::Tensor& grad, const std::optional<at::Tensor>& y, const List& zs) {
  return product(grad, y, zs);
}

at::Tensor resultstest::native::gated_by_parts(
    const at::Tensor& x, const std::optional<at::Tensor>& y, const List& zs) {
  return product(x, y, zs);
}

void resultstest::native::gated_by_rule(
    const at::Tensor& x,
    const std::optional<at::Tensor>& y,
    const List& zs,
    const at::Tensor& out) {
  out.copy_(product(x, y, zs));
}

std::vector<at::Tensor> resultstest::native::called_with_undefined(const at::Tensor& x) {
  const std::optional<at::Tensor> undefined = at::Tensor();
  const List zs({undefined, x, std::nullopt});
  return {
      resultstest::gated(x, undefined, zs),
      resultstest::gated_by_parts(x, undefined, zs),
      resultstest::gated_by_rule(x, undefined, zs)};
}

at::Tensor resultstest::native::leaking(const at::Tensor& x, at::Tensor& out) {
  return out.copy_(x);
}

at::Tensor resultstest::native::leaking_or_not(
    const at::Tensor& x, const std::optional<at::Tensor>& out) {
  return out ? out->copy_(x) : x.clone();
}
