// SPDX-License-Identifier: BSD-3-Clause
#include <torchext/precompiled.h>

#include <guard_ops/kernels/add_pair.h>
#include <guard_ops/kernels/assign.h>
#include <guard_ops/kernels/current_device.h>
#include <guard_ops/kernels/current_device_of_first.h>

#include <ATen/ops/add.h>
#include <c10/util/Exception.h>
#include <torchext/platform.h>

namespace {

// The device that the guard around a kernel made current, by the test device's own account.
int64_t current_device() {
  auto* current = torchext::find_function<int()>("torchext_test_device_current");
  TORCH_CHECK(current != nullptr, "guard_ops: the test device is not loaded");
  return current();
}

} // namespace

int64_t guard_ops::native::current_device_privateuse1(const at::Tensor& /*self*/) {
  return current_device();
}

int64_t guard_ops::native::current_device_of_first_privateuse1(
    const std::optional<at::Tensor>& /*y*/,
    const c10::List<std::optional<at::Tensor>>& /*ys*/,
    at::TensorList /*xs*/) {
  return current_device();
}

at::Tensor& guard_ops::native::assign_(at::Tensor& x, const std::optional<at::Tensor>& y) {
  return y.has_value() ? x.copy_(*y) : x.zero_();
}

at::Tensor guard_ops::native::add_pair_privateuse1(
    const at::Tensor& self, const at::Tensor& other) {
  return at::add(self, other);
}
