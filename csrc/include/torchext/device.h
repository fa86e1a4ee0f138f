// SPDX-License-Identifier: BSD-3-Clause
//
// What the wrappers of device kernels do before the kernel runs: all tensors on one device, and
// the guard that makes it current.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>
#include <c10/util/Exception.h>
#include <torchext/arguments.h>

#include <optional>

namespace torchext {
inline namespace v1 {

/// Refuses tensors on several devices; the message names the operator and both arguments.
class SameDevice {
 public:
  explicit SameDevice(const char* op) : op_(op) {}

  template <typename Argument>
  void check(const char* name, const Argument& argument) {
    for_each_tensor([&](const at::Tensor& tensor) { check_one(name, tensor); }, argument);
  }

 private:
  void check_one(const char* name, const at::Tensor& tensor) {
    if (!tensor.defined()) {
      return;
    }
    if (!device_.has_value()) {
      device_ = tensor.device();
      first_ = name;
    }
    TORCH_CHECK(
        tensor.device() == *device_,
        op_,
        ": expected all tensors on one device, but '",
        name,
        "' is on ",
        tensor.device(),
        " and '",
        first_,
        "' on ",
        *device_);
  }

  const char* op_;
  const char* first_ = nullptr;
  std::optional<at::Device> device_;
};

/// The device that a guard selects for an argument: that of its first tensor.
template <typename Argument>
std::optional<at::Device> device_of(const Argument& argument) {
  std::optional<at::Device> device;
  for_each_tensor(
      [&](const at::Tensor& tensor) {
        if (!device.has_value() && tensor.defined()) {
          device = tensor.device();
        }
      },
      argument);
  return device;
}

inline std::optional<at::Device> device_of(at::Device device) {
  return device;
}

inline std::optional<at::Device> device_of(std::optional<at::Device> device) {
  return device;
}

} // namespace v1
} // namespace torchext
