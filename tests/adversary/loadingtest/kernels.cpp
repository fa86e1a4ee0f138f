// SPDX-License-Identifier: BSD-3-Clause
#include <torchext/precompiled.h>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <loadingtest/kernels.h>

namespace native = loadingtest::native;

at::Tensor native::affine(
    const at::Tensor& x,
    const std::optional<at::Tensor>& weight,
    const std::optional<at::Tensor>& bias) {
  const at::Tensor product = weight && weight->defined() ? x * *weight : x.clone();
  return bias && bias->defined() ? product + *bias : product;
}

at::Tensor native::middle(
    const at::Tensor& x, const std::optional<at::Tensor>& weight, const at::Tensor& bias) {
  return weight && weight->defined() ? x * *weight + bias : x + bias;
}

at::Tensor native::sloped(double slope, const at::Tensor& x, const at::Scalar& alpha) {
  return x * slope * alpha;
}

at::Tensor native::scaled(const at::Tensor& x, double scale, std::optional<int64_t> shift) {
  return x * scale + shift.value_or(0);
}

at::Tensor native::summed(at::TensorList xs, const std::optional<at::Tensor>& start) {
  at::Tensor sum = start && start->defined() ? start->clone() : at::zeros_like(xs[0]);
  for (size_t i = 0; i < xs.size(); ++i) {
    sum = sum + xs[i] * static_cast<double>(i + 1);
  }
  return sum;
}

at::Tensor native::chosen(
    const c10::List<std::optional<at::Tensor>>& xs, const at::Tensor& last) {
  at::Tensor sum = last.clone();
  for (size_t i = 0; i < xs.size(); ++i) {
    const std::optional<at::Tensor> x = xs[i];
    sum = x && x->defined() ? sum + *x * static_cast<double>(i + 2) : sum;
  }
  return sum;
}

at::Tensor native::rolled(const at::Tensor& x, at::IntArrayRef by, at::IntArrayRef dims) {
  return at::roll(x, by, dims);
}

at::Tensor native::grown_symint(const at::Tensor& x, at::SymIntArrayRef size, c10::SymInt more) {
  return at::ones_symint(size, x.options()) * x.sum() + at::ones_symint({more}, x.options()).sum();
}

at::Tensor native::named(
    const at::Tensor& x, c10::string_view mode, const std::optional<at::Tensor>& other) {
  const at::Tensor right = other && other->defined() ? *other : at::ones_like(x);
  return mode == "plus" ? x + right : x - right;
}

at::Tensor native::clamped(
    const at::Tensor& x,
    const std::optional<at::Scalar>& low,
    const std::optional<at::Scalar>& high,
    bool flip) {
  at::Tensor result = low ? at::clamp_min(x, *low) : x.clone();
  result = high ? at::clamp_max(result, *high) : result;
  return flip ? -result : result;
}

at::Tensor native::converted(
    const at::Tensor& x,
    std::optional<at::ScalarType> dtype,
    const std::optional<at::Tensor>& like) {
  const at::Tensor sum = like && like->defined() ? x + *like : x.clone();
  return sum.to(dtype.value_or(sum.scalar_type()));
}

at::Tensor native::weighted(
    const at::Tensor& x,
    at::ArrayRef<double> weights,
    std::array<bool, 2> mask,
    const std::optional<at::Tensor>& y) {
  at::Tensor result = mask[0] ? x * weights[0] : x + weights[0];
  result = mask[1] ? result * weights[1] : result + weights[1];
  return y && y->defined() ? result - *y : result;
}

std::tuple<at::Tensor, at::Tensor> native::pair(
    const at::Tensor& x, const std::optional<at::Tensor>& y, int64_t n) {
  return {x * n, y && y->defined() ? x + *y : x + n};
}

std::tuple<at::Tensor, at::Tensor> native::turned(
    int64_t n, const at::Tensor& x, const std::optional<at::Tensor>& y, const at::Tensor& z) {
  return {x * n + z, y && y->defined() ? z - *y : z - x};
}

std::vector<at::Tensor> native::pieces(const at::Tensor& x, int64_t n) {
  std::vector<at::Tensor> found;
  for (int64_t i = 0; i < n; ++i) {
    found.push_back(x + i);
  }
  return found;
}

at::Tensor native::doubled(const at::Tensor& x, double by) {
  return x * by;
}

at::Tensor& native::doubled_out(const at::Tensor& x, double by, at::Tensor& out) {
  return at::mul_out(out, x, at::full({}, by, x.options()));
}

at::Tensor& native::lone_out(const at::Tensor& x, double by, at::Tensor& out) {
  return at::mul_out(out, x, at::full({}, by, x.options()));
}

at::Tensor& native::shrink_(at::Tensor& x, double by, const std::optional<at::Tensor>& y) {
  x.div_(by);
  return y && y->defined() ? x.sub_(*y) : x;
}
