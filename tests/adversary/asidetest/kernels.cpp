// SPDX-License-Identifier: BSD-3-Clause

#include <ATen/TensorOperators.h>
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
