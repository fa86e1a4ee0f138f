// SPDX-License-Identifier: BSD-3-Clause
#include <torchext/precompiled.h>

#include <ATen/ops/add_cpu_dispatch.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/mul_cpu_dispatch.h>
#include <overridetest/kernels.h>

#include <atomic>

namespace {
std::atomic<int64_t> count{0};
} // namespace

at::Tensor overridetest::native::counted_add(
    const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) {
  ++count;
  return at::cpu::add(self, other, alpha); // at::add would be this kernel again
}

at::Tensor overridetest::native::counted_square(const at::Tensor& self) {
  ++count;
  return at::cpu::mul(self, self);
}

// Differentiates through mul, and never reaches the CPU kernel while something requires grad.
at::Tensor overridetest::native::square_autograd(const at::Tensor& self) {
  return at::mul(self, self);
}

int64_t overridetest::native::calls() {
  return count;
}
