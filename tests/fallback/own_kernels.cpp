// SPDX-License-Identifier: BSD-3-Clause
//
// What a device brings for operators that a library defines: kernels of its own for two, and none for
// the others.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mul.h>
#include <torch/library.h>

#include <optional>

namespace {

// The memory of the test device is host memory, which its own kernels may touch.
at::Tensor host_view(const at::Tensor& tensor) {
  const auto options = at::TensorOptions().dtype(tensor.dtype());
  return at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(), options);
}

at::Tensor& mul_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  at::Tensor result = host_view(out);
  at::mul_out(result, host_view(self), host_view(other));
  return out;
}

at::Tensor& rms_norm_out(
    const at::Tensor& input, const std::optional<at::Tensor>& weight, double eps, at::Tensor& out) {
  const at::Tensor x = host_view(input);
  at::Tensor normalized = x * (x.square().mean(-1, /*keepdim=*/true) + eps).rsqrt();
  if (weight.has_value()) {
    normalized.mul_(host_view(*weight));
  }
  host_view(out).copy_(normalized);
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
