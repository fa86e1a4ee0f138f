// SPDX-License-Identifier: BSD-3-Clause

#include <torchext/precompiled.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/mul.h>
#include <asidetest/kernels.h>

#include <optional>
#include <tuple>
#include <vector>

namespace {

void update(const at::Tensor& running) {
  running.mul_(0.5).add_(1);
}

} // namespace

at::Tensor asidetest::native::norm(const at::Tensor& x, at::Tensor& running) {
  update(running);
  return x * running;
}

std::tuple<at::Tensor, at::Tensor> asidetest::native::two(
    const at::Tensor& x, at::Tensor& mean, at::Tensor& var, double momentum) {
  mean.mul_(momentum).add_(1);
  var.mul_(momentum).add_(2);
  return {x * mean, x * var};
}

at::Tensor asidetest::native::listed(const at::Tensor& x, at::TensorList running) {
  for (const at::Tensor& one : running) {
    update(one);
  }
  return x * running[0] * running[1];
}

at::Tensor asidetest::native::optional(
    const at::Tensor& x, const std::optional<at::Tensor>& running) {
  if (!running) {
    return x.clone();
  }
  update(*running);
  return x * *running;
}

std::tuple<at::Tensor, at::Tensor> asidetest::native::returned(
    const at::Tensor& x, at::Tensor& running) {
  update(running);
  return {x * running, running};
}

void asidetest::native::ruled_cpu(const at::Tensor& x, at::Tensor& running, const at::Tensor& out) {
  update(running);
  at::mul_out(const_cast<at::Tensor&>(out), x, running);
}

at::Tensor asidetest::native::by_parts(const at::Tensor& x, at::Tensor& running) {
  update(running);
  return x * running;
}

void asidetest::native::track(at::Tensor& running) {
  update(running);
}

at::Tensor asidetest::native::sized(const at::Tensor& x, at::Tensor& running) {
  update(running);
  return x.clone();
}

void asidetest::native::of_mode(
    at::Tensor& dst, const at::Tensor& x, c10::string_view mode, const at::Scalar& k) {
  dst.copy_(mode == "max" ? at::maximum(dst, x) : at::minimum(dst, x)).mul_(k);
}

at::Tensor asidetest::native::of_mode_returning(
    const at::Tensor& x, at::Tensor& dst, int64_t mode) {
  dst.add_(x, mode);
  return x * mode;
}

void asidetest::native::of_key(at::Tensor& dst, const at::Tensor& dispatch_key, int64_t mode) {
  dst.mul_(dispatch_key).add_(mode);
}

void asidetest::native::of_alias(at::Tensor& dst, int64_t _dst_alias) {
  dst.mul_(_dst_alias);
}

void asidetest::native::of_bases(
    at::TensorList dst, const at::Tensor& _all_bases, at::IntArrayRef _dst_length) {
  for (const at::Tensor& each : dst) {
    each.add_(_all_bases, static_cast<int64_t>(_dst_length.size()) + 1);
  }
}

void asidetest::native::of_op(
    at::Tensor& dst, const std::optional<at::Tensor>& _mutable_op, int64_t _only_clone_these_bases) {
  dst.add_(_only_clone_these_bases);
  if (_mutable_op.has_value()) {
    dst.mul_(*_mutable_op);
  }
}
