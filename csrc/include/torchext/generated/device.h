// SPDX-License-Identifier: BSD-3-Clause
//
// What the wrappers of device kernels do before the kernel runs: all tensors on one device, and
// the guard that makes it current.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>
#include <c10/util/Exception.h>
#include <torchext/generated/arguments.h>
#include <torchext/generated/home.h>

#include <cstddef>
#include <optional>

namespace torchext {
inline namespace v1 {

namespace detail {

[[noreturn]] C10_NOINLINE inline void refuse_devices(
    const char* op,
    const char* names,
    size_t place,
    at::Device device,
    size_t first_place,
    at::Device first) {
  TORCH_CHECK(
      false,
      op,
      ": expected all tensors on one device, but '",
      name_at(names, place),
      "' is on ",
      device,
      " and '",
      name_at(names, first_place),
      "' on ",
      first);
}

} // namespace detail

/// Refuses tensors on several devices; the message names the operator and both arguments, of `names`
/// ("self, other"). Those of a CPU kernel are on the CPU: else another one would have been called.
template <Home home = Home::kOther, typename... Arguments>
void check_same_device(
    [[maybe_unused]] const char* op,
    [[maybe_unused]] const char* names,
    const Arguments&... arguments) {
  if constexpr (home != Home::kCPU) {
    std::optional<at::Device> first;
    size_t first_place = 0;
    const auto check = [&](const at::Tensor& tensor, size_t place) {
      if (!tensor.defined()) {
        return;
      }
      if (!first.has_value()) {
        first = tensor.device();
        first_place = place;
      }
      if (C10_UNLIKELY(tensor.device() != *first)) {
        detail::refuse_devices(op, names, place, tensor.device(), first_place, *first);
      }
    };
    for_each_argument(check, arguments...);
  }
}

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

/// Makes the device of the first argument that is there the current one, of a kernel that is not the
/// CPU's.
template <Home home>
class SelectedDevice {
 public:
  template <typename... Arguments>
  explicit SelectedDevice(const Arguments&... arguments) : guard_(first_of(arguments...)) {}

 private:
  template <typename Argument, typename... Others>
  static std::optional<at::Device> first_of(const Argument& argument, const Others&... others) {
    const std::optional<at::Device> device = device_of(argument);
    if constexpr (sizeof...(Others) > 0) {
      return device.has_value() ? device : first_of(others...);
    } else {
      return device;
    }
  }

  c10::OptionalDeviceGuard guard_;
};

template <>
class SelectedDevice<Home::kCPU> {
 public:
  template <typename... Arguments>
  explicit SelectedDevice(const Arguments&... /*arguments*/) {}
};

} // namespace v1
} // namespace torchext
