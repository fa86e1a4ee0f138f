// SPDX-License-Identifier: BSD-3-Clause
//
// What a device brings for operators that a library defines: kernels of its own for two, and none for
// the others.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mul.h>
#include <torch/library.h>
#include <torchext/testing/host_access.h>

#include <optional>

namespace {

using torchext::testing::host_access;

at::Tensor& mul_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  at::Tensor result = host_access(out);
  at::mul_out(result, host_access(self), host_access(other));
  return out;
}

at::Tensor& rms_norm_out(
    const at::Tensor& input, const std::optional<at::Tensor>& weight, double eps, at::Tensor& out) {
  const at::Tensor x = host_access(input);
  at::Tensor normalized = x * (x.square().mean(-1, /*keepdim=*/true) + eps).rsqrt();
  if (weight.has_value()) {
    normalized.mul_(host_access(*weight));
  }
  host_access(out).copy_(normalized);
  return out;
}

at::Tensor rms_norm(const at::Tensor& input, const std::optional<at::Tensor>& weight, double eps) {
  at::Tensor out = at::empty_like(input);
  return rms_norm_out(input, weight, eps, out);
}

} // namespace

TORCH_LIBRARY_IMPL(myns, PrivateUse1, m) {
  m.impl("mul.out", &mul_out);
  m.impl("rms_norm", &rms_norm);
  m.impl("rms_norm.out", &rms_norm_out);
}
